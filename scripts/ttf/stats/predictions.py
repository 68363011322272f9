"""How good predictions are, with intervals that hold when users differ.

A score is worked out from all rows (jobs with a prediction) at once, and so is what each row adds to it: its influence,
the derivative of the score in the row's weight. The spread is that of the clusters' sums of influences, each over
1 - h, h being the cluster's share of what the score rests on; Student's t with the effective number of these shares:
`ttf.stats.clustered`. What tells failures from other jobs rests on those of the two that are of fewer effective
clusters, mostly the failures; a mean on all rows. Nothing is drawn at random.

Of all functions: failed, event: bool arrays; score, probability, hours: float arrays, finite; cluster: whole numbers,
one for each user or what else repeats, those of -1 being one more (nobody knows that they differ); by: what the
clusters are, None where the trace names nothing. All of one length. Raises ValueError where lengths differ or a float
is not finite. What cannot be told is None, with a reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit, logit

from ttf.engine.counts import Counted
from ttf.stats.basics.newton import ascend, softplus
from ttf.stats.basics.order import numbered
from ttf.stats.clustered import FEWEST, NO_SPREAD, UNCLUSTERED, Clusters, at_share, too_few

CONFIDENCE = 0.95
# Two-sided intervals of this confidence end at the one-sided bounds of CONFIDENCE.
TWICE_ONE_SIDED = 2 * CONFIDENCE - 1
TENTHS = 10
# Probabilities are no nearer to 0 and 1 in logarithms and logits.
NEAREST = 1e-12
# Of all information: what is left below this without a cluster is rounding.
LEAST_KNOWN = 1e-9
# Times are written in whole seconds: what took less than one (in hours) counts as one where logarithms are taken.
SHORTEST_HOURS = 1 / 3_600

# Lower and upper ends, an array each.
Limits = tuple[np.ndarray, ...]

NOTHING = "there is nothing to hold it against"
NO_ROWS = "no job with a prediction"
NO_FAILURE = "no job failed"
NO_HOURS = "no failure with a recorded time"
ALL_FAILED = "all jobs failed"
ALL_ALIKE = "all predictions are equal"
SEPARATED = "a threshold on the prediction tells all failures from the others: the slope has no upper end"
NO_PAIR = "no pair of jobs of which one is known to have failed first"
ALL_OF_ONE_TIME = "all failures took the same time"
NO_MAXIMUM = "the search for the best fit came to no end"
AT_AN_END = "the estimate lies at an end of its scale: no clustered interval"
HOLDS_ALL = "one cluster by {} holds all that the estimate rests on: no clustered interval"


@dataclass(frozen=True)
class Estimate:
    """A number and how well it is known.

    n: rows. low, high: the ends of the 95 % interval; lower, upper: the one-sided 95 % bounds. cluster_by, clusters:
    what repeats, and the effective number of them. reason: why the estimate lacks, or its interval.
    """

    n: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    lower: float | None = None
    upper: float | None = None
    cluster_by: str | None = None
    clusters: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Alike:
    """Which rows are of one cluster. code: of each row, 0 to number - 1; by: None where the trace names nothing."""

    code: np.ndarray
    by: str | None

    @classmethod
    def of(cls, cluster: np.ndarray, by: str | None, *columns: np.ndarray) -> "Alike":
        """columns: of the same rows; errors: see the module."""
        for column in columns:
            if column.shape != cluster.shape:
                raise ValueError(f"{column.size} values of {cluster.size} rows")
            if column.dtype != bool and not np.isfinite(column).all():
                raise ValueError("a value is not finite")
        nothing = by is None or not cluster.size or cluster.max() < 0
        return cls(numbered(np.maximum(cluster, -1)), None if nothing else by)

    @cached_property
    def number(self) -> int:
        return int(self.code.max(initial=-1)) + 1

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Of a value of each row, the sum by cluster."""
        return np.bincount(self.code, weights=values, minlength=self.number)

    def clusters(self, *rests_on: np.ndarray) -> Clusters:
        """The clusters as one stratum, their members being the rows.

        rests_on: what an estimate rests on of each row instead; of several that of fewest effective clusters.
        """
        place = np.zeros(self.number, np.int64)
        all_of = [self.sum(values) for values in rests_on or [np.ones(self.code.size)]]
        return min((Clusters(place, members, 1) for members in all_of), key=lambda of: of.effective.sum())

    def blank(self, reason: str) -> Estimate:
        return Estimate(self.code.size, cluster_by=self.by, reason=reason)


@dataclass(frozen=True)
class Scored:
    """A score of rows, and the influence of each (they sum to 0); rests_on: see `Alike.clusters`."""

    score: float
    influence: np.ndarray
    rests_on: tuple[np.ndarray, ...]


# Scores of one set of predictions ----------------------------------------------------------------------------


def average_precision(failed: np.ndarray, score: np.ndarray, cluster: np.ndarray, by: str | None) -> Estimate:
    """The area under the curve of precision by recall, as the mean precision at the failures; not interpolated.

    Rows of one score count at once, as in scikit-learn's average_precision_score. The interval is symmetric on the
    logit scale.
    """
    alike = Alike.of(cluster, by, failed, score)
    why = _one_class(failed)
    return alike.blank(why) if why else _within_0_and_1(alike, scored_average_precision(failed, score))


def roc_auc(failed: np.ndarray, score: np.ndarray, cluster: np.ndarray, by: str | None) -> Estimate:
    """How often a failure has a higher score than another job, ties a half: the area under the ROC curve.

    The influences are the structural components of DeLong et al. (1988), summed by cluster as by Obuchowski (1997); the
    interval is symmetric on the logit scale.
    """
    alike = Alike.of(cluster, by, failed, score)
    why = _one_class(failed)
    return alike.blank(why) if why else _within_0_and_1(alike, scored_roc_auc(failed, score))


def brier(failed: np.ndarray, probability: np.ndarray, cluster: np.ndarray, by: str | None) -> Estimate:
    """The mean square of what the probability is off by (Brier 1950); the interval is symmetric on the log scale."""
    alike = Alike.of(cluster, by, failed, probability)
    return _mean(alike, _squares(failed, probability))


def log_loss(failed: np.ndarray, probability: np.ndarray, cluster: np.ndarray, by: str | None) -> Estimate:
    """The mean of minus the log of the probability of what came; the interval is symmetric on the log scale.

    Probabilities below NEAREST count as NEAREST, those above 1 - NEAREST as that.
    """
    alike = Alike.of(cluster, by, failed, probability)
    return _mean(alike, _logs(failed, probability))


def scored_average_precision(failed: np.ndarray, score: np.ndarray) -> Scored:
    """Of rows of both classes.

    With weights w the score is sum_i w_i y_i T_i / N_i / sum_i w_i y_i, T and N being the weights of the failures and
    of all rows with a score as high or higher. So a row adds T / N at its own place if it failed, and by its part in
    T and N to each failure whose score is as low or lower.
    """
    place, failures, rows = _by_level(failed, score)
    failures_above, rows_above = failures[::-1].cumsum()[::-1], rows[::-1].cumsum()[::-1]
    precision = failures_above / rows_above
    found = int(failures_above[0])
    value = float((failures * precision).sum() / found)
    # Of a level, over the failures at it and below.
    each = np.cumsum(failures / rows_above)
    passed = np.cumsum(failures * precision / rows_above)
    influence = np.where(failed, (precision + each)[place] - value, 0) - passed[place]
    return Scored(value, influence / found, (failed, ~failed))


def scored_roc_auc(failed: np.ndarray, score: np.ndarray) -> Scored:
    """Of rows of both classes."""
    place, failures, rows = _by_level(failed, score)
    others = rows - failures
    found, left = int(failures.sum()), int(others.sum())
    # Doubled, ties counting one: whole numbers, and a product of two numbers of rows fits 64 bits.
    below = 2 * (np.cumsum(others) - others) + others
    above = 2 * (found - np.cumsum(failures)) + failures
    value = int((failures * below).sum()) / (2 * found * left)
    of_failed, of_others = (below / (2 * left) - value) / found, (above / (2 * found) - value) / left
    influence = np.where(failed, of_failed[place], of_others[place])
    return Scored(value, influence, (failed, ~failed))


def _by_level(failed: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(place of each row among the distinct scores, ascending; failures and rows by place, Int64)."""
    levels, place = np.unique(score, return_inverse=True)
    rows = np.bincount(place, minlength=levels.size)
    return place, np.bincount(place[failed], minlength=levels.size), rows


def _squares(failed: np.ndarray, probability: np.ndarray) -> np.ndarray:
    return (probability - failed) ** 2


def _logs(failed: np.ndarray, probability: np.ndarray) -> np.ndarray:
    clipped = _clipped(probability)
    return -np.log(np.where(failed, clipped, 1 - clipped))


def _clipped(probability: np.ndarray) -> np.ndarray:
    return np.clip(probability, NEAREST, 1 - NEAREST)


def _one_class(failed: np.ndarray) -> str | None:
    """Why failures cannot be told from other jobs here."""
    if not failed.size:
        return NO_ROWS
    if failed.all():
        return ALL_FAILED
    return None if failed.any() else NO_FAILURE


# Two sets of predictions of the same rows --------------------------------------------------------------------


def _scored_mean(of_row: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray], Scored]:
    def scored(failed: np.ndarray, probability: np.ndarray) -> Scored:
        values = of_row(failed, probability)
        mean = float(values.mean())
        return Scored(mean, (values - mean) / values.size, ())

    return scored


SCORED = {
    "average_precision": scored_average_precision,
    "roc_auc": scored_roc_auc,
    "brier": _scored_mean(_squares),
    "log_loss": _scored_mean(_logs),
}
OF_BOTH_CLASSES = ("average_precision", "roc_auc")


def difference(
    of: str, failed: np.ndarray, one: np.ndarray, other: np.ndarray, cluster: np.ndarray, by: str | None
) -> Estimate:
    """A score (`of`: a name of SCORED) of one set of predictions less that of another of the same rows.

    The influences are subtracted, so that what both have in common does not count; the interval is symmetric.
    """
    return mean_difference(of, failed, one, [other], cluster, by)


def mean_difference(
    of: str,
    failed: np.ndarray,
    one: np.ndarray,
    others: Sequence[np.ndarray],
    cluster: np.ndarray,
    by: str | None,
) -> Estimate:
    """A score of one set of predictions less the mean of that of others, one or more: see `difference`."""
    alike = Alike.of(cluster, by, failed, one, *others)
    why = _one_class(failed) if of in OF_BOTH_CLASSES else None if failed.size else NO_ROWS
    if why:
        return alike.blank(why)
    first, rest = SCORED[of](failed, one), [SCORED[of](failed, other) for other in others]
    influence = first.influence - sum(scored.influence for scored in rest) / len(rest)
    clusters = alike.clusters(*first.rests_on)
    change = first.score - sum(scored.score for scored in rest) / len(rest)
    se = clusters.se(alike.sum(influence), clusters.share(clusters.members))
    return _estimate(alike, clusters, change, _around(clusters, change, se))


# How well probabilities are calibrated -----------------------------------------------------------------------


@dataclass(frozen=True)
class BrierParts:
    """Of the Brier score (Murphy 1973): reliability - resolution + uncertainty + within.

    reliability: mean square of what the mean probability of a tenth of the rows is off its share of failures (0 is
    best); resolution: that of the shares off the share of all; uncertainty: the score of the share of all. within: what
    is left over as the probabilities of a tenth are not one: their variance less twice their covariance with the
    failures (Stephenson, Coelho & Jolliffe 2008).
    """

    reliability: float
    resolution: float
    uncertainty: float
    within: float


def brier_parts(failed: np.ndarray, probability: np.ndarray) -> BrierParts | None:
    """Over the groups of `tenths`; None without rows."""
    if not failed.size:
        return None
    tenth = tenths(probability)
    n = np.bincount(tenth, minlength=TENTHS)
    kept = n > 0
    share, mean = (
        np.divide(np.bincount(tenth, weights=values, minlength=TENTHS), n, out=np.zeros(TENTHS), where=kept)
        for values in (failed, probability)
    )
    overall = int(failed.sum()) / failed.size
    off = probability - mean[tenth]
    within = off**2 - 2 * off * (failed - share[tenth])
    return BrierParts(
        float(n @ (mean - share) ** 2) / failed.size,
        float(n @ (share - overall) ** 2) / failed.size,
        float(overall * (1 - overall)),
        float(within.mean()),
    )


def tenths(score: np.ndarray) -> np.ndarray:
    """Of each row the tenth of all that it is in by its score, 0 the lowest (Int64).

    Rows of one score are in one tenth, that of the middle of their ranks, so that some tenths may have none.
    """
    _, place, n = np.unique(score, return_inverse=True, return_counts=True)
    middle = 2 * (np.cumsum(n) - n) + n
    return (TENTHS * middle // (2 * max(score.size, 1)))[place]


@dataclass(frozen=True)
class Tenth:
    """The rows of a tenth by score. number: 1 the lowest; predicted: their mean; observed: the share that failed."""

    number: int
    predicted: float
    failures: int
    observed: Estimate


def calibration_tenths(failed: np.ndarray, probability: np.ndarray, cluster: np.ndarray, by: str | None) -> list[Tenth]:
    """The groups of `tenths` that have rows, in order; intervals symmetric on the logit scale."""
    alike, tenth = Alike.of(cluster, by, failed, probability), tenths(probability)
    rows = np.bincount(tenth, minlength=TENTHS)
    failures = np.bincount(tenth[failed], minlength=TENTHS)
    total = np.bincount(tenth, weights=probability, minlength=TENTHS)
    found = []
    for number in np.flatnonzero(rows).tolist():
        here = tenth == number
        part = Alike(numbered(alike.code[here]), alike.by)
        share = int(failures[number]) / int(rows[number])
        observed = _share(part, failed[here], share)
        found.append(Tenth(number + 1, float(total[number] / rows[number]), int(failures[number]), observed))
    return found


def _share(alike: Alike, failed: np.ndarray, share: float) -> Estimate:
    clusters = alike.clusters()
    if not 0 < share < 1:
        return _estimate(alike, clusters, share, None)
    part = alike.sum(failed)
    return _estimate(alike, clusters, share, lambda c: clusters.proportion(part, clusters.members, c))


@dataclass(frozen=True)
class Calibration:
    """intercept: 0 is best; slope: 1 is best, below it predictions lie too far apart, above it too close together."""

    intercept: Estimate
    slope: Estimate


def calibration(failed: np.ndarray, probability: np.ndarray, cluster: np.ndarray, by: str | None) -> Calibration:
    """The logistic regression of failure on the logit of the probability (Cox 1958), by Newton's method.

    Of each cluster 1 - h is a matrix, h its share of the information, so that its influence is the step that the fit
    takes without it (one step of the jackknife); the interval is symmetric. Probabilities as in `log_loss`.
    """
    alike = Alike.of(cluster, by, failed, probability)
    x = logit(_clipped(probability))
    # About their mean, as rounding would take most of what little all but equal predictions differ by.
    middle = float(x.mean()) if x.size else 0.0
    x -= middle
    why = _one_class(failed) or _no_slope(x[failed], x[~failed])
    if not why:
        fit, has_ended = ascend(lambda point: _logistic(failed, x, point), np.array([_odds(failed), 0.0]))
        why = None if has_ended else NO_MAXIMUM
    if why:
        return Calibration(alike.blank(why), alike.blank(why))
    clusters, (of_level, of_slope) = _steps_without(alike, failed, x, fit)
    level, slope = fit.tolist()
    with np.errstate(invalid="ignore"):
        of_intercept = np.where(np.isinf(of_slope), np.inf, of_level - middle * of_slope)
    found = []
    for value, influence in ((level - middle * slope, of_intercept), (slope, of_slope)):
        se = clusters.se(influence, np.zeros(alike.number))
        found.append(_estimate(alike, clusters, value, _around(clusters, value, se)))
    return Calibration(*found)


def _odds(failed: np.ndarray) -> float:
    return float(logit(failed.mean()))


def _no_slope(of_failed: np.ndarray, of_others: np.ndarray) -> str | None:
    """Why the likelihood has no maximum (Albert & Anderson 1984); arrays with a row or more."""
    low, high, low_others, high_others = of_failed.min(), of_failed.max(), of_others.min(), of_others.max()
    if low == high == low_others == high_others:
        return ALL_ALIKE
    return SEPARATED if low >= high_others or high <= low_others else None


def _logistic(failed: np.ndarray, x: np.ndarray, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """(log-likelihood, gradient, second derivatives) of intercept and slope."""
    eta = point[0] + point[1] * x
    mean = expit(eta)
    residual, weight = failed - mean, mean * (1 - mean)
    level = float(eta[failed].sum() - softplus(eta).sum())
    crossed = float(weight @ x)
    second = -np.array([[float(weight.sum()), crossed], [crossed, float(weight @ x**2)]])
    return level, np.array([residual.sum(), residual @ x]), second


def _steps_without(
    alike: Alike, failed: np.ndarray, x: np.ndarray, fit: np.ndarray
) -> tuple[Clusters, tuple[np.ndarray, np.ndarray]]:
    """(clusters by their shares of the information, their influences on intercept and slope without their pull).

    An influence is infinite where nothing is known without the cluster.
    """
    mean = expit(fit[0] + fit[1] * x)
    residual, weight = failed - mean, mean * (1 - mean)
    of_one, of_both, of_x = (alike.sum(values) for values in (weight, weight * x, weight * x**2))
    one, both, xx = of_one.sum(), of_both.sum(), of_x.sum()
    # The trace of the inverse of all information times that of the cluster, over 2.
    share = np.maximum(xx * of_one - 2 * both * of_both + one * of_x, 0) / (2 * (one * xx - both**2))
    rest_one, rest_both, rest_x = one - of_one, both - of_both, xx - of_x
    determinant = rest_one * rest_x - rest_both**2
    known = determinant > LEAST_KNOWN * (one * xx - both**2)
    sums = alike.sum(residual), alike.sum(residual * x)
    intercept, slope = rest_x * sums[0] - rest_both * sums[1], rest_one * sums[1] - rest_both * sums[0]
    steps = (np.divide(step, determinant, out=np.full(step.size, np.inf), where=known) for step in (intercept, slope))
    return Clusters(np.zeros(alike.number, np.int64), share, 1), tuple(steps)


# Hours until failure -----------------------------------------------------------------------------------------


def median_factor_off(predicted: np.ndarray, observed: np.ndarray, cluster: np.ndarray, by: str | None) -> Estimate:
    """The median of the factor by which hours are off, up or down: the larger of predicted / observed and its inverse.

    1 is best. Rows: failures. The interval is that of the ranks about the middle (Woodruff 1952).
    """
    alike = Alike.of(cluster, by, predicted, observed)
    if not observed.size:
        return alike.blank(NO_HOURS)
    factor = np.exp(np.abs(_log_hours(predicted) - _log_hours(observed)))
    values = Counted(np.sort(factor), np.ones(factor.size, np.int64))
    middle, clusters = values.median(), alike.clusters()
    below = alike.sum(factor <= middle)

    def limits(confidence: float) -> Limits:
        ranks = clusters.around_the_middle(below, clusters.members, confidence)
        return tuple(np.array([at_share(values, end) for end in rank]) for rank in ranks[:2])

    return _estimate(alike, clusters, float(middle), limits)


def r2_log(predicted: np.ndarray, observed: np.ndarray, cluster: np.ndarray, by: str | None) -> Estimate:
    """1 less the squares that log hours are off by, over those that they are off their mean by. Rows: failures.

    1 is best, 0 as good as one prediction for all, below 0 worse. The interval is that of the ratio of the two sums,
    symmetric on the log scale.
    """
    alike = Alike.of(cluster, by, predicted, observed)
    if not observed.size:
        return alike.blank(NO_HOURS)
    logs = _log_hours(observed)
    if logs.min() == logs.max():
        return alike.blank(ALL_OF_ONE_TIME)
    off, spread, clusters = (_log_hours(predicted) - logs) ** 2, (logs - logs.mean()) ** 2, alike.clusters()
    top, bottom, value = alike.sum(off), alike.sum(spread), float(1 - off.sum() / spread.sum())

    def limits(confidence: float) -> Limits:
        low, high, _ = clusters.ratio(top, bottom, confidence, both=True)
        return 1 - high, 1 - low

    return _estimate(alike, clusters, value, limits if off.any() else None)


def _log_hours(hours: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(hours, SHORTEST_HOURS))


def concordance(
    hours: np.ndarray, event: np.ndarray, predicted: np.ndarray, cluster: np.ndarray, by: str | None
) -> Estimate:
    """How often the job that failed first has the fewer predicted hours, ties a half: Harrell's C (1982, 1996).

    hours: until failure (event), or until the job was last seen without one. A pair counts where one job failed and
    the other did later, or was seen without a failure at that hour or later; as lifelines' concordance_index. The
    interval is symmetric on the logit scale; influences are of pairs, so that of a cluster its pairs with all others.
    """
    alike = Alike.of(cluster, by, hours, event, predicted)
    scored = scored_concordance(hours, event, predicted)
    if scored is None:
        return alike.blank(NO_PAIR if hours.size else NO_ROWS)
    return _within_0_and_1(alike, scored)


def scored_concordance(hours: np.ndarray, event: np.ndarray, predicted: np.ndarray) -> Scored | None:
    """None where there is no pair."""
    pairs, doubled = _pairs(hours, event, predicted)
    if not pairs.any():
        return None
    # Each pair is counted in both of its rows.
    value = int(doubled.sum()) / (2 * int(pairs.sum()))
    total = int(pairs.sum()) / 2
    return Scored(value, (doubled / 2 - value * pairs) / total, (pairs,))


def _pairs(hours: np.ndarray, event: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(pairs that a row is in, twice those of them that are predicted in the right order, ties counting one); Int64.

    Of the ranks by hours one binary digit after the other is looked at, the highest first. Each two rows of different
    rank come apart at one digit, the earlier one having 0; of the rows that do there, in order of what is predicted,
    running sums count the pairs.
    """
    times = np.unique(hours[event])
    # A failure comes before all rows of a higher rank: one last seen at the hour of a failure has a higher one.
    rank = np.where(event, np.searchsorted(times, hours), np.searchsorted(times, hours, side="right"))
    level = np.unique(predicted, return_inverse=True)[1]
    upto = _running(np.bincount(rank, minlength=times.size + 1))
    failed_upto = _running(np.bincount(rank[event], minlength=times.size + 1))
    pairs = failed_upto[rank] + np.where(event, rank.size - upto[rank + 1], 0)
    doubled = np.zeros(rank.size, np.int64)
    # The rows in order of the digits that have been looked at, then of what is predicted.
    order = np.argsort(level, kind="stable")
    for digit in reversed(range(int(times.size).bit_length())):
        rank_here, first = rank[order], event[order]
        of_digits = rank_here >> (digit + 1)
        begin, end = (upto[np.minimum((of_digits + one) << (digit + 1), upto.size - 1)] for one in (0, 1))
        late = (rank_here >> digit & 1).astype(bool)
        doubled[order] += _doubled(level[order], first, late, begin, end)
        # Those with 0 first, each half in the order that it has.
        zeros = _running(~late)
        place, zeros_before = np.arange(rank.size), zeros[:-1] - zeros[begin]
        to = np.where(late, place - zeros_before + zeros[end] - zeros[begin], begin + zeros_before)
        parted = np.empty_like(order)
        parted[to] = order
        order = parted
    return pairs, doubled


def _doubled(level: np.ndarray, first: np.ndarray, late: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Twice the pairs of each row that are predicted in the right order, ties counting one.

    A pair is of a row that is `late` and of a failure (`first`) that is not, both within the same begin and end, the
    places between which the rows are in order of the level.
    """
    new = np.append(True, (level[1:] != level[:-1]) | (begin[1:] != begin[:-1]))[: level.size]
    run, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    ends = np.append(starts[1:], level.size)
    early_upto, late_upto = _running(first & ~late), _running(late)
    below = (early_upto[starts] + early_upto[ends])[run] - 2 * early_upto[begin]
    above = 2 * late_upto[end] - (late_upto[starts] + late_upto[ends])[run]
    return np.where(late, below, np.where(first, above, 0))


def _running(values: np.ndarray) -> np.ndarray:
    """The sums of the first 0, 1, 2 ... values (Int64)."""
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])


# Intervals ---------------------------------------------------------------------------------------------------


def _within_0_and_1(alike: Alike, scored: Scored) -> Estimate:
    """The interval symmetric on the logit scale; none at 0 and 1."""
    value, clusters = scored.score, alike.clusters(*scored.rests_on)
    if not 0 < value < 1:
        return _estimate(alike, clusters, value, None)
    influence = alike.sum(scored.influence) / (value * (1 - value))
    se, centre = clusters.se(influence, clusters.share(clusters.members)), logit(value)

    def limits(confidence: float) -> Limits:
        low, high = _symmetric(centre, se, clusters.student(confidence))
        return expit(low), expit(high)

    # Without a finite spread that, as the logit scale would make 0 and 1 of an infinite one.
    return _estimate(alike, clusters, value, limits if np.isfinite(se).all() else lambda _: (se, se))


def _mean(alike: Alike, values: np.ndarray) -> Estimate:
    """Of values from 0 on: the interval symmetric on the log scale."""
    if not values.size:
        return alike.blank(NO_ROWS)
    clusters, total = alike.clusters(), alike.sum(values)
    ratio = (lambda c: clusters.ratio(total, clusters.members, c)) if values.any() else None
    return _estimate(alike, clusters, float(values.mean()), ratio)


def _around(clusters: Clusters, value: float, se: np.ndarray) -> Callable[[float], Limits]:
    return lambda confidence: _symmetric(value, se, clusters.student(confidence))


def _symmetric(value: float, se: np.ndarray, student: np.ndarray) -> Limits:
    away = se * student
    return value - away, value + away


def _estimate(alike: Alike, clusters: Clusters, value: float, limits: Callable[[float], Limits] | None) -> Estimate:
    """limits: (low, high) of a confidence, of one stratum; None where the estimate is at an end of its scale."""
    n, effective = alike.code.size, float(clusters.effective[0])
    if alike.by is None:
        return Estimate(n, value, reason=UNCLUSTERED)
    about = {"cluster_by": alike.by, "clusters": effective}
    if effective < FEWEST:
        return Estimate(n, value, **about, reason=too_few(effective, alike.by))
    if limits is None:
        return Estimate(n, value, **about, reason=AT_AN_END)
    low, high = (float(end[0]) for end in limits(CONFIDENCE)[:2])
    if not (np.isfinite(low) and np.isfinite(high)):
        held = np.isinf(low) or np.isinf(high)
        why = HOLDS_ALL.format(alike.by) if held else f"{NO_SPREAD}: no clustered interval"
        return Estimate(n, value, **about, reason=why)
    lower, upper = (float(end[0]) for end in limits(TWICE_ONE_SIDED)[:2])
    return Estimate(n, value, low, high, lower, upper, **about)


# Sums --------------------------------------------------------------------------------------------------------


def total(values: np.ndarray, cluster: np.ndarray, by: str | None) -> Estimate:
    """The sum of values of any sign; the interval is that of their mean, symmetric, times their number."""
    found = mean_ratio(values, np.ones(values.size), cluster, by)
    n = values.size
    told = {
        name: value and value * n
        for name in ("estimate", "low", "high", "lower", "upper")
        for value in [getattr(found, name)]
    }
    return replace(found, **told)


def mean_ratio(top: np.ndarray, bottom: np.ndarray, cluster: np.ndarray, by: str | None) -> Estimate:
    """sum(top) / sum(bottom), bottom from 0 on; top may have any sign, so that the interval is symmetric."""
    alike = Alike.of(cluster, by, top, bottom)
    if not top.size:
        return alike.blank(NO_ROWS)
    whole = float(bottom.sum())
    if whole <= 0:
        return alike.blank(NOTHING)
    value, clusters = float(top.sum()) / whole, alike.clusters()
    of_top, of_bottom = alike.sum(top), alike.sum(bottom)
    se = clusters.se((of_top - value * of_bottom) / whole, of_bottom / whole)
    return _estimate(alike, clusters, value, _around(clusters, value, se))
