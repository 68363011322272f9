"""Gamma frailty with one Weibull shape: a hazard that decreases with age, or a mixture of constant hazards?

If users fail at different constant rates, those who fail often leave early: over all users the rate decreases with age,
although no user's does (Vaupel & Yashin 1985). So each group has its own rate, a gamma variable of mean 1 times a
Weibull hazard with a common shape (Hougaard 2000, chapter 7). The groups' rates are integrated out: a group with d
failures and cumulative hazard A adds log Gamma(theta + d) - log Gamma(theta) + theta log theta - (theta + d)
log(theta + A), where 1 / theta is the variance of the rates. The order of ages within groups identifies the shape.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln, polygamma

from ttf.stats.basics.newton import maximise
from ttf.stats.lifetimes.lifetime_sample import ZERO_STANDS_FOR_S

# Bins are a factor of 1.04 wide: replacing durations by the mean of their bin changes no trace's shape by over 0.1 %.
BINS_PER_OCTAVE = 16
# A gamma with a smaller variance counts as no variation.
SMALLEST_VARIANCE = 1e-6


def age_bin(duration: pl.Expr) -> pl.Expr:
    """Return the bin (Int16) of a duration in whole seconds (Int64); 0 s is in bin 0.

    >>> pl.DataFrame({"s": [0, 1, 2]}).select(age_bin(pl.col("s")))["s"].to_list()
    [0, 1, 17]
    """
    octave = (duration.clip(1).log(2) * BINS_PER_OCTAVE).floor() + 1
    return pl.when(duration > 0).then(octave).otherwise(0).cast(pl.Int16)


@dataclass(frozen=True)
class Ages:
    """Log of the mean age (s) in each bin, of all durations and of those that failed; 0 s counts as half a second."""

    durations: np.ndarray
    events: np.ndarray

    @classmethod
    def from_sums(
        cls, bins: np.ndarray, durations: np.ndarray, seconds: np.ndarray, events: np.ndarray, event_seconds: np.ndarray
    ) -> "Ages":
        """Return mean log ages by bin. durations, events: numbers in each; seconds, event_seconds: their sums."""
        logs = np.zeros((2, int(bins.max(initial=-1)) + 1))
        for row, counts, sums in zip(logs, (durations, events), (seconds, event_seconds), strict=True):
            row[bins] = np.log(np.maximum(sums / np.maximum(counts, 1), ZERO_STANDS_FOR_S))
        return cls(*logs)


@dataclass(frozen=True)
class Units:
    """Groups, or clusters, of one stratum.

    durations: sparse array (units, bins of age). logs: log age of the bins over the geometric mean of the failures'
    ages. failures, event_logs: number of failures and sum of their log ages, by unit.
    """

    durations: csr_array
    logs: np.ndarray
    failures: np.ndarray
    event_logs: np.ndarray

    @classmethod
    def from_entries(
        cls, unit: np.ndarray, age: np.ndarray, durations: np.ndarray, events: np.ndarray, ages: Ages
    ) -> "Units":
        """Count durations by unit and age.

        unit, age, durations, events: an entry per unit and bin (`age_bin`), in any order; units are numbered from 0,
        and at least one event occurs.
        """
        shape, has_events = (int(unit.max()) + 1, ages.durations.size), events > 0
        events_by_age = np.bincount(age, events, shape[1])
        centre = events_by_age @ ages.events / events_by_age.sum()
        event_counts = _count_by_unit(unit[has_events], age[has_events], events[has_events], shape)
        durations_by_unit, failures = _count_by_unit(unit, age, durations, shape), np.bincount(unit, events)
        return cls(durations_by_unit, ages.durations - centre, failures, event_counts @ (ages.events - centre))

    def merge(self) -> "Units":
        """Return all units as one."""
        durations = csr_array(np.bincount(self.durations.indices, self.durations.data, self.logs.size)[None, :])
        return Units(durations, self.logs, *(values.sum(keepdims=True) for values in (self.failures, self.event_logs)))

    @cached_property
    def failure_counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distinct numbers of failures, the index of each unit's number, and the units with each number."""
        failures = self.failures.astype(np.int64)
        units_with = np.bincount(failures)
        occurs = units_with > 0
        return np.flatnonzero(occurs).astype(float), (np.cumsum(occurs) - 1)[failures], units_with[occurs]

    @cached_property
    def members(self) -> np.ndarray:
        """Number of durations of each unit."""
        return self.durations.sum(axis=1)

    def hazards(self, level: float, shape: float) -> np.ndarray:
        """Return e^level times sums by unit of age^shape, age^shape log age and age^shape (log age)^2."""
        powers = np.exp(level + shape * self.logs)
        return self.durations @ np.column_stack([powers, powers * self.logs, powers * self.logs**2])


def _count_by_unit(unit: np.ndarray, age: np.ndarray, count: np.ndarray, shape: tuple[int, int]) -> csr_array:
    return csr_array((count.astype(float), (unit, age)), shape)  # sums duplicates


@dataclass(frozen=True)
class Fit:
    """Maximum-likelihood fit: point (log level, log shape[, log theta]), scores and hazard by unit, information."""

    point: np.ndarray
    scores: np.ndarray
    information: np.ndarray
    hazard: np.ndarray
    converged: bool

    @property
    def shape(self) -> float:
        return float(np.exp(self.point[1]))

    @property
    def variance(self) -> float:
        """Variance of the units' rates about a mean of 1."""
        return float(np.exp(-self.point[2])) if self.point.size > 2 else 0.0


def fit_pooled(units: Units) -> Fit:
    """Fit a Weibull with the same rate for all units.

    Parameters
    ----------
    units : units of one stratum, of which at least one has failed

    Returns
    -------
    fit at (log level, log shape)

    References
    ----------
    Kalbfleisch & Prentice (1980), The Statistical Analysis of Failure Time Data, section 3.4

    Examples
    --------
    >>> bins = np.array([1, 20, 40])
    >>> ages = Ages.from_sums(bins, np.array([2, 2, 2]), np.array([2, 4, 10]), np.array([2, 1, 1]), np.array([2, 2, 5]))
    >>> unit, age = np.array([0, 0, 1, 1]), np.array([1, 20, 20, 40])
    >>> units = Units.from_entries(unit, age, np.array([2, 1, 1, 2]), np.array([2, 1, 0, 1]), ages)
    >>> round(fit_pooled(units).shape, 3)
    1.383
    """
    all_units = units.merge()
    # With shape 1 the level has a closed form.
    start = np.array([np.log(all_units.failures / all_units.hazards(0.0, 1.0)[:, 0]).item(), 0.0])
    return _maximise(units, start, all_units)


def fit_frailty(units: Units, pooled_fit: Fit) -> Fit:
    """Fit a Weibull with gamma frailty by unit.

    Parameters
    ----------
    units : units of one stratum, of which at least one has failed
    pooled_fit : of `fit_pooled`

    Returns
    -------
    fit at (log level, log shape, log theta), where 1 / theta is the variance of the units' rates; `pooled_fit` if
    failures vary no more than by chance

    References
    ----------
    Hougaard (2000), Analysis of Multivariate Survival Data, chapter 7

    Examples
    --------
    >>> bins, n = np.array([20, 40]), np.array([24, 16])
    >>> ages = Ages.from_sums(bins, n, np.array([48, 80]), np.array([13, 8]), np.array([26, 40]))
    >>> unit, age, events = np.repeat(np.arange(4), 2), np.tile(bins, 4), np.array([6, 3, 1, 1, 6, 3, 0, 1])
    >>> units = Units.from_entries(unit, age, np.tile([6, 4], 4), events, ages)
    >>> round(fit_frailty(units, fit_pooled(units)).variance, 3)
    0.46
    """
    # Slope of the likelihood in the variance of the rates at 0; the start value is by moments.
    surplus = ((units.failures - pooled_fit.hazard) ** 2).sum() - units.failures.sum()
    if surplus <= 0:
        return pooled_fit
    frailty_fit = _maximise(units, np.append(pooled_fit.point, np.log((pooled_fit.hazard**2).sum() / surplus)), units)
    return frailty_fit if frailty_fit.variance > SMALLEST_VARIANCE else pooled_fit


def _maximise(units: Units, start: np.ndarray, search_units: Units) -> Fit:
    """Return the fit of `units`. search_units: units with the same maximum, which may be fewer."""
    with np.errstate(all="ignore"):  # a step that overflows is rejected
        point, converged = maximise(lambda point: likelihood(search_units, point), start)
        _, _, curvature, scores, hazard = likelihood(units, point)
    return Fit(point, np.column_stack(scores), -curvature, hazard, converged)


def likelihood(units: Units, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, list, np.ndarray]:
    """Return the log-likelihood of gamma frailty at a point, up to a constant, with its derivatives.

    Parameters
    ----------
    units : durations by unit
    point : log level, log shape[, log theta]; without the last all units have one rate

    Returns
    -------
    level, slope (k,), curvature (k, k), scores (slope by unit, an array per parameter), hazard (units,): cumulative
    hazard by unit at its rate's posterior mean

    Notes
    -----
    log Gamma(theta + d) - log Gamma(theta) + theta log theta - (theta + d) log(theta + A) for each unit, with d
    failures and cumulative hazard A (Hougaard 2000, chapter 7).

    Examples
    --------
    >>> ages = Ages.from_sums(np.array([1]), np.array([3]), np.array([3]), np.array([2]), np.array([2]))
    >>> units = Units.from_entries(np.zeros(1, int), np.ones(1, int), np.array([3]), np.array([2]), ages)
    >>> round(float(likelihood(units, np.zeros(2))[0]), 3)  # -A: three durations of age 1 at a rate of 1
    -3.0
    """
    failures, logs = units.failures, units.event_logs
    shape = np.exp(point[1])
    first, second, third = units.hazards(point[0], shape).T
    second, third = shape * second, shape**2 * third + shape * second
    level = failures.sum() * (point[0] + point[1]) + shape * logs.sum()
    if point.size == 2:
        scores = [failures - first, failures + shape * logs - second]
        cross_term = -second.sum()
        curvature = np.array([[-first.sum(), cross_term], [cross_term, shape * logs.sum() - third.sum()]])
        return level - first.sum(), np.array([score.sum() for score in scores]), curvature, scores, first
    theta = np.exp(point[2])
    theta_plus_hazard = theta + first
    rate = (theta + failures) / theta_plus_hazard
    rate_slope, theta_slope = rate / theta_plus_hazard, theta * (1 - rate) / theta_plus_hazard
    # Many units share few distinct numbers of failures.
    counts, index, units_with = units.failure_counts
    digammas, trigammas = digamma(theta + counts) - digamma(theta), polygamma(1, theta + counts) - polygamma(1, theta)
    log_gammas = (gammaln(theta + counts) - gammaln(theta)) @ units_with
    log_ratio = np.log1p(first / theta)
    theta_scores = digammas[index] - log_ratio + 1 - rate
    scores = [failures - rate * first, failures + shape * logs - rate * second, theta * theta_scores]
    trigamma_sum = trigammas @ units_with + (1 / theta - (2 - rate) / theta_plus_hazard).sum()
    theta_cross = [-(theta_slope @ first), -(theta_slope @ second)]
    cross_term = (rate_slope * first) @ second - rate @ second
    curvature = np.array(
        [
            [(rate_slope * first) @ first - rate @ first, cross_term, theta_cross[0]],
            [cross_term, shape * logs.sum() + (rate_slope * second) @ second - rate @ third, theta_cross[1]],
            [*theta_cross, theta * theta_scores.sum() + theta**2 * trigamma_sum],
        ]
    )
    # The terms of theta in the log of theta + hazard.
    level += log_gammas - failures @ log_ratio - failures.sum() * point[2] - theta * log_ratio.sum()
    return level, np.array([score.sum() for score in scores]), curvature, scores, rate * first
