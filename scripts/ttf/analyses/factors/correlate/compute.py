"""Correlate features of jobs with run time, and compare failure shares by feature."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import polars as pl
from scipy.special import betainc, betaincc

from ttf.analyses.factors.correlate import CORRELATIONS, FAILURE_SHARE, RUNTIME_BY_GROUP
from ttf.analyses.factors.correlate.clustered_correlations import NO_MEAN_CLUSTERS, clustered_cells
from ttf.analyses.factors.correlate.run_times import Sample, iterate_samples, sort_by_outcome_set, summarise_groups
from ttf.engine.counts import Rows
from ttf.engine.exact_sums import correlation_parts, dot, doubled_ranks, product, total
from ttf.records.clusters import Level
from ttf.records.inputs import Inputs
from ttf.stats.basics.holm import add_adjusted_p
from ttf.stats.basics.normal import Z_95
from ttf.stats.basics.p_value import SMALLEST_P, raise_to_smallest
from ttf.stats.clustered import add_limits, build_clusters, join_clustered, sum_by_cluster
from ttf.stats.job_features import Feature, select_features
from ttf.stats.shares import ENDED, failure_share_columns


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    jobs, settings = inputs.scan("jobs"), inputs.settings
    groups, correlations = groups_and_correlations(jobs, [None, *settings.cutoffs_s], settings.significance)
    return {"failure_share": failure_share(jobs), "runtime_by_group": groups, "correlations": correlations}


_COUNTS = {"jobs": pl.len().cast(pl.Int64), **ENDED}


def failure_share(jobs: Rows) -> pl.DataFrame:
    """Return FAILURE_SHARE of all features in the table: failures among the ended jobs (success or failure).

    jobs: `outcome` and the features' columns. Jobs without a value form no group. Values ascend, numbers as numbers.
    """
    return pl.concat([FAILURE_SHARE.frame([]), *(_feature_shares(jobs, feature) for feature in select_features(jobs))])


def _feature_shares(jobs: Rows, feature: Feature) -> pl.DataFrame:
    keyed = jobs.lazy().with_columns(key=feature.group_key())
    # A filter before the sums would make `sum_by_cluster` read the jobs once more.
    cluster_counts = sum_by_cluster(keyed, ["key"], **_COUNTS).drop_nulls("key")
    sums = {name: pl.col(name).sum() for name in _COUNTS}
    counted, sums = (cluster_counts.lazy(), sums) if cluster_counts.height else (keyed.drop_nulls("key"), _COUNTS)
    counts = counted.group_by("key").agg(**sums).collect(engine="streaming").sort("key")
    counts = counts.with_columns(
        feature=pl.lit(feature.name),
        value=feature.labels(counts["key"]),
        **failure_share_columns(counts),
        reason=pl.when(ended=0).then(pl.lit("no job with this value ended")),
    )
    strata, rows, clusters = build_clusters(cluster_counts, ["key"], "ended")
    failures, ended = (rows[name].to_numpy().astype(float) for name in ("failures", "ended"))
    limits = add_limits(strata, *clusters.proportion(failures, ended, 0.95))
    return FAILURE_SHARE.conform(join_clustered(counts, limits, ["key"]))


TOO_FEW = "fewer than 3 points"
PERFECT = f"a perfect correlation has no interval; its p is written as {SMALLEST_P}"
PERFECT_KENDALL = "a perfect correlation has no interval"


@dataclass(frozen=True)
class Estimate:
    """A correlation of n points; where a value is None, `reason` says why."""

    n: int
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    reason: str | None = None


def groups_and_correlations(
    jobs: Rows, cutoffs: Sequence[int | None], significance: float = 0.05
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (RUNTIME_BY_GROUP, CORRELATIONS): run times by value, and their correlation with each numeric feature.

    jobs, cutoffs (s): see `run_times.iterate_samples`, also for the ValueErrors raised. Rows: outcome set, feature,
    cut-off (null first), then value (ascending, numbers as numbers), or unit and method. Everything over jobs comes
    from exact integer sums, so neither row order nor threads can change a bit.

    Mean and median: of the run times (s) of the jobs with the value; the mean is their sum, divided once.

    unit `group_mean`: one point per distinct value, at the unweighted mean run time of its jobs (study 1): Pearson,
    Spearman, Kendall's tau-b. unit `job`: one point per job, measured values unrounded: Pearson, Spearman.

    Two-sided p: Pearson's is exact under normality; Spearman's uses the same distribution (the t approximation);
    Kendall's is exact without ties up to 33 points, else normal. They equal those of scipy's pearsonr, spearmanr and
    kendalltau. p_adjusted: Holm 1979 over the features within one outcome set, cut-off, unit and method; reject:
    p_adjusted < significance. 95% CIs: Pearson by Fisher's z (Fisher 1921), Spearman by Bonett & Wright 2000, Kendall
    by Fieller, Hartley & Pearson 1957. Correlations over jobs also have clustered intervals, see `clustered_cells`;
    group means have no clusters.
    """
    groups, correlations, level = [], [], Level.from_jobs(jobs)
    for sample in iterate_samples(jobs, cutoffs, level.cell):
        groups.append((sample.outcome_set, summarise_groups(sample)))
        if sample.feature.is_numeric:
            correlations += [(sample.outcome_set, row) for row in _correlation_rows(sample, level)]
    rows = _adjust_p(sort_by_outcome_set(correlations), significance)
    return pl.concat([RUNTIME_BY_GROUP.frame([]), *sort_by_outcome_set(groups)]), CORRELATIONS.frame(rows)


def _correlation_rows(sample: Sample, level: Level) -> list[dict]:
    """Return the rows of CORRELATIONS of a sample: by unit (group_mean, job) and method."""
    keys = {"outcome_set": sample.outcome_set, "feature": sample.feature.name, "cutoff_s": sample.cutoff_s}
    mean_estimates, job_estimates = _correlate_means(sample), _correlate_jobs(sample)
    r_by_method = {name: estimate.estimate for name, estimate in job_estimates.items() if estimate.estimate is not None}
    cells_by_method = clustered_cells(sample, level, {name: r for name, r in r_by_method.items() if abs(r) < 1})
    rows = []
    for unit, estimates in (("group_mean", mean_estimates), ("job", job_estimates)):
        for method, estimate in estimates.items():
            cluster_cells = dict(cells_by_method.get(method, {})) if unit == "job" else {}
            if unit == "group_mean" and estimate.ci_low is not None:
                cluster_cells["why_not"] = NO_MEAN_CLUSTERS
            reason = "; ".join(filter(None, (estimate.reason, cluster_cells.pop("why_not", None)))) or None
            rows.append(keys | {"unit": unit, "method": method} | vars(estimate) | cluster_cells | {"reason": reason})
    return rows


def _adjust_p(rows: list[dict], significance: float) -> list[dict]:
    """Add p_adjusted and reject, both also clustered, in each family of tests."""

    def holm_family(row: dict) -> tuple:
        cutoff = -1 if row["cutoff_s"] is None else row["cutoff_s"]
        return row["outcome_set"], cutoff, row["unit"], row["method"]

    for _, members in groupby(sorted(rows, key=holm_family), key=holm_family):
        for row in add_adjusted_p(add_adjusted_p(members), "p_clustered", "p_adjusted_clustered"):
            for suffix in ("", "_clustered"):
                p = row[f"p_adjusted{suffix}"]
                row[f"reject{suffix}"] = None if p is None else p < significance
    return rows


def _correlate_means(sample: Sample) -> dict[str, Estimate]:
    """Return the estimate by method, with a point per distinct value of the feature: the mean run time of its jobs."""
    present = np.flatnonzero(sample.group_counts)
    sums, counts = (column[present].tolist() for column in (sample.group_runtime_sums, sample.group_counts))
    # Means in units of 2^-64 s, rounded down: a thousand times finer than a double. Two different means of fewer than
    # 2^32 jobs each stay different, so only equal means are tied.
    means = [(sum_s << 64) // count for sum_s, count in zip(sums, counts, strict=True)]
    values, n = sample.coded.group_keys.gather(present).to_list(), len(means)
    # The values are distinct by construction: only the means can be constant.
    reason = TOO_FEW if n < 3 else "every mean run time is the same" if min(means) == max(means) else None
    if reason:
        return dict.fromkeys(("pearson", "spearman", "kendall"), Estimate(n, reason=reason))
    _, codes, ties = np.unique(np.array(means, dtype=object), return_inverse=True, return_counts=True)
    ranks = doubled_ranks(ties)[codes]
    rank_parts = _few_parts(range(2, 2 * n + 1, 2), ranks.tolist())
    # Imported here because it takes 0.4 s; the process that jobs are forked from does it once per run.
    from scipy.stats import kendalltau

    tau, p = map(float, kendalltau(np.arange(n), ranks))
    if 1 - abs(tau) < 1e-12:
        # Only rounding in tau-b's square roots: with untied values one swap changes tau by far more.
        p, tiny_reason = raise_to_smallest(p)
        reason = "; ".join(filter(None, (PERFECT_KENDALL, tiny_reason)))
        kendall = Estimate(n, math.copysign(1.0, tau), None, None, p, reason)
    else:
        kendall = _with_interval(n, tau, 0.437, 4, p)
    pearson = _estimate_r(n, _few_parts(values, means))
    return {"pearson": pearson, "spearman": _estimate_r(n, rank_parts, is_ranked=True), "kendall": kendall}


def _correlate_jobs(sample: Sample) -> dict[str, Estimate]:
    """Return the estimate by method, with a point per job; sum by distinct value first, as requests have few."""
    n, reason = sample.n, ""
    if n < 3:
        reason = TOO_FEW
    elif np.count_nonzero(sample.counts) == 1:
        reason = f"every value of {sample.feature.name} is the same"
    elif sample.runtimes[0] == sample.runtimes[-1]:
        reason = "every run time is the same"
    if reason:
        return dict.fromkeys(("pearson", "spearman"), Estimate(n, reason=reason))

    def sum_parts(x: np.ndarray, y: np.ndarray, y_by_value: np.ndarray) -> tuple[float, float, float] | None:
        """Return `correlation_parts`; x: by distinct value, y: by row, y_by_value: y summed by distinct value."""
        sum_x, sum_y = product(x, sample.counts), product(y, sample.jobs)
        return correlation_parts(n, total(sum_x), total(sum_y), dot(x, sum_x), dot(y, sum_y), dot(x, y_by_value))

    values = sample.coded.values.to_numpy()
    # Shifting the values changes no correlation and keeps the exact sums small and non-negative.
    value_parts = sum_parts(values - values[0], sample.runtimes, sample.runtime_sums)
    rank_parts = sum_parts(doubled_ranks(sample.counts), sample.ranks, sample.sum_by_value(sample.ranks))
    return {"pearson": _estimate_r(n, value_parts), "spearman": _estimate_r(n, rank_parts, is_ranked=True)}


def _few_parts(x: Sequence[int], y: Sequence[int]) -> tuple[float, float, float] | None:
    """Return `correlation_parts` of few points, from sums in Python integers of any size."""
    products = (sum(a * b for a, b in zip(first, second, strict=True)) for first, second in ((x, x), (y, y), (x, y)))
    return correlation_parts(len(x), sum(x), sum(y), *products)


def _estimate_r(n: int, parts: tuple[float, float, float] | None, is_ranked: bool = False) -> Estimate:
    """Estimate r from its parts, p, and the interval by Fisher's z, variance 1 / (n - 3) (ranks: x (1 + r^2 / 2)).

    Two-sided p: 1 - r^2 is beta distributed with n/2 - 1 and 1/2, which is the same as the t test with n - 2 degrees of
    freedom. Of the two equal forms, the one whose argument has full precision is used.
    """
    assert parts is not None, "constant input is caught before"
    r, square, complement = parts
    if abs(r) == 1.0:
        return Estimate(n, r, None, None, SMALLEST_P, PERFECT)
    p = betaincc(0.5, n / 2 - 1, square) if square < 0.5 else betainc(n / 2 - 1, 0.5, complement)
    return _with_interval(n, r, 1 + square / 2 if is_ranked else 1.0, 3, float(p))


def _with_interval(n: int, estimate: float, spread: float, n_min: int, p: float) -> Estimate:
    """Return the estimate with limits by Fisher's z, variance spread / (n - n_min); no limits if n <= n_min."""
    low = high = reason = None
    if n > n_min:
        centre, margin = math.atanh(estimate), Z_95 * math.sqrt(spread / (n - n_min))
        low, high = math.tanh(centre - margin), math.tanh(centre + margin)
    else:
        reason = f"the interval needs more than {n_min} points"
    p, tiny_reason = raise_to_smallest(p)
    return Estimate(n, estimate, low, high, p, "; ".join(filter(None, (reason, tiny_reason))) or None)
