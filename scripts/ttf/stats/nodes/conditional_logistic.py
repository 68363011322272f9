"""Probability that a trial fails given the failures of its stratum, by its position in the order of a user's day.

Conditional logistic regression: given that K of a stratum's M trials failed, with odds by order that are common to all
strata. The log odds are linear between the knots of log2(1 + runs), for the runs that the user started before a trial
that day and for those after it.
"""

from itertools import pairwise

import numpy as np
import polars as pl
from scipy.special import expit

from ttf.stats.basics.order import run_starts

# Knots of the odds by order, at 2^knot - 1 runs.
_KNOTS = 4
_MOST_STEPS = 50
_SMALL_STEP = 1e-6
_PRIOR_VARIANCE = 0.25
_MOST_FITTED_GROUPS = 1 << 16
# Strata are computed in classes by their maximum number of trials; larger strata are approximated.
_CLASSES = (2, 4, 8, 16, 32)
_MOST_CELLS = 1 << 18


def chances_by_order(groups: pl.DataFrame, days: int) -> np.ndarray:
    """Return the failure probability of a trial of each group.

    Parameters
    ----------
    groups : stratum, before, after, trials, failed, all_trials, all_failed; sorted by the first three
    days : the day of a stratum is its number modulo `days`

    Returns
    -------
    (groups,) floats

    Notes
    -----
    The odds are fitted to the last whole days with about _MOST_FITTED_GROUPS groups of strata whose trials differ in
    order, by conditional logistic regression (Gail et al. 1981, Biometrika 68, as in R's survival::clogit), with the
    prior of `Strata.slopes`.

    Examples
    --------
    >>> columns = {"stratum": [0, 0], "before": [0, 1], "after": [0, 0], "trials": [400, 400], "failed": [100, 300]}
    >>> chances_by_order(pl.DataFrame(columns | {"all_trials": [800, 800], "all_failed": [400, 400]}), 1).round(3)
    array([0.27, 0.73])
    """
    chance = (groups["all_failed"] / groups["all_trials"]).to_numpy().copy()
    size = np.diff(run_starts(groups["stratum"].to_numpy()), append=groups.height)
    is_mixed = np.repeat(size > 1, size)
    if not is_mixed.any():
        return chance
    mixed = groups.filter(pl.Series(is_mixed))
    basis = np.hstack([_hat_functions(mixed[name].to_numpy()) for name in ("before", "after")])
    day = mixed["stratum"].to_numpy() % days
    groups_from_day = np.cumsum(np.bincount(day)[::-1])[::-1]
    is_fitted = day >= max(0, np.count_nonzero(groups_from_day > _MOST_FITTED_GROUPS) - 1)
    slopes = Strata(mixed.filter(pl.Series(is_fitted)), basis[is_fitted]).slopes()
    # Round away noise in the last digits, which may depend on the order of the strata.
    chance[is_mixed] = Strata(mixed, basis).chances(slopes.round(5)).round(12)
    return chance


def _hat_functions(count: np.ndarray) -> np.ndarray:
    """Return an array (n, 4): for each knot but the first 1 there, 0 at the others, linear in log2(1 + count)."""
    position = np.minimum(np.log2(1.0 + count), _KNOTS)[:, None]
    return np.clip(1 - np.abs(position - np.arange(1, _KNOTS + 1)), 0, None)


class Strata:
    """Strata of trials that differ in order, and the best-fitting odds by order.

    Of M trials with odds w_1 .. w_M, the set S of the K that fail has probability proportional to the product of its
    odds. If M is at most _CLASSES[-1], a trial's probability is exact, from elementary symmetric polynomials. Else it
    is that of independent trials, with odds scaled so that K fail on average; the error is of the order of 1 / M.
    """

    def __init__(self, groups: pl.DataFrame, basis: np.ndarray) -> None:
        self.trials, self.failed, self.total, self.all_failed = (
            groups[name].to_numpy().astype(np.int64) for name in ("trials", "failed", "all_trials", "all_failed")
        )
        self.basis = basis
        self.starts = run_starts(groups["stratum"].to_numpy())
        self.size = np.diff(self.starts, append=groups.height)

    def slopes(self) -> np.ndarray:
        """Fit the log odds by column of the basis by Newton's method; of M trials, variances are scaled by M / (M - 1).

        A normal prior of standard deviation 1 / 2 on each coefficient keeps them finite if order decides everything.
        """
        slope = np.zeros(self.basis.shape[1])
        for _ in range(_MOST_STEPS):
            chance = self.chances(slope)
            gradient = (self.failed - self.trials * chance) @ self.basis - slope / _PRIOR_VARIANCE
            weight = self.trials * chance * (1 - chance)
            total_weight = np.repeat(np.add.reduceat(weight, self.starts), self.size)[:, None]
            mean = np.add.reduceat(weight[:, None] * self.basis, self.starts, axis=0).repeat(self.size, axis=0)
            centred = self.basis - np.divide(mean, total_weight, out=np.zeros_like(mean), where=total_weight > 0)
            variance = (centred * (weight * self.total / (self.total - 1))[:, None]).T @ centred
            step = np.linalg.solve(variance + np.eye(slope.size) / _PRIOR_VARIANCE, gradient)
            slope = slope + step
            if np.abs(step).max() < _SMALL_STEP:
                break
        return slope

    def chances(self, slope: np.ndarray) -> np.ndarray:
        """Return the probability that a trial of each group fails, at these slopes."""
        eta = (self.basis * slope).sum(axis=1)
        # Only ratios in a stratum matter: the first group has odds 1.
        odds = np.exp(eta - np.repeat(eta[self.starts], self.size))
        chance = np.empty(odds.size)
        totals = self.total[self.starts]
        for low, high in pairwise((1, *_CLASSES, np.inf)):
            is_in_class = (totals > low) & (totals <= high)
            rows = np.flatnonzero(np.repeat(is_in_class, self.size))
            if rows.size and high in _CLASSES:
                chance[rows] = self._exact(odds, np.flatnonzero(is_in_class), rows, int(high))
            elif rows.size:
                chance[rows] = self._approximate(odds, np.flatnonzero(is_in_class), rows)
        return chance

    def _exact(self, odds: np.ndarray, strata: np.ndarray, rows: np.ndarray, width: int) -> np.ndarray:
        """Return the exact probabilities of the groups in `rows`. width: maximum number of trials of a stratum."""
        chances = []
        step = max(1, _MOST_CELLS // width**2)
        group_ends = np.cumsum(self.size[strata])
        for first in range(0, strata.size, step):
            block = strata[first : first + step]
            groups = rows[(group_ends[first - 1] if first else 0) : group_ends[min(first + step, strata.size) - 1]]
            trials_per_group = self.trials[groups]
            stratum = np.repeat(np.arange(block.size), self.total[self.starts[block]])
            trial = np.arange(stratum.size) - np.repeat(run_starts(stratum), self.total[self.starts[block]])
            padded = np.zeros((block.size, width))
            padded[stratum, trial] = np.repeat(odds[groups], trials_per_group)
            chance = chances_given_count(padded, self.all_failed[self.starts[block]])
            chances.append(chance[stratum, trial][np.cumsum(trials_per_group) - 1])
        return np.concatenate(chances)

    def _approximate(self, odds: np.ndarray, strata: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the probabilities of the groups in `rows` if the trials of a stratum are independent."""
        size = self.size[strata]
        starts = np.cumsum(size) - size
        trials, log_odds = self.trials[rows], np.log(odds[rows])
        failed, total = self.all_failed[self.starts[strata]], self.total[self.starts[strata]]
        factor = np.log(failed / (total - failed)) - np.add.reduceat(trials * log_odds, starts) / total
        for _ in range(_MOST_STEPS):
            chance = expit(log_odds + np.repeat(factor, size))
            variance = np.add.reduceat(trials * chance * (1 - chance), starts)
            step = np.clip((failed - np.add.reduceat(trials * chance, starts)) / variance, -2, 2)
            factor = factor + step
            if np.abs(step).max() < _SMALL_STEP**2:
                break
        return expit(log_odds + np.repeat(factor, size))


def chances_given_count(odds: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the probability of each trial to be among the `count` of its row that fail (conditional Bernoulli).

    odds: float array (rows, trials), 0 if a row has fewer trials. count: int array (rows,), from 1 to trials - 1.

    With e_k the k-th elementary symmetric polynomial of the odds: odds x e_(count - 1) of the others / e_count of all.

    >>> chances_given_count(np.array([[1.0, 1.0, 2.0]]), np.array([1]))
    array([[0.25, 0.25, 0.5 ]])
    """
    rows, trials = odds.shape
    width = trials + 1
    prefix = np.zeros((trials + 1, rows, width))
    prefix[0, :, 0] = 1
    for index in range(trials):
        prefix[index + 1] = prefix[index]
        prefix[index + 1, :, 1:] += odds[:, index, None] * prefix[index, :, :-1]
    total = prefix[trials, np.arange(rows), count]
    # suffix[:, k]: the polynomial of degree count - 1 - k of the later trials.
    suffix = np.zeros((rows, width))
    suffix[np.arange(rows), count - 1] = 1
    chance = np.empty_like(odds)
    for index in reversed(range(trials)):
        chance[:, index] = odds[:, index] * (prefix[index] * suffix).sum(axis=1) / total
        suffix[:, :-1] += odds[:, index, None] * suffix[:, 1:]
    return chance
