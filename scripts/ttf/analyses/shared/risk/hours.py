"""The hours until failure of jobs that fail: lognormal regression, jobs still running being right-censored.

Of a job that fails the logarithm of the hours is normal about a linear function of its features. Of a job that still
runs nobody knows whether it will fail: it counts as one that fails later than now, by the probability of that, given
that it has run so long (a mixture of those that fail and those that do not, by the EM algorithm of Dempster, Laird &
Rubin 1977).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from ttf.analyses.shared.risk.encoder import Design
from ttf.analyses.shared.risk.logistic import PRECISION
from ttf.stats.basics.newton import ascend

# A run of less than half a second is none of 0.
SHORTEST_H = 0.5 / 3600
MOST_ROUNDS, SETTLED = 50, 1e-6
# Without this many failures of known time there is no regression.
FEWEST = 20


@dataclass(frozen=True)
class Hours:
    """coefficients (p,) of the logarithm of hours; sigma: its standard deviation; horizon_h: the longest seen."""

    coefficients: np.ndarray
    sigma: float
    horizon_h: float
    failures: int
    censored: float
    converged: bool

    def median(self, design: Design) -> np.ndarray:
        """Hours within which half of the jobs like each have failed, if they fail."""
        return np.exp(design.dot(self.coefficients))

    def expected(self, design: Design, until: float | np.ndarray | None = None) -> np.ndarray:
        """Mean hours to failure, those beyond the horizon (or `until`) counting as that long.

        E min(T, h) = exp(mu + sigma^2 / 2) Phi((ln h - mu - sigma^2) / sigma) + h (1 - Phi((ln h - mu) / sigma)).
        """
        mu, sigma = design.dot(self.coefficients), self.sigma
        h = np.full(len(design), self.horizon_h if until is None else until, dtype=float)
        away = (np.log(h) - mu) / sigma
        # In logarithms, as the mean of a wide distribution is beyond any number.
        below = np.exp(np.minimum(mu + sigma**2 / 2 + log_ndtr(away - sigma), 700))
        return below + h * ndtr(-away)

    def within(self, design: Design, hours: float) -> np.ndarray:
        """The probability of failing within so many hours, if the job fails."""
        return ndtr((np.log(hours) - design.dot(self.coefficients)) / self.sigma)


def fit_hours(
    design: Design,
    hours: np.ndarray,
    failed: np.ndarray,
    running: np.ndarray,
    probability: np.ndarray,
    others: np.ndarray,
) -> Hours | None:
    """The regression over failures (failed, hours known) and jobs still running; None where failures are too few.

    hours (n): of the run as far as it was seen; probability (n): that a job fails; others: the hours of jobs that ended
    otherwise. How long such a job may go on, that one which still runs could be, is said by the Kaplan-Meier curve of
    these with those that still run, each by the probability that it does not fail.
    """
    told = np.isfinite(hours)
    events, open_ = np.flatnonzero(failed & told), np.flatnonzero(running & told)
    if len(events) < FEWEST:
        return None
    rows = np.concatenate([events, open_])
    part, censored = design.take(rows), np.arange(len(rows)) >= len(events)
    log_h = np.log(np.maximum(hours[rows], SHORTEST_H))
    still, others = hours[open_], others[np.isfinite(others)]
    chance = probability[rows]
    weights = np.where(censored, chance, 1.0)
    point = _start(part, log_h, censored)
    for _ in range(MOST_ROUNDS):
        point, converged = censored_lognormal(part, log_h, censored, weights, point)
        if not len(open_):
            break
        stays = ndtr((part.dot(point[:-1]) - log_h) / np.exp(point[-1]))
        fails, goes_on = chance * stays, np.ones(len(rows))
        goes_on[censored] = _survival(others, still, 1 - weights[censored])
        found = np.where(censored, fails / np.maximum(fails + (1 - chance) * goes_on, 1e-300), 1.0)
        moved, weights = np.abs(found - weights).max(), found
        if moved < SETTLED:
            break
    horizon = float(np.exp(log_h[~censored].max()))
    return Hours(point[:-1], float(np.exp(point[-1])), horizon, len(events), float(weights[censored].sum()), converged)


def _survival(ended: np.ndarray, still: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The Kaplan-Meier curve of hours that ended and of `still`, censored and weighted, just before each of `still`."""
    times, number = np.unique(ended, return_counts=True)
    order = np.argsort(still)
    # Of those that still run, the weights of the ones that had run for at least so long.
    from_here = np.append(np.cumsum(weights[order][::-1])[::-1], 0)
    at_risk = np.cumsum(number[::-1])[::-1] + from_here[np.searchsorted(still[order], times)]
    curve = np.append(1, np.cumprod(1 - number / at_risk))
    return curve[np.searchsorted(times, still)]


def _start(design: Design, log_h: np.ndarray, censored: np.ndarray) -> np.ndarray:
    start = np.zeros(design.width + 1)
    start[0], start[-1] = log_h[~censored].mean(), np.log(max(log_h[~censored].std(), 0.1))
    return start


def censored_lognormal(
    design: Design, log_h: np.ndarray, censored: np.ndarray, weights: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, bool]:
    """(coefficients and log sigma, converged) with the largest posterior density; the prior is that of `logistic`.

    An event adds log phi(z) - log sigma, a censored row log Phi(-z), z = (log h - mu) / sigma (Klein & Moeschberger
    2003, 12.5).
    """
    precision = np.full(design.width + 1, PRECISION)
    precision[[0, -1]] = 0

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        sigma = np.exp(point[-1])
        level = -0.5 * float(precision @ point**2)
        slope, curvature = -precision * point, -np.diag(precision)
        for rows, block in design.blocks():
            z = (log_h[rows] - block @ point[:-1]) / sigma
            c, w = censored[rows], weights[rows]
            tail = log_ndtr(-z)
            # Mills' ratio turned over: the hazard of a standard normal.
            hazard = np.exp(np.minimum(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - tail, 700))
            level += float((w * np.where(c, tail, -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - point[-1])).sum())
            # First and second derivative in z, of which those in the parameters follow: dz/dmu = -1/sigma, dz/ds = -z.
            first = w * np.where(c, -hazard, -z)
            second = w * np.where(c, -hazard * (hazard - z), -1.0)
            slope[:-1] += block.T @ (-first / sigma)
            slope[-1] += float((-first * z).sum() - (w * ~c).sum())
            curvature[:-1, :-1] += block.T @ (block * (second / sigma**2)[:, None])
            cross = block.T @ ((second * z + first) / sigma)
            curvature[:-1, -1] += cross
            curvature[-1, :-1] += cross
            curvature[-1, -1] += float((second * z**2 + first * z).sum())
        return level, slope, curvature

    return ascend(likelihood, start)
