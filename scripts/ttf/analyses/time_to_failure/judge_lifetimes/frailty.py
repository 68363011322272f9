"""A failure rate that falls with age, or a mixture of rates that do not: gamma frailty with one Weibull shape.

Of users who fail at constant rates that differ, those who fail much are soon gone: over all of them the rate falls with
age, though nobody's does (Vaupel & Yashin 1985). So each group has a rate of its own, a gamma variable of mean 1 times
a Weibull hazard of a shape that all have in common (Hougaard 2000, chapter 7). The groups' rates are integrated out, so
that a group with d failures and the cumulative hazard A adds log Gamma(theta + d) - log Gamma(theta) + theta log theta
- (theta + d) log(theta + A), 1 / theta being the variance of the rates: what tells of the shape is the order of ages
within groups.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln, polygamma

from ttf.analyses.time_to_failure.fit_mttf.lifetime_sample import ZERO_STANDS_FOR_S
from ttf.stats.basics.newton import ascend

# Bins are a factor of 1.04 wide: lives that stand at the mean of theirs move no shape of a trace by more than 0.1 %.
BINS_AN_OCTAVE = 16
# A gamma of a smaller variance is no spread at all.
SMALLEST_VARIANCE = 1e-6


def age_bin(duration: pl.Expr) -> pl.Expr:
    """The bin of a duration in whole seconds (Int64), 0 of 0 s: an Int16."""
    octave = (duration.clip(1).log(2) * BINS_AN_OCTAVE).floor() + 1
    return pl.when(duration > 0).then(octave).otherwise(0).cast(pl.Int16)


@dataclass(frozen=True)
class Ages:
    """Of each bin of age, the log of the mean age (s) of the lives in it, and of those that failed; of 0 s half one."""

    lives: np.ndarray
    events: np.ndarray

    @classmethod
    def of(
        cls, age: np.ndarray, lives: np.ndarray, seconds: np.ndarray, events: np.ndarray, until: np.ndarray
    ) -> "Ages":
        """age: a bin each; lives, events: their numbers in it; seconds, until: the sums of their durations."""
        logs = np.zeros((2, int(age.max(initial=-1)) + 1))
        for row, counts, sums in zip(logs, (lives, events), (seconds, until), strict=True):
            row[age] = np.log(np.maximum(sums / np.maximum(counts, 1), ZERO_STANDS_FOR_S))
        return cls(*logs)


@dataclass(frozen=True)
class Units:
    """Groups, or clusters, of one stratum.

    lives: by unit and bin of age, a sparse array; logs: of the bins' ages, over the failures' geometric mean; failures,
    event_logs: by unit, their number and the sum of their log ages.
    """

    lives: csr_array
    logs: np.ndarray
    failures: np.ndarray
    event_logs: np.ndarray

    @classmethod
    def of(cls, unit: np.ndarray, age: np.ndarray, lives: np.ndarray, events: np.ndarray, ages: Ages) -> "Units":
        """unit: 0 up to the number of units less 1; age: of `age_bin`; lives, events: their numbers, an event or more.

        An entry of the four arrays is of some lives of one unit and age; their order plays no part.
        """
        shape, hit = (int(unit.max()) + 1, ages.lives.size), events > 0
        failures = _by_unit(unit[hit], age[hit], events[hit], shape)
        at_age = failures.sum(axis=0)
        centre = at_age @ ages.events / at_age.sum()
        counted = _by_unit(unit, age, lives, shape)
        return cls(counted, ages.lives - centre, failures.sum(axis=1), failures @ (ages.events - centre))

    def together(self) -> "Units":
        """All of them as one unit."""
        lives = csr_array(self.lives.sum(axis=0)[None, :])
        return Units(lives, self.logs, *(values.sum(keepdims=True) for values in (self.failures, self.event_logs)))

    @cached_property
    def counted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(numbers of failures that units have, the place of each unit's among them, how many units have each)."""
        failures = self.failures.astype(np.int64)
        units_with = np.bincount(failures)
        there = units_with > 0
        return np.flatnonzero(there).astype(float), (np.cumsum(there) - 1)[failures], units_with[there]

    @property
    def members(self) -> np.ndarray:
        return self.lives.sum(axis=1)

    def hazards(self, level: float, shape: float) -> np.ndarray:
        """e^level times the sums by unit of age^shape, age^shape log age and age^shape (log age)^2: three columns."""
        powers = np.exp(level + shape * self.logs)
        return self.lives @ np.column_stack([powers, powers * self.logs, powers * self.logs**2])


def _by_unit(unit: np.ndarray, age: np.ndarray, count: np.ndarray, shape: tuple[int, int]) -> csr_array:
    counted = csr_array((count.astype(float), (unit, age)), shape)
    counted.sum_duplicates()
    return counted


@dataclass(frozen=True)
class Fit:
    """Of maximum likelihood: point (log level, log shape[, log theta]), scores by unit, information; hazard by unit."""

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
        """Of the units' rates, about a mean of 1."""
        return float(np.exp(-self.point[2])) if self.point.size > 2 else 0.0


def pooled(units: Units) -> Fit:
    """The Weibull of units that are all alike. Some unit has failed."""
    together = units.together()
    # Of a shape of 1 the level has a closed form.
    start = np.array([np.log(together.failures / together.hazards(0.0, 1.0)[:, 0]).item(), 0.0])
    return _fitted(units, start, together)


def within(units: Units, alike: Fit) -> Fit:
    """The Weibull with a gamma frailty by unit; alike, which is `pooled`, where failures spread as by chance alone."""
    # The slope of the likelihood in the variance of the rates where it is 0; and where it is, by moments.
    surplus = ((units.failures - alike.hazard) ** 2).sum() - units.failures.sum()
    if surplus <= 0:
        return alike
    found = _fitted(units, np.append(alike.point, np.log((alike.hazard**2).sum() / surplus)), units)
    return found if found.variance > SMALLEST_VARIANCE else alike


def _fitted(units: Units, start: np.ndarray, searched: Units) -> Fit:
    """searched: units with the same maximum."""
    with np.errstate(all="ignore"):  # a step that leads out of the numbers is taken back
        point, converged = ascend(lambda point: likelihood(searched, point), start)
        _, _, curvature, scores, hazard = likelihood(units, point)
    return Fit(point, np.column_stack(scores), -curvature, hazard, converged)


def likelihood(units: Units, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, list, np.ndarray]:
    """(log-likelihood but for a constant, slope, curvature, scores, hazard) at log level, log shape[, log theta].

    scores: the slope by unit, an array for each parameter; hazard: cumulative, by unit, of its rate's posterior mean.
    """
    failures, logs = units.failures, units.event_logs
    shape = np.exp(point[1])
    first, second, third = units.hazards(point[0], shape).T
    second, third = shape * second, shape**2 * third + shape * second
    level = failures.sum() * (point[0] + point[1]) + shape * logs.sum()
    if point.size == 2:
        scores = [failures - first, failures + shape * logs - second]
        both = -second.sum()
        curvature = np.array([[-first.sum(), both], [both, shape * logs.sum() - third.sum()]])
        return level - first.sum(), np.array([each.sum() for each in scores]), curvature, scores, first
    theta = np.exp(point[2])
    beyond = theta + first
    rate = (theta + failures) / beyond
    pull, drift = rate / beyond, theta * (1 - rate) / beyond
    # Of few numbers of failures, each the same for many units.
    counts, place, units_with = units.counted
    digammas, bends = digamma(theta + counts) - digamma(theta), polygamma(1, theta + counts) - polygamma(1, theta)
    log_gammas = (gammaln(theta + counts) - gammaln(theta)) @ units_with
    spread = np.log1p(first / theta)
    of_theta = digammas[place] - spread + 1 - rate
    scores = [failures - rate * first, failures + shape * logs - rate * second, theta * of_theta]
    bend = bends @ units_with + (1 / theta - (2 - rate) / beyond).sum()
    to_theta = [-(drift @ first), -(drift @ second)]
    both = (pull * first) @ second - rate @ second
    curvature = np.array(
        [
            [(pull * first) @ first - rate @ first, both, to_theta[0]],
            [both, shape * logs.sum() + (pull * second) @ second - rate @ third, to_theta[1]],
            [*to_theta, theta * of_theta.sum() + theta**2 * bend],
        ]
    )
    # Of the log of theta + hazard, the part that is theta's.
    level += log_gammas - failures @ spread - failures.sum() * point[2] - theta * spread.sum()
    return level, np.array([each.sum() for each in scores]), curvature, scores, rate * first
