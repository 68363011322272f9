"""Scores of predictions, with intervals that hold when users differ.

A score is computed from all rows (jobs with a prediction) together. The influence of a row is the derivative of the
score in the row's weight. The variance is the sum of the squared influences of clusters, each divided by 1 - h, where h
is the cluster's share of the score's weights. Quantiles are Student's t with the effective number of clusters:
`ttf.stats.clustered`. Scores that separate failures from other jobs weigh the class with fewer effective clusters,
usually the failures; means weigh all rows. No random numbers are used.

Arguments of all functions: failed, event: bool arrays. score, probability, hours: finite float arrays. cluster: whole
numbers, one for each user or other kind of cluster; all -1 form one more cluster, because they cannot be distinguished.
cluster_by: kind of clusters, None if the trace has none. All have one length. Raises ValueError for different lengths
and for floats that are not finite. Missing values are None, with a reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit, logit

from ttf.engine.counts import ValueCounts
from ttf.stats.basics.order import number_rows
from ttf.stats.clustered import FEWEST, NO_SPREAD, UNCLUSTERED, Clusters, too_few_reason, value_at_share
from ttf.stats.regression.design import Design
from ttf.stats.regression.logistic import Prior, fit_coefficients

CONFIDENCE = 0.95
# Two-sided intervals of this confidence have the one-sided bounds of CONFIDENCE as limits.
TWICE_ONE_SIDED = 2 * CONFIDENCE - 1
TENTHS = 10
# Probabilities are clipped this far from 0 and 1 before logarithms and logits.
MIN_PROBABILITY = 1e-12
# A share of the information below this, left without a cluster, is a rounding error.
MIN_INFORMATION = 1e-9
# Times are in whole seconds: before logarithms, times (in hours) below one second count as one.
SHORTEST_HOURS = 1 / 3_600

# Arrays of lower and upper limits.
Limits = tuple[np.ndarray, ...]

NO_DENOMINATOR = "there is nothing to hold it against"
NO_ROWS = "no job with a prediction"
NO_FAILURE = "no job failed"
NO_HOURS = "no failure with a recorded time"
ALL_FAILED = "all jobs failed"
EQUAL_PREDICTIONS = "all predictions are equal"
PERFECT_SEPARATION = "a threshold on the prediction tells all failures from the others: the slope has no upper end"
NO_PAIR = "no pair of jobs of which one is known to have failed first"
EQUAL_TIMES = "all failures took the same time"
NO_MAXIMUM = "the search for the best fit came to no end"
AT_SCALE_LIMIT = "the estimate lies at an end of its scale: no clustered interval"
SINGLE_CLUSTER = "one cluster by {} holds all that the estimate rests on: no clustered interval"


@dataclass(frozen=True)
class Estimate:
    """An estimate and its interval.

    n: rows. low, high: limits of the 95 % interval. lower, upper: one-sided 95 % bounds. cluster_by, clusters: kind of
    clusters, and their effective number. reason: why the estimate or its interval is missing.
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
class Grouping:
    """Cluster of each row. code: 0 to number - 1; cluster_by: None if the trace has no clusters."""

    code: np.ndarray
    cluster_by: str | None

    @classmethod
    def from_rows(cls, cluster: np.ndarray, cluster_by: str | None, *columns: np.ndarray) -> "Grouping":
        """Make the grouping of rows; raise ValueError as the module describes. columns: arrays of the same rows."""
        for column in columns:
            if column.shape != cluster.shape:
                raise ValueError(f"{column.size} values of {cluster.size} rows")
            if column.dtype != bool and not np.isfinite(column).all():
                raise ValueError("a value is not finite")
        is_unknown = cluster_by is None or not cluster.size or cluster.max() < 0
        return cls(number_rows(np.maximum(cluster, -1)), None if is_unknown else cluster_by)

    @cached_property
    def number(self) -> int:
        """Return the number of clusters."""
        return int(self.code.max(initial=-1)) + 1

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum a value of each row by cluster."""
        return np.bincount(self.code, weights=values, minlength=self.number)

    def clusters(self, *weights: np.ndarray) -> Clusters:
        """Return the clusters as one stratum, with rows as members.

        weights: values of each row that replace the count of rows; of several, those with the fewest effective
        clusters.
        """
        totals = [self.sum(values) for values in weights or [np.ones(self.code.size)]]
        return min(map(Clusters.in_one_stratum, totals), key=lambda clusters: clusters.effective.sum())

    def blank_estimate(self, reason: str) -> Estimate:
        return Estimate(self.code.size, cluster_by=self.cluster_by, reason=reason)


@dataclass(frozen=True)
class ScoreInfluence:
    """A score of rows, and the influence of each row (their sum is 0). weights: see `Grouping.clusters`."""

    score: float
    influence: np.ndarray
    weights: tuple[np.ndarray, ...]


# Scores of one set of predictions ----------------------------------------------------------------------------


def estimate_score(
    score_name: str, failed: np.ndarray, predictions: np.ndarray, cluster: np.ndarray, cluster_by: str | None
) -> Estimate:
    """Return a score of predictions.

    Parameters
    ----------
    score_name : a name of SCORED
        average_precision: the area under the precision-recall curve, which is the mean precision at the failures, not
        interpolated; rows with equal scores count at once, as in scikit-learn (Davis & Goadrich 2006, ICML).
        roc_auc: the area under the ROC curve, which is the probability that a failure scores higher than another job,
        ties a half. Its influences are the structural components of DeLong et al. (1988, Biometrics 44), summed by
        cluster as by Obuchowski (1997, Biometrics 53).
        brier: the mean squared error of the probability (Brier 1950, Monthly Weather Review 78).
        log_loss: the mean negative log probability of the outcome (Good 1952, J. R. Stat. Soc. B 14); probabilities are
        clipped to MIN_PROBABILITY and 1 - MIN_PROBABILITY.
    failed : (n,) boolean
    predictions : (n,) floats, higher for a more likely failure; probabilities for brier and log_loss
    cluster : (n,) cluster numbers from 0
    cluster_by : kind of the clusters; None if the trace has none

    Returns
    -------
    estimate; its interval is symmetric on the logit scale, on the log scale for brier and log_loss

    Examples
    --------
    >>> failed, score, users = np.array([True, False, True, False]), np.array([0.9, 0.8, 0.7, 0.1]), np.arange(4)
    >>> [round(estimate_score(name, failed, score, users, "user").estimate, 4) for name in SCORED]
    [0.8333, 0.75, 0.1875, 0.5442]
    """
    grouping = Grouping.from_rows(cluster, cluster_by, failed, predictions)
    if score_name in ROW_VALUES:
        return _mean_estimate(grouping, ROW_VALUES[score_name](failed, predictions))
    if reason := _missing_class_reason(failed):
        return grouping.blank_estimate(reason)
    return _logit_estimate(grouping, SCORED[score_name](failed, predictions))


def average_precision_influence(failed: np.ndarray, score: np.ndarray) -> ScoreInfluence:
    """Return the score and its influences; the rows include both classes.

    With weights w the score is sum_i w_i y_i T_i / N_i / sum_i w_i y_i, where T and N are the weights of the failures
    and of all rows with an equal or higher score. So a row contributes T / N at its own score if it failed, and changes
    T and N of each failure with an equal or lower score.
    """
    level, failures, rows = _group_by_score(failed, score)
    failures_above, rows_above = failures[::-1].cumsum()[::-1], rows[::-1].cumsum()[::-1]
    precision = failures_above / rows_above
    n_failures = int(failures_above[0])
    value = float((failures * precision).sum() / n_failures)
    # Sums for each level over the failures at and below it.
    row_terms = np.cumsum(failures / rows_above)
    lower_terms = np.cumsum(failures * precision / rows_above)
    influence = np.where(failed, (precision + row_terms)[level] - value, 0) - lower_terms[level]
    return ScoreInfluence(value, influence / n_failures, (failed, ~failed))


def roc_auc_influence(failed: np.ndarray, score: np.ndarray) -> ScoreInfluence:
    """Return the score and its influences; the rows include both classes."""
    level, failures, rows = _group_by_score(failed, score)
    non_failures = rows - failures
    n_failures, n_others = int(failures.sum()), int(non_failures.sum())
    # Doubled, with ties as one: whole numbers, and a product of two numbers of rows fits 64 bits.
    doubled_below = 2 * (np.cumsum(non_failures) - non_failures) + non_failures
    doubled_above = 2 * (n_failures - np.cumsum(failures)) + failures
    value = int((failures * doubled_below).sum()) / (2 * n_failures * n_others)
    failure_terms = (doubled_below / (2 * n_others) - value) / n_failures
    other_terms = (doubled_above / (2 * n_failures) - value) / n_others
    influence = np.where(failed, failure_terms[level], other_terms[level])
    return ScoreInfluence(value, influence, (failed, ~failed))


def _group_by_score(failed: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the index of each row among the distinct scores, and failures and rows by index (Int64)."""
    levels, level = np.unique(score, return_inverse=True)
    rows = np.bincount(level, minlength=levels.size)
    return level, np.bincount(level[failed], minlength=levels.size), rows


def _squared_errors(failed: np.ndarray, probability: np.ndarray) -> np.ndarray:
    return (probability - failed) ** 2


def _log_losses(failed: np.ndarray, probability: np.ndarray) -> np.ndarray:
    clipped = _clip_probability(probability)
    return -np.log(np.where(failed, clipped, 1 - clipped))


def _clip_probability(probability: np.ndarray) -> np.ndarray:
    return np.clip(probability, MIN_PROBABILITY, 1 - MIN_PROBABILITY)


def _missing_class_reason(failed: np.ndarray) -> str | None:
    if not failed.size:
        return NO_ROWS
    if failed.all():
        return ALL_FAILED
    return None if failed.any() else NO_FAILURE


# Two sets of predictions of the same rows --------------------------------------------------------------------


def _mean_influence(
    row_values: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Callable[[np.ndarray, np.ndarray], ScoreInfluence]:
    """Return a function like those of SCORED, whose score is the mean of row_values(failed, probability)."""

    def mean_influence(failed: np.ndarray, probability: np.ndarray) -> ScoreInfluence:
        values = row_values(failed, probability)
        mean = float(values.mean())
        return ScoreInfluence(mean, (values - mean) / values.size, ())

    return mean_influence


# Scores that are the mean of a value of each row.
ROW_VALUES = {"brier": _squared_errors, "log_loss": _log_losses}
SCORED: dict[str, Callable[[np.ndarray, np.ndarray], ScoreInfluence]] = {
    "average_precision": average_precision_influence,
    "roc_auc": roc_auc_influence,
}
SCORED |= {name: _mean_influence(row_values) for name, row_values in ROW_VALUES.items()}


def difference(
    score_name: str,
    failed: np.ndarray,
    predictions: np.ndarray,
    baselines: Sequence[np.ndarray],
    cluster: np.ndarray,
    cluster_by: str | None,
) -> Estimate:
    """Return a score (a name of SCORED) of predictions less the mean score of one or more baselines for the same rows.

    The influences are subtracted, so their common part does not count; the interval is symmetric.
    """
    grouping = Grouping.from_rows(cluster, cluster_by, failed, predictions, *baselines)
    if reason := _missing_class_reason(failed) if score_name not in ROW_VALUES or not failed.size else None:
        return grouping.blank_estimate(reason)
    score = SCORED[score_name]
    model, references = score(failed, predictions), [score(failed, baseline) for baseline in baselines]
    influence = model.influence - sum(reference.influence for reference in references) / len(references)
    clusters = grouping.clusters(*model.weights)
    change = model.score - sum(reference.score for reference in references) / len(references)
    se = clusters.se(grouping.sum(influence), clusters.share(clusters.members))
    return _make_estimate(grouping, clusters, change, _symmetric_limits(clusters, change, se))


# How well probabilities are calibrated -----------------------------------------------------------------------


@dataclass(frozen=True)
class BrierParts:
    """Parts of the Brier score (Murphy 1973): reliability - resolution + uncertainty + within_tenths.

    reliability: mean squared difference of a tenth's mean probability and its share of failures (0 is best).
    resolution: that of the shares and the overall share. uncertainty: score of the overall share. within_tenths:
    remainder from differing probabilities in a tenth, their variance less twice their covariance with the failures
    (Stephenson, Coelho & Jolliffe 2008).
    """

    reliability: float
    resolution: float
    uncertainty: float
    within_tenths: float


def brier_parts(failed: np.ndarray, probability: np.ndarray) -> BrierParts | None:
    """Decompose the Brier score over the groups of `tenths`; None without rows."""
    if not failed.size:
        return None
    tenth = tenths(probability)
    n = np.bincount(tenth, minlength=TENTHS)
    has_rows = n > 0
    share, mean = (
        np.divide(np.bincount(tenth, weights=values, minlength=TENTHS), n, out=np.zeros(TENTHS), where=has_rows)
        for values in (failed, probability)
    )
    overall = int(failed.sum()) / failed.size
    deviation = probability - mean[tenth]
    within_terms = deviation**2 - 2 * deviation * (failed - share[tenth])
    return BrierParts(
        float(n @ (mean - share) ** 2) / failed.size,
        float(n @ (share - overall) ** 2) / failed.size,
        float(overall * (1 - overall)),
        float(within_terms.mean()),
    )


def tenths(score: np.ndarray) -> np.ndarray:
    """Return the tenth of each row by its score, 0 the lowest (Int64).

    Rows of one score share a tenth, that of the middle of their ranks, so a tenth may be empty.
    """
    _, level, n = np.unique(score, return_inverse=True, return_counts=True)
    doubled_middle = 2 * (np.cumsum(n) - n) + n
    return (TENTHS * doubled_middle // (2 * max(score.size, 1)))[level]


@dataclass(frozen=True)
class Tenth:
    """Rows of a tenth by score. number: 1 is the lowest; predicted: mean prediction; observed: share that failed."""

    number: int
    predicted: float
    failures: int
    observed: Estimate


def calibration_tenths(
    failed: np.ndarray, probability: np.ndarray, cluster: np.ndarray, cluster_by: str | None
) -> list[Tenth]:
    """Return the groups of `tenths` that have rows, in order; intervals are symmetric on the logit scale."""
    grouping, tenth = Grouping.from_rows(cluster, cluster_by, failed, probability), tenths(probability)
    rows = np.bincount(tenth, minlength=TENTHS)
    failures = np.bincount(tenth[failed], minlength=TENTHS)
    total = np.bincount(tenth, weights=probability, minlength=TENTHS)
    groups = []
    for number in np.flatnonzero(rows).tolist():
        in_tenth = tenth == number
        tenth_clusters = Grouping(number_rows(grouping.code[in_tenth]), grouping.cluster_by)
        share = int(failures[number]) / int(rows[number])
        observed = _share_estimate(tenth_clusters, failed[in_tenth], share)
        groups.append(Tenth(number + 1, float(total[number] / rows[number]), int(failures[number]), observed))
    return groups


def _share_estimate(grouping: Grouping, failed: np.ndarray, share: float) -> Estimate:
    clusters, part = grouping.clusters(), grouping.sum(failed)
    limits = (lambda c: clusters.proportion(part, clusters.members, c)) if 0 < share < 1 else None
    return _make_estimate(grouping, clusters, share, limits)


@dataclass(frozen=True)
class Calibration:
    """intercept: 0 is best. slope: 1 is best; below 1 predictions are too extreme, above 1 too close together."""

    intercept: Estimate
    slope: Estimate


def calibration(
    failed: np.ndarray, probability: np.ndarray, cluster: np.ndarray, cluster_by: str | None
) -> Calibration:
    """Fit the logistic regression of failure on the logit of the probability (Cox 1958), by Newton's method.

    For each cluster 1 - h is a matrix, where h is its share of the information. So its influence is the step of the fit
    without it (one step of the jackknife). The interval is symmetric. Probabilities are clipped as in `log_loss`.
    """
    grouping = Grouping.from_rows(cluster, cluster_by, failed, probability)
    x = logit(_clip_probability(probability))
    # Centred, because rounding would hide the differences of nearly equal predictions.
    mean_x = float(x.mean()) if x.size else 0.0
    x -= mean_x
    reason = _missing_class_reason(failed) or _no_slope_reason(x[failed], x[~failed])
    if not reason:
        flat_prior = Prior(np.zeros(2), np.zeros((2, 2)))
        coefficients, converged = fit_coefficients(Design(x[:, None], ()), failed, flat_prior)
        reason = None if converged else NO_MAXIMUM
    if reason:
        return Calibration(grouping.blank_estimate(reason), grouping.blank_estimate(reason))
    clusters, (level_steps, slope_steps) = _jackknife_steps(grouping, failed, x, coefficients)
    level, slope = coefficients.tolist()
    with np.errstate(invalid="ignore"):
        intercept_steps = np.where(np.isinf(slope_steps), np.inf, level_steps - mean_x * slope_steps)
    estimates = []
    for value, influence in ((level - mean_x * slope, intercept_steps), (slope, slope_steps)):
        se = clusters.se(influence, np.zeros(grouping.number))
        estimates.append(_make_estimate(grouping, clusters, value, _symmetric_limits(clusters, value, se)))
    return Calibration(*estimates)


def _no_slope_reason(failed_x: np.ndarray, other_x: np.ndarray) -> str | None:
    """Return why the likelihood has no maximum (Albert & Anderson 1984); arrays are not empty."""
    low, high, low_other, high_other = failed_x.min(), failed_x.max(), other_x.min(), other_x.max()
    if low == high == low_other == high_other:
        return EQUAL_PREDICTIONS
    return PERFECT_SEPARATION if low >= high_other or high <= low_other else None


def _jackknife_steps(
    grouping: Grouping, failed: np.ndarray, x: np.ndarray, coefficients: np.ndarray
) -> tuple[Clusters, tuple[np.ndarray, np.ndarray]]:
    """Return the clusters by their shares of the information, and their influences on (intercept, slope).

    An influence is infinite if no information is left without the cluster.
    """
    mean = expit(coefficients[0] + coefficients[1] * x)
    residual, weight = failed - mean, mean * (1 - mean)
    cluster_1, cluster_x, cluster_xx = (grouping.sum(values) for values in (weight, weight * x, weight * x**2))
    sum_1, sum_x, sum_xx = cluster_1.sum(), cluster_x.sum(), cluster_xx.sum()
    # The trace of (inverse of all information, times the cluster's information) / 2.
    information = sum_1 * sum_xx - sum_x**2
    share = np.maximum(sum_xx * cluster_1 - 2 * sum_x * cluster_x + sum_1 * cluster_xx, 0) / (2 * information)
    rest_1, rest_x, rest_xx = sum_1 - cluster_1, sum_x - cluster_x, sum_xx - cluster_xx
    determinant = rest_1 * rest_xx - rest_x**2
    is_known = determinant > MIN_INFORMATION * information
    sums = grouping.sum(residual), grouping.sum(residual * x)
    intercept, slope = rest_xx * sums[0] - rest_x * sums[1], rest_1 * sums[1] - rest_x * sums[0]
    blank = np.full(determinant.size, np.inf)
    steps = (np.divide(step, determinant, out=blank.copy(), where=is_known) for step in (intercept, slope))
    return Clusters.in_one_stratum(share), tuple(steps)


# Hours until failure -----------------------------------------------------------------------------------------


def median_factor_off(
    predicted: np.ndarray, observed: np.ndarray, cluster: np.ndarray, cluster_by: str | None
) -> Estimate:
    """Return the median factor of error in hours: the larger of predicted / observed and its inverse; 1 is best.

    Parameters
    ----------
    predicted, observed : (n,) hours of failures, above 0
    cluster : (n,) cluster numbers from 0
    cluster_by : kind of the clusters; None if the trace has none

    Returns
    -------
    estimate; its interval is that of the ranks about the median

    References
    ----------
    Woodruff (1952), J. Am. Stat. Assoc. 47

    Examples
    --------
    >>> predicted, observed = np.array([2.0, 1.0, 9.0]), np.array([1.0, 4.0, 3.0])
    >>> round(median_factor_off(predicted, observed, np.arange(3), "user").estimate, 6)
    3.0
    """
    grouping = Grouping.from_rows(cluster, cluster_by, predicted, observed)
    if not observed.size:
        return grouping.blank_estimate(NO_HOURS)
    factor = np.exp(np.abs(_log_clipped(predicted) - _log_clipped(observed)))
    values = ValueCounts(np.sort(factor), np.ones(factor.size, np.int64))
    middle, clusters = values.median(), grouping.clusters()
    n_below = grouping.sum(factor <= middle)

    def limits(confidence: float) -> Limits:
        ranks = clusters.around_the_middle(n_below, clusters.members, confidence)
        return tuple(np.array([value_at_share(values, share) for share in rank]) for rank in ranks[:2])

    return _make_estimate(grouping, clusters, float(middle), limits)


def r2_log(predicted: np.ndarray, observed: np.ndarray, cluster: np.ndarray, cluster_by: str | None) -> Estimate:
    """Return R squared of log hours: 1 - squared errors / squared deviations from their mean. Rows: failures.

    1 is best, 0 as good as a constant prediction, below 0 worse. The interval is that of the ratio of the two sums,
    symmetric on the log scale.
    """
    grouping = Grouping.from_rows(cluster, cluster_by, predicted, observed)
    if not observed.size:
        return grouping.blank_estimate(NO_HOURS)
    logs = _log_clipped(observed)
    if logs.min() == logs.max():
        return grouping.blank_estimate(EQUAL_TIMES)
    errors, deviations = (_log_clipped(predicted) - logs) ** 2, (logs - logs.mean()) ** 2
    clusters, value = grouping.clusters(), float(1 - errors.sum() / deviations.sum())
    top, bottom = grouping.sum(errors), grouping.sum(deviations)

    def limits(confidence: float) -> Limits:
        low, high, _ = clusters.ratio(top, bottom, confidence, has_mean_leverage=True)
        return 1 - high, 1 - low

    return _make_estimate(grouping, clusters, value, limits if errors.any() else None)


def _log_clipped(hours: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(hours, SHORTEST_HOURS))


def concordance(
    hours: np.ndarray, event: np.ndarray, predicted: np.ndarray, cluster: np.ndarray, cluster_by: str | None
) -> Estimate:
    """Return Harrell's C: the share of pairs whose earlier failure has fewer predicted hours, ties a half.

    Parameters
    ----------
    hours : (n,) until failure (event), or until the job was last seen without one
    event : (n,) boolean
    predicted : (n,) hours
    cluster : (n,) cluster numbers from 0
    cluster_by : kind of the clusters; None if the trace has none

    Returns
    -------
    estimate; its interval is symmetric on the logit scale

    Notes
    -----
    Harrell et al. (1982, JAMA 247; 1996, Stat. Med. 15). A pair counts if one job failed, and the other failed later or
    was seen without a failure at that hour or later; as lifelines' concordance_index. Influences are those of pairs, so
    a cluster's influence is its pairs with all others.

    Examples
    --------
    >>> hours, event = np.array([1.0, 2.0, 3.0]), np.array([True, True, False])
    >>> round(concordance(hours, event, np.array([1.0, 5.0, 4.0]), np.arange(3), "user").estimate, 4)  # 2 of 3 pairs
    0.6667
    """
    grouping = Grouping.from_rows(cluster, cluster_by, hours, event, predicted)
    score_influence = concordance_influence(hours, event, predicted)
    if score_influence is None:
        return grouping.blank_estimate(NO_PAIR if hours.size else NO_ROWS)
    return _logit_estimate(grouping, score_influence)


def concordance_influence(hours: np.ndarray, event: np.ndarray, predicted: np.ndarray) -> ScoreInfluence | None:
    """Return the score and its influences; None if there is no pair."""
    pairs, doubled_concordant = _count_pairs(hours, event, predicted)
    if not pairs.any():
        return None
    # Each pair is counted in both of its rows.
    value = int(doubled_concordant.sum()) / (2 * int(pairs.sum()))
    total = int(pairs.sum()) / 2
    return ScoreInfluence(value, (doubled_concordant / 2 - value * pairs) / total, (pairs,))


def _count_pairs(hours: np.ndarray, event: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of each row, and twice its correctly ordered pairs with ties as one (Int64).

    The algorithm splits the ranks by hours at one binary digit after another, the highest first. Any two rows of
    different rank separate at one digit, where the earlier has 0. Among the rows that separate there, sorted by
    prediction, running sums count the pairs.
    """
    times = np.unique(hours[event])
    # A failure precedes all rows of a higher rank: a row last seen at the hour of a failure has a higher one.
    rank = np.where(event, np.searchsorted(times, hours), np.searchsorted(times, hours, side="right"))
    level = np.unique(predicted, return_inverse=True)[1]
    rows_upto = _cumulative_counts(np.bincount(rank, minlength=times.size + 1))
    failures_upto = _cumulative_counts(np.bincount(rank[event], minlength=times.size + 1))
    pairs = failures_upto[rank] + np.where(event, rank.size - rows_upto[rank + 1], 0)
    doubled_concordant = np.zeros(rank.size, np.int64)
    # Rows sorted by the digits already used, then by prediction.
    order = np.argsort(level, kind="stable")
    for digit in reversed(range(int(times.size).bit_length())):
        ranks, is_failure = rank[order], event[order]
        prefix = ranks >> (digit + 1)
        begin, end = (rows_upto[np.minimum((prefix + offset) << (digit + 1), rows_upto.size - 1)] for offset in (0, 1))
        is_late = (ranks >> digit & 1).astype(bool)
        doubled_concordant[order] += _count_concordant(level[order], is_failure, is_late, begin, end)
        # Rows with digit 0 first; each half keeps its order.
        zeros = _cumulative_counts(~is_late)
        position, zeros_before = np.arange(rank.size), zeros[:-1] - zeros[begin]
        target = np.where(is_late, position - zeros_before + zeros[end] - zeros[begin], begin + zeros_before)
        partitioned = np.empty_like(order)
        partitioned[target] = order
        order = partitioned
    return pairs, doubled_concordant


def _count_concordant(
    level: np.ndarray, is_failure: np.ndarray, is_late: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return twice the correctly ordered pairs of each row, ties counting one.

    A pair is a late row and a failure that is not late, between the same `begin` and `end`. Rows between them are
    sorted by level.
    """
    is_new = np.append(True, (level[1:] != level[:-1]) | (begin[1:] != begin[:-1]))[: level.size]
    run, run_starts = np.cumsum(is_new) - 1, np.flatnonzero(is_new)
    run_ends = np.append(run_starts[1:], level.size)
    early_upto, late_upto = _cumulative_counts(is_failure & ~is_late), _cumulative_counts(is_late)
    pairs_if_late = (early_upto[run_starts] + early_upto[run_ends])[run] - 2 * early_upto[begin]
    pairs_if_early = 2 * late_upto[end] - (late_upto[run_starts] + late_upto[run_ends])[run]
    return np.where(is_late, pairs_if_late, np.where(is_failure, pairs_if_early, 0))


def _cumulative_counts(values: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])


# Intervals ---------------------------------------------------------------------------------------------------


def _logit_estimate(grouping: Grouping, score_influence: ScoreInfluence) -> Estimate:
    value, clusters = score_influence.score, grouping.clusters(*score_influence.weights)
    if not 0 < value < 1:
        return _make_estimate(grouping, clusters, value, None)
    influence = grouping.sum(score_influence.influence) / (value * (1 - value))
    se = clusters.se(influence, clusters.share(clusters.members))
    on_logits = _symmetric_limits(clusters, logit(value), se)

    def limits(confidence: float) -> Limits:
        return tuple(expit(bound) for bound in on_logits(confidence))

    # Infinite limits are passed on, because they would turn into 0 and 1.
    return _make_estimate(grouping, clusters, value, limits if np.isfinite(se).all() else on_logits)


def _mean_estimate(grouping: Grouping, values: np.ndarray) -> Estimate:
    if not values.size:
        return grouping.blank_estimate(NO_ROWS)
    clusters, total = grouping.clusters(), grouping.sum(values)
    ratio = (lambda c: clusters.ratio(total, clusters.members, c)) if values.any() else None
    return _make_estimate(grouping, clusters, float(values.mean()), ratio)


def _symmetric_limits(clusters: Clusters, value: float, se: np.ndarray) -> Callable[[float], Limits]:
    def limits(confidence: float) -> Limits:
        half_width = se * clusters.student(confidence)
        return value - half_width, value + half_width

    return limits


def _make_estimate(
    grouping: Grouping, clusters: Clusters, value: float, limits: Callable[[float], Limits] | None
) -> Estimate:
    """Return the estimate with its limits, or a reason for none. limits: confidence -> (low, high); None at a limit."""
    n, n_effective = grouping.code.size, float(clusters.effective[0])
    if grouping.cluster_by is None:
        return Estimate(n, value, reason=UNCLUSTERED)
    estimate = Estimate(n, value, cluster_by=grouping.cluster_by, clusters=n_effective)
    if n_effective < FEWEST:
        return replace(estimate, reason=too_few_reason(n_effective, grouping.cluster_by))
    if limits is None:
        return replace(estimate, reason=AT_SCALE_LIMIT)
    low, high = (float(bound[0]) for bound in limits(CONFIDENCE)[:2])
    if not (np.isfinite(low) and np.isfinite(high)):
        is_single = np.isinf(low) or np.isinf(high)
        reason = SINGLE_CLUSTER.format(grouping.cluster_by) if is_single else f"{NO_SPREAD}: no clustered interval"
        return replace(estimate, reason=reason)
    lower, upper = (float(bound[0]) for bound in limits(TWICE_ONE_SIDED)[:2])
    return replace(estimate, low=low, high=high, lower=lower, upper=upper)


# Sums --------------------------------------------------------------------------------------------------------


def total(values: np.ndarray, cluster: np.ndarray, cluster_by: str | None) -> Estimate:
    """Return the sum of values of any sign; its interval is that of their mean, symmetric, times their number."""
    mean = mean_ratio(values, np.ones(values.size), cluster, cluster_by)
    n = values.size
    values_by_name = {name: getattr(mean, name) for name in ("estimate", "low", "high", "lower", "upper")}
    return replace(mean, **{name: value and value * n for name, value in values_by_name.items()})


def mean_ratio(top: np.ndarray, bottom: np.ndarray, cluster: np.ndarray, cluster_by: str | None) -> Estimate:
    """Return sum(top) / sum(bottom), bottom not negative, top of any sign; the interval is symmetric."""
    grouping = Grouping.from_rows(cluster, cluster_by, top, bottom)
    if not top.size:
        return grouping.blank_estimate(NO_ROWS)
    total_bottom = float(bottom.sum())
    if total_bottom <= 0:
        return grouping.blank_estimate(NO_DENOMINATOR)
    value, clusters = float(top.sum()) / total_bottom, grouping.clusters()
    top_sums, bottom_sums = grouping.sum(top), grouping.sum(bottom)
    se = clusters.se((top_sums - value * bottom_sums) / total_bottom, bottom_sums / total_bottom)
    return _make_estimate(grouping, clusters, value, _symmetric_limits(clusters, value, se))
