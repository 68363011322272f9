"""The chance of a trial to fail among those of its stratum, by where it stands in the order of a user's day.

Given that K of a stratum's M trials failed, with odds by order that all strata have in common: conditional logistic
regression. The odds are linear, on the logarithmic scale, between the knots of log2(1 + runs), of the runs that the
user started before a trial that day and of those after it.
"""

import numpy as np
import polars as pl
from scipy.special import expit

from ttf.stats.basics.order import first_of_each

# Knots of the odds by order, at 2^knot - 1 runs.
_KNOTS = 4
_MOST_STEPS = 50
_SMALL_STEP = 1e-6
_PRIOR_VARIANCE = 0.25
_MOST_FITTED = 1 << 16
# Strata are worked out together by their trials, at most so many; those with more are not exact.
_CLASSES = (2, 4, 8, 16, 32)
_MOST_CELLS = 1 << 18


def chances_by_order(groups: pl.DataFrame, days: int) -> np.ndarray:
    """The chance of a trial of each group; groups: stratum, before, after, trials, failed, all_trials, all_failed.

    Sorted by the first three. The day of a stratum is the rest of its number divided by `days`: the odds are fitted to
    the last days with _MOST_FITTED groups that differ in order, the first of these days being whole.
    """
    chance = (groups["all_failed"] / groups["all_trials"]).to_numpy().copy()
    begin = first_of_each(groups["stratum"].to_numpy())
    size = np.diff(begin, append=groups.height)
    is_mixed = np.repeat(size > 1, size)
    if not is_mixed.any():
        return chance
    mixed = groups.filter(pl.Series(is_mixed))
    basis = np.hstack([_hats(mixed[name].to_numpy()) for name in ("before", "after")])
    day = mixed["stratum"].to_numpy() % days
    from_day_on = np.cumsum(np.bincount(day)[::-1])[::-1]
    fitted = day >= max(0, np.count_nonzero(from_day_on > _MOST_FITTED) - 1)
    slopes = Strata(mixed.filter(pl.Series(fitted)), basis[fitted]).slopes()
    # What is left is noise of the last digits, which may depend on the order of the strata.
    chance[is_mixed] = Strata(mixed, basis).chances(slopes.round(5)).round(12)
    return chance


def _hats(count: np.ndarray) -> np.ndarray:
    """A column for each knot but the first: 1 there, 0 at the others and linear in log2(1 + count) between; (n, 4)."""
    place = np.minimum(np.log2(1.0 + count), _KNOTS)[:, None]
    return np.clip(1 - np.abs(place - np.arange(1, _KNOTS + 1)), 0, None)


class Strata:
    """Strata of trials that differ in order, and the odds by order that fit them all best.

    Of M trials with odds w_1 .. w_M the K that fail are a set S with a chance in proportion to the product of its odds.
    Where M is at most _CLASSES[-1] a trial's chance is exact, from elementary symmetric polynomials; else that of
    independent trials whose odds have the factor that makes K of them fail on average, which differs by the order of
    1 / M.
    """

    def __init__(self, groups: pl.DataFrame, basis: np.ndarray) -> None:
        names = ("trials", "failed", "all_trials", "all_failed")
        self.trials, self.failed, self.total, self.all_failed = (
            groups[name].to_numpy().astype(np.int64) for name in names
        )
        self.basis = basis
        self.begin = first_of_each(groups["stratum"].to_numpy())
        self.size = np.diff(self.begin, append=groups.height)

    def slopes(self) -> np.ndarray:
        """The logarithmic odds by column of the basis: Newton's steps with M / (M - 1) of the variance of free trials.

        A normal prior of standard deviation 1 / 2 on each coefficient keeps them finite where order decides all.
        """
        slope = np.zeros(self.basis.shape[1])
        for _ in range(_MOST_STEPS):
            chance = self.chances(slope)
            gradient = (self.failed - self.trials * chance) @ self.basis - slope / _PRIOR_VARIANCE
            weight = self.trials * chance * (1 - chance)
            whole = np.repeat(np.add.reduceat(weight, self.begin), self.size)[:, None]
            mean = np.add.reduceat(weight[:, None] * self.basis, self.begin, axis=0).repeat(self.size, axis=0)
            away = self.basis - np.divide(mean, whole, out=np.zeros_like(mean), where=whole > 0)
            variance = (away * (weight * self.total / (self.total - 1))[:, None]).T @ away
            step = np.linalg.solve(variance + np.eye(slope.size) / _PRIOR_VARIANCE, gradient)
            slope = slope + step
            if np.abs(step).max() < _SMALL_STEP:
                break
        return slope

    def chances(self, slope: np.ndarray) -> np.ndarray:
        eta = (self.basis * slope).sum(axis=1)
        # Of a stratum only ratios matter: that of the first group is 1.
        odds = np.exp(eta - np.repeat(eta[self.begin], self.size))
        chance = np.empty(odds.size)
        of_stratum = self.total[self.begin]
        low = 1
        for high in (*_CLASSES, None):
            of_class = (of_stratum > low) & ((of_stratum <= high) if high else True)
            rows = np.flatnonzero(np.repeat(of_class, self.size))
            if rows.size and high:
                chance[rows] = self._exact(odds, np.flatnonzero(of_class), rows, high)
            elif rows.size:
                chance[rows] = self._of_many(odds, np.flatnonzero(of_class), rows)
            low = high
        return chance

    def _exact(self, odds: np.ndarray, strata: np.ndarray, rows: np.ndarray, most: int) -> np.ndarray:
        """most: the trials of a stratum at most."""
        found = []
        step = max(1, _MOST_CELLS // most**2)
        ends = np.cumsum(self.size[strata])
        for first in range(0, strata.size, step):
            some = strata[first : first + step]
            groups = rows[(ends[first - 1] if first else 0) : ends[min(first + step, strata.size) - 1]]
            times = self.trials[groups]
            stratum = np.repeat(np.arange(some.size), self.total[self.begin[some]])
            trial = np.arange(stratum.size) - np.repeat(first_of_each(stratum), self.total[self.begin[some]])
            padded = np.zeros((some.size, most))
            padded[stratum, trial] = np.repeat(odds[groups], times)
            chance = chances_given_count(padded, self.all_failed[self.begin[some]])
            found.append(chance[stratum, trial][np.cumsum(times) - 1])
        return np.concatenate(found)

    def _of_many(self, odds: np.ndarray, strata: np.ndarray, rows: np.ndarray) -> np.ndarray:
        size = self.size[strata]
        begin = np.cumsum(size) - size
        trials, log_odds = self.trials[rows], np.log(odds[rows])
        failed, total = self.all_failed[self.begin[strata]], self.total[self.begin[strata]]
        factor = np.log(failed / (total - failed)) - np.add.reduceat(trials * log_odds, begin) / total
        for _ in range(_MOST_STEPS):
            chance = expit(log_odds + np.repeat(factor, size))
            spread = np.add.reduceat(trials * chance * (1 - chance), begin)
            step = np.clip((failed - np.add.reduceat(trials * chance, begin)) / spread, -2, 2)
            factor = factor + step
            if np.abs(step).max() < _SMALL_STEP**2:
                break
        return expit(log_odds + np.repeat(factor, size))


def chances_given_count(odds: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The chance of each of a row's trials to be among the `count` that fail (conditional Bernoulli).

    odds: (rows, trials), 0 where a row has fewer; count: 1 to one less than the trials of the row. With e_k the k-th
    elementary symmetric polynomial of the odds: odds x e_(count - 1) of the others / e_count of all.
    """
    rows, trials = odds.shape
    width = trials + 1
    before = np.zeros((trials + 1, rows, width))
    before[0, :, 0] = 1
    for place in range(trials):
        before[place + 1] = before[place]
        before[place + 1, :, 1:] += odds[:, place, None] * before[place, :, :-1]
    whole = before[trials, np.arange(rows), count]
    rest = count[:, None] - 1 - np.arange(width)
    is_there, rest = rest >= 0, np.clip(rest, 0, None)
    after = np.zeros((rows, width))
    after[:, 0] = 1
    chance = np.empty_like(odds)
    for place in reversed(range(trials)):
        others = np.where(is_there, before[place] * np.take_along_axis(after, rest, axis=1), 0).sum(axis=1)
        chance[:, place] = odds[:, place] * others / whole
        after[:, 1:] += odds[:, place, None] * after[:, :-1]
    return chance
