"""Maximise a likelihood of a few parameters with known derivatives, by Newton's method."""

from collections.abc import Callable

import numpy as np

MOST_STEPS = 200
LONGEST_STEP = 2.0
# In log-likelihood: a gain this small is a step of a hundred-thousandth of a standard error.
LEAST_GAIN = 1e-10


def maximise(
    likelihood: Callable[[np.ndarray], tuple], point: np.ndarray, least_gain: float = LEAST_GAIN
) -> tuple[np.ndarray, bool]:
    """Return the point of highest likelihood, and whether the search converged.

    Newton's method, always uphill. Where the surface curves upwards, the step uses the absolute eigenvalues. A step
    that would lead down is halved.

    Parameters
    ----------
    likelihood : point -> its log, gradient (k,), matrix of second derivatives (k, k), and anything else
        The matrix may be a function that returns it, which is called only where the search needs it.
    point : (k,) floats
        Start of the search.
    least_gain : the search ends with a step that promises a smaller gain in log-likelihood

    Returns
    -------
    (point (k,), whether the gradient vanished there)

    References
    ----------
    Nocedal & Wright (2006), Numerical Optimization, section 3.4

    Examples
    --------
    >>> def parabola(x):
    ...     return -((x - 3) ** 2).sum(), -2 * (x - 3), -2 * np.eye(1)
    >>> maximise(parabola, np.zeros(1))
    (array([3.]), True)
    """
    level, slope, curvature = likelihood(point)[:3]
    # Below this gain, the curvature at the point before gives the last step to the last digit.
    negligible_gain, solve = least_gain**1.5, None
    for _ in range(MOST_STEPS):
        if callable(curvature):
            if solve and slope @ (step := solve(slope)) < negligible_gain:
                return point + step, True
            curvature = curvature()
        if not (np.isfinite(slope).all() and np.isfinite(curvature).all()):
            return point, False
        solve = _uphill(curvature)
        step = solve(slope)
        gain = float(slope @ step)
        if gain < least_gain:
            return point + step, True
        step *= min(1.0, LONGEST_STEP / float(np.abs(step).max()))
        # A decrease within the rounding error of a sum of this size is no decrease.
        rounding = 1e-13 * abs(level)
        for _ in range(40):
            candidate = likelihood(point + step)
            if candidate[0] >= level - rounding:
                break
            step /= 2
        else:
            return point, False
        point = point + step
        level, slope, curvature = candidate[:3]
    return point, False


def _uphill(curvature: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that gives Newton's step for a gradient, with absolute eigenvalues."""
    sizes, directions = np.linalg.eigh(-curvature)
    sizes = np.maximum(np.abs(sizes), 1e-12 * np.abs(sizes).max())
    return lambda slope: directions @ ((directions.T @ slope) / sizes)
