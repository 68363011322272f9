"""Fit the probability of failure: logistic regression with a normal prior, by Newton's method."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ttf.stats.basics.newton import LEAST_GAIN, maximise
from ttf.stats.regression.design import Design

# Prior of every coefficient but the intercept: normal about 0 with this precision. Numbers are in standard deviations,
# so the prior is weak; it keeps coefficients finite where the data say nothing.
PRECISION = 1.0
# If it has FIRST_ROWS, a subsample is fitted first, until a step gains less, so that few steps use all rows.
FIRST_ROWS, SUBSAMPLE_DIVISOR, SUBSAMPLE_GAIN = 5_000, 8, 0.01


@dataclass(frozen=True)
class Prior:
    """Normal prior of the coefficients: mean (p,), precision (p, p)."""

    mean: np.ndarray
    precision: np.ndarray

    @classmethod
    def vague(cls, width: int) -> "Prior":
        """Return the prior with precision PRECISION about 0 for all coefficients but the intercept."""
        precision = np.full(width, PRECISION)
        precision[0] = 0
        return cls(np.zeros(width), np.diag(precision))


@dataclass(frozen=True)
class Fit:
    """coefficients (p,), intercept first; information (p, p): negative Hessian, including the prior."""

    coefficients: np.ndarray
    information: np.ndarray
    converged: bool


def fit(design: Design, failed: np.ndarray, prior: Prior | None = None) -> Fit:
    """Return `fit_coefficients` with their information.

    Examples
    --------
    >>> design = Design(np.array([[-1.0], [-1.0], [1.0], [1.0]]), ())
    >>> fit(design, np.array([False, False, False, True])).coefficients.round(2)
    array([-1.18,  0.58])
    """
    prior = prior or Prior.vague(design.width)
    coefficients, converged = fit_coefficients(design, failed, prior)
    return Fit(coefficients, _information(design, expit(design.dot(coefficients)), prior), converged)


def fit_coefficients(
    design: Design, failed: np.ndarray, prior: Prior, least_gain: float = LEAST_GAIN
) -> tuple[np.ndarray, bool]:
    """Maximise the posterior density of the coefficients, from the prior's mean or from the base rate.

    Parameters
    ----------
    design : n jobs
    failed : (n,) boolean mask
    prior : of the coefficients
    least_gain : see `maximise`

    Returns
    -------
    (coefficients (p,), whether the search converged)

    References
    ----------
    McCullagh & Nelder (1989), Generalized Linear Models, 4.4
    """
    start = prior.mean.copy()
    if len(failed) >= SUBSAMPLE_DIVISOR * FIRST_ROWS:
        subsample = np.arange(0, len(failed), SUBSAMPLE_DIVISOR)
        start, _ = fit_coefficients(design.take(subsample), failed[subsample], prior, SUBSAMPLE_GAIN)
    elif not start.any():
        share = (failed.sum() + 0.5) / (len(failed) + 1)
        start[0] = np.log(share / (1 - share))
    y = failed.astype(float)

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, Callable[[], np.ndarray]]:
        """Return the log posterior density at a point, its gradient, and a function that returns its Hessian."""
        deviation, eta = point - prior.mean, design.dot(point)
        p, prior_gradient = expit(eta), prior.precision @ deviation
        # The log of 1 + exp(eta), from p: one function of each row instead of two.
        softplus = np.maximum(eta, 0).sum() - np.log(np.maximum(p, 1 - p)).sum()
        level = float(y @ eta - softplus) - 0.5 * float(deviation @ prior_gradient)
        return level, design.sums(y - p) - prior_gradient, lambda: -_information(design, p, prior)

    return maximise(likelihood, start, least_gain)


def _information(design: Design, p: np.ndarray, prior: Prior) -> np.ndarray:
    return design.gram(p * (1 - p)) + prior.precision


def clustered_covariance(design: Design, failed: np.ndarray, regression: Fit, cluster: np.ndarray) -> np.ndarray:
    """Compute the sandwich covariance of the coefficients, robust to clustering.

    Parameters
    ----------
    design : n jobs, p columns
    failed : (n,) boolean mask
    regression : the fit of these jobs
    cluster : (n,) cluster numbers from 0. The covariance is scaled by clusters / (clusters - 1).

    Returns
    -------
    (p, p) floats

    References
    ----------
    Liang & Zeger (1986), Biometrika 73

    Examples
    --------
    >>> design, failed = Design(np.zeros((4, 0)), ()), np.array([True, False, False, False])
    >>> clustered_covariance(design, failed, fit(design, failed), np.arange(4)).round(3)  # 4/3 of 0.75 / 0.75**2
    array([[1.778]])
    """
    clusters, residual = int(cluster.max()) + 1, failed - expit(design.dot(regression.coefficients))
    scores = [np.bincount(cluster, values, clusters) for values in (residual, *(design.numbers.T * residual))]
    for codes, size in design.levels:
        by_level = np.bincount(cluster * size + codes, residual, clusters * size).reshape(clusters, size)
        scores += list(by_level.T[1:])
    bread = np.linalg.inv(regression.information)
    n_clusters = len(np.unique(cluster))
    return bread @ np.inner(scores, scores) @ bread * (n_clusters / max(1, n_clusters - 1))
