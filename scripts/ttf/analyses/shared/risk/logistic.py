"""The probability of failure: logistic regression with a normal prior, by Newton's method."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ttf.analyses.shared.risk.encoder import Design
from ttf.stats.basics.newton import ascend, softplus

# The prior of every coefficient but the intercept: normal about 0, of this precision. Numbers are in standard
# deviations, so that it says little; it keeps finite what no data speak of.
PRECISION = 1.0
# Of more rows than twice these a part is fitted first, so that few steps go over all.
FIRST_ROWS = 50_000


@dataclass(frozen=True)
class Prior:
    """A normal distribution of the coefficients: mean (p,), precision (p, p)."""

    mean: np.ndarray
    precision: np.ndarray

    @classmethod
    def vague(cls, width: int) -> "Prior":
        precision = np.full(width, PRECISION)
        precision[0] = 0
        return cls(np.zeros(width), np.diag(precision))


@dataclass(frozen=True)
class Fit:
    """coefficients (p,), the intercept first; information (p, p): minus the second derivatives, prior included."""

    coefficients: np.ndarray
    information: np.ndarray
    converged: bool


def fit(design: Design, failed: np.ndarray, prior: Prior | None = None) -> Fit:
    """The coefficients with the largest posterior density; without `prior` a vague one. failed: truth values, n.

    The log-likelihood is that of McCullagh & Nelder (1989, 4.4), less half the squared distance from the prior's mean
    in its precision. The search starts at the prior's mean, or at the base rate.
    """
    prior = prior or Prior.vague(design.width)
    start = prior.mean.copy()
    if len(failed) >= 2 * FIRST_ROWS:
        part = slice(None, None, len(failed) // FIRST_ROWS)
        start = fit(design.take(part), failed[part], prior).coefficients
    elif not start.any():
        share = (failed.sum() + 0.5) / (len(failed) + 1)
        start[0] = np.log(share / (1 - share))
    y = failed.astype(float)

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        away = point - prior.mean
        pull = prior.precision @ away
        level, slope, curvature = -0.5 * float(away @ pull), -pull, -prior.precision.copy()
        for rows, block in design.blocks():
            eta = block @ point
            p = expit(eta)
            level += float((y[rows] * eta - softplus(eta)).sum())
            slope += block.T @ (y[rows] - p)
            curvature -= block.T @ (block * (p * (1 - p))[:, None])
        return level, slope, curvature

    point, converged = ascend(likelihood, start)
    return Fit(point, -likelihood(point)[2], converged)


def clustered_covariance(design: Design, failed: np.ndarray, found: Fit, cluster: np.ndarray) -> np.ndarray:
    """The sandwich covariance (p, p) of the coefficients where clusters differ (Liang & Zeger 1986).

    cluster: number of each row's, 0 or more. Scaled by clusters over clusters less one.
    """
    clusters = int(cluster.max()) + 1
    scores = np.zeros((clusters, design.width))
    for rows, block in design.blocks():
        residual = failed[rows] - expit(block @ found.coefficients)
        for column in range(design.width):
            weighted = block[:, column] * residual
            scores[:, column] += np.bincount(cluster[rows], weights=weighted, minlength=clusters)
    bread = np.linalg.inv(found.information)
    known = len(np.unique(cluster))
    return bread @ (scores.T @ scores) @ bread * (known / max(1, known - 1))
