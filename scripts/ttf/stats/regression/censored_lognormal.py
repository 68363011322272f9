"""Fit the hours until failure of jobs that fail: lognormal regression with right-censoring.

The log of the hours to failure is normal about a linear function of the features. A running job may or may not fail. It
counts as a censored failure, weighted by the probability that it fails given its run time so far: a mixture of failing
and other jobs, fitted by EM (Dempster, Laird & Rubin 1977).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from ttf.stats.basics.newton import maximise
from ttf.stats.regression.design import Design
from ttf.stats.regression.logistic import PRECISION

# Times are whole seconds: a run of 0 counts as half a second.
SHORTEST_H = 0.5 / 3600
MAX_ITERATIONS, TOLERANCE = 50, 1e-6
# Fewest failures of known time for a regression.
FEWEST_FAILURES = 20


@dataclass(frozen=True)
class Hours:
    """coefficients (p,) of log hours; sigma: its standard deviation; horizon_h: longest observed time to failure."""

    coefficients: np.ndarray
    sigma: float
    horizon_h: float
    failures: int
    censored: float
    converged: bool

    def median(self, design: Design) -> np.ndarray:
        """Return the median hours to failure (n,), given that the job fails."""
        return np.exp(design.dot(self.coefficients))

    def mean(self, design: Design, limit_h: float | np.ndarray | None = None) -> np.ndarray:
        """Return the mean hours to failure (n,), given failure; times are capped at `limit_h` or the horizon.

        E min(T, h) = exp(mu + sigma^2 / 2) Phi((ln h - mu - sigma^2) / sigma) + h (1 - Phi((ln h - mu) / sigma)).
        """
        mu, sigma = design.dot(self.coefficients), self.sigma
        h = np.full(len(design), self.horizon_h if limit_h is None else limit_h, dtype=float)
        z = (np.log(h) - mu) / sigma
        # In logs, because the mean of a wide distribution overflows.
        mean_below_limit = np.exp(np.minimum(mu + sigma**2 / 2 + log_ndtr(z - sigma), 700))
        return mean_below_limit + h * ndtr(-z)

    def probability_within(self, design: Design, hours: float) -> np.ndarray:
        """Return the probability of failing within `hours` (n,), given that the job fails."""
        return ndtr((np.log(hours) - design.dot(self.coefficients)) / self.sigma)


def fit_hours(
    design: Design,
    hours: np.ndarray,
    failed: np.ndarray,
    running: np.ndarray,
    probability: np.ndarray,
    other_hours: np.ndarray,
) -> Hours | None:
    """Fit the hours until failure to failures with known hours and to running jobs.

    Parameters
    ----------
    design : n jobs
    hours : (n,) observed run time, NaN if unknown
    failed, running : (n,) boolean masks
    probability : (n,) probability that the job fails
    other_hours : run times of jobs that ended without failure. With the running jobs, weighted by their probability
        not to fail, they give the Kaplan-Meier curve of how long a job that does not fail runs.

    Returns
    -------
    the fit, or None if there are fewer than FEWEST_FAILURES failures with known hours

    Notes
    -----
    A mixture of failing and other jobs by EM (Dempster, Laird & Rubin 1977, J. R. Stat. Soc. B 39); each M step is
    `censored_lognormal`.

    Examples
    --------
    >>> hours, failed = np.repeat([1.0, 4.0], 20), np.ones(40, bool)
    >>> design = Design(np.zeros((40, 0)), ())
    >>> hours_fit = fit_hours(design, hours, failed, ~failed, np.ones(40), np.zeros(0))
    >>> round(float(hours_fit.median(design)[0]), 3), round(hours_fit.sigma, 3)
    (2.0, 0.693)
    """
    is_known = np.isfinite(hours)
    events, running_rows = np.flatnonzero(failed & is_known), np.flatnonzero(running & is_known)
    if len(events) < FEWEST_FAILURES:
        return None
    rows = np.concatenate([events, running_rows])
    rows_design, censored = design.take(rows), np.arange(len(rows)) >= len(events)
    log_h = np.log(np.maximum(hours[rows], SHORTEST_H))
    weighted_survival = _survival(other_hours[np.isfinite(other_hours)], hours[running_rows])
    fails = probability[rows]
    weights = np.where(censored, fails, 1.0)
    event_log_h = log_h[~censored]
    point = np.zeros(rows_design.width + 1)
    point[0], point[-1] = event_log_h.mean(), np.log(max(event_log_h.std(), 0.1))
    for _ in range(MAX_ITERATIONS):
        point, converged = censored_lognormal(rows_design, log_h, censored, weights, point)
        if not len(running_rows):
            break
        stays_running = ndtr((rows_design.dot(point[:-1]) - log_h) / np.exp(point[-1]))
        runs_and_fails, survival = fails * stays_running, np.ones(len(rows))
        survival[censored] = weighted_survival(1 - weights[censored])
        still_runs = runs_and_fails + (1 - fails) * survival
        new_weights = np.where(censored, runs_and_fails / np.maximum(still_runs, 1e-300), 1.0)
        change, weights = np.abs(new_weights - weights).max(), new_weights
        if change < TOLERANCE:
            break
    horizon = float(np.exp(event_log_h.max()))
    return Hours(point[:-1], float(np.exp(point[-1])), horizon, len(events), float(weights[censored].sum()), converged)


def _survival(ended_hours: np.ndarray, running_hours: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of the weights of running jobs, which are censored at `running_hours`.

    It returns the Kaplan-Meier survival just before each of these hours.
    """
    times, counts = np.unique(ended_hours, return_counts=True)
    order = np.argsort(running_hours)
    ended_at_risk, first_running = np.cumsum(counts[::-1])[::-1], np.searchsorted(running_hours[order], times)
    steps_before = np.searchsorted(times, running_hours)

    def survival(weights: np.ndarray) -> np.ndarray:
        # Total weight of the running jobs that had run at least so long.
        running_at_risk = np.append(np.cumsum(weights[order][::-1])[::-1], 0)
        n_at_risk = ended_at_risk + running_at_risk[first_running]
        return np.append(1, np.cumprod(1 - counts / n_at_risk))[steps_before]

    return survival


def censored_lognormal(
    design: Design, log_h: np.ndarray, censored: np.ndarray, weights: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Maximise the posterior of a censored lognormal regression; the prior is that of `logistic`.

    An event adds log phi(z) - log sigma, a censored row log Phi(-z), with z = (log h - mu) / sigma.

    Parameters
    ----------
    design : n rows, p columns
    log_h : (n,) log of hours
    censored : (n,) boolean mask
    weights : (n,) weight of each row
    start : (p + 1,) coefficients and log sigma

    Returns
    -------
    (coefficients and log sigma (p + 1,), whether Newton's method converged)

    References
    ----------
    Klein & Moeschberger (2003), Survival Analysis, 12.5

    Examples
    --------
    >>> log_h, design = np.array([0.0, 2.0]), Design(np.zeros((2, 0)), ())
    >>> point, _ = censored_lognormal(design, log_h, np.zeros(2, bool), np.ones(2), np.zeros(2))
    >>> point.round(4).tolist()  # the mean and the log of the standard deviation
    [1.0, -0.0]
    """
    precision = np.full(design.width + 1, PRECISION)
    precision[[0, -1]] = 0
    rows, events = np.flatnonzero(censored), float(weights[~censored].sum())

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, Callable[[], np.ndarray]]:
        """Return the log posterior density at a point, its gradient, and a function that returns its Hessian."""
        sigma = np.exp(point[-1])
        z = (log_h - design.dot(point[:-1])) / sigma
        log_density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        tail = log_ndtr(-z[rows])
        # Inverse Mills ratio: the hazard of a standard normal.
        hazard = np.exp(np.minimum(log_density[rows] - tail, 700))
        level_z, slope_z, curvature_z = log_density - point[-1], -z, np.full(len(z), -1.0)
        level_z[rows], slope_z[rows], curvature_z[rows] = tail, -hazard, -hazard * (hazard - z[rows])
        # Derivatives in z; the chain rule gives those in the parameters: dz/dmu = -1/sigma, dz/dlog sigma = -z.
        slope_z *= weights
        curvature_z *= weights
        slope = np.append(design.sums(-slope_z / sigma), -slope_z @ z - events)
        level = float(weights @ level_z) - 0.5 * float(precision @ point**2)

        def curvature() -> np.ndarray:
            products = np.empty((len(point), len(point)))
            products[:-1, :-1] = design.gram(curvature_z / sigma**2)
            products[:-1, -1] = products[-1, :-1] = design.sums((curvature_z * z + slope_z) / sigma)
            products[-1, -1] = (curvature_z * z + slope_z) @ z
            return products - np.diag(precision)

        return level, slope - precision * point, curvature

    return maximise(likelihood, start)
