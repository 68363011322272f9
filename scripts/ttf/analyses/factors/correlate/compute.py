"""What goes with run time and failure, by feature of the jobs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import polars as pl
from scipy.special import betainc, betaincc

from ttf.analyses.factors.correlate import CORRELATIONS, FAILURE_SHARE, RUNTIME_BY_GROUP
from ttf.analyses.factors.correlate.clustered_correlations import OF_MEANS, clustered
from ttf.analyses.factors.correlate.run_times import Sample, by_outcome_set, groups_of, samples
from ttf.engine.counts import Rows
from ttf.engine.exact_sums import correlation_parts, dot, doubled_ranks, product, total
from ttf.records.clusters import Level
from ttf.records.inputs import Inputs
from ttf.stats.basics.holm import with_holm
from ttf.stats.basics.normal import Z_95
from ttf.stats.basics.p_value import SMALLEST_P, never_zero
from ttf.stats.clustered import beside, by_cluster, in_strata, with_limits
from ttf.stats.job_features import Feature, features_of
from ttf.stats.shares import ENDED, failure_shares


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    jobs, settings = given.scan("jobs"), given.settings
    groups, table = groups_and_correlations(jobs, [None, *settings.cutoffs_s], settings.significance)
    return {"failure_share": failure_share(jobs), "runtime_by_group": groups, "correlations": table}


_COUNTED = {"jobs": pl.len().cast(pl.Int64), **ENDED}


def failure_share(jobs: Rows) -> pl.DataFrame:
    """Failures among the ended jobs (success or failure), with FAILURE_SHARE, of all features that the table has.

    jobs: `outcome` and the features' columns. Jobs without the value form no group. Values ascend, numbers as numbers.
    """
    features, alike = features_of(jobs), None
    asked = [feature.column for feature in features if feature.kind != "measured"]
    if "cluster_by" in jobs.collect_schema():
        # Many jobs of one cluster are alike in all that they asked for: read once for all these features.
        alike = jobs.lazy().group_by("cluster", "block", *asked).agg(**_COUNTED).collect(engine="streaming")
    shares = (_share_of(jobs, feature, alike if feature.column in asked else None) for feature in features)
    return pl.concat([FAILURE_SHARE.frame([]), *shares])


def _share_of(jobs: Rows, feature: Feature, alike: pl.DataFrame | None) -> pl.DataFrame:
    """alike: _COUNTED by cluster, block and value, where they are at hand."""
    known, summed = (
        None if rows is None else rows.lazy().with_columns(key=feature.group_key()).drop_nulls("key")
        for rows in (jobs, alike)
    )
    of_clusters = by_cluster(known, ["key"], summed=summed, **_COUNTED)
    if of_clusters.height:
        counts = of_clusters.group_by("key").agg(pl.col(*_COUNTED).sum()).sort("key")
    else:
        counts = known.group_by("key").agg(**_COUNTED).collect(engine="streaming").sort("key")
    counts = counts.with_columns(
        feature=pl.lit(feature.name),
        value=feature.labels(counts["key"]),
        **failure_shares(counts),
        reason=pl.when(ended=0).then(pl.lit("no job with this value ended")),
    )
    strata, rows, clusters = in_strata(of_clusters, ["key"], "ended")
    limits = clusters.proportion(*(rows[name].to_numpy().astype(float) for name in ("failures", "ended")), 0.95)
    return FAILURE_SHARE.typed(beside(counts, with_limits(strata, *limits), ["key"]))


TOO_FEW = "fewer than 3 points"
PERFECT = f"a perfect correlation has no interval; its p is written as {SMALLEST_P}"
PERFECT_KENDALL = "a perfect correlation has no interval"


@dataclass(frozen=True)
class Estimate:
    """One correlation of n points; blanks are None, and then `reason` says why."""

    n: int
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    reason: str | None = None


def groups_and_correlations(
    jobs: Rows, cutoffs: Sequence[int | None], significance: float = 0.05
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(RUNTIME_BY_GROUP, CORRELATIONS): run times by value, and the correlation of each numeric feature with them.

    jobs, cutoffs (s): see `run_times.samples`, also for the ValueErrors raised. Rows: outcome set, feature, cut-off
    (null first), then value (ascending, numbers as numbers), or unit and method. Everything over jobs comes from exact
    integer sums, so neither row order nor threads can change a bit.

    Mean and median: of the run times (s) of the jobs with the value; the mean is their sum, divided once.

    unit `group_mean`: one point per distinct value, at the unweighted mean run time of its jobs (study 1):
    Pearson, Spearman, Kendall's tau-b. unit `job`: one point per job, measured values unrounded: Pearson,
    Spearman.

    Two-sided p: Pearson's exact under normality, Spearman's by the same distribution (the t approximation),
    Kendall's exact without ties up to 33 points, else normal: those of scipy's pearsonr, spearmanr and
    kendalltau. p_adjusted: Holm 1979 over the features within one outcome set, cut-off, unit and method;
    reject: p_adjusted < significance. 95% CIs: Pearson by Fisher's z (Fisher 1921), Spearman by
    Bonett & Wright 2000, Kendall by Fieller, Hartley & Pearson 1957. Over jobs there are clustered ones beside them,
    see `clustered`; group means have no clusters.
    """
    groups, rows, level = [], [], Level.of(jobs)
    for sample in samples(jobs, cutoffs, level.number):
        groups.append((sample.outcome_set, groups_of(sample)))
        if sample.feature.is_numeric:
            rows += [(sample.outcome_set, row) for row in _of_sample(sample, level)]
    rows = _adjusted(by_outcome_set(rows), significance)
    return pl.concat([RUNTIME_BY_GROUP.frame([]), *by_outcome_set(groups)]), CORRELATIONS.frame(rows)


def _of_sample(sample: Sample, level: Level) -> list[dict]:
    """A row per unit and method."""
    about = {"outcome_set": sample.outcome_set, "feature": sample.feature.name, "cutoff_s": sample.cutoff_s}
    of_means, of_jobs = _of_group_means(sample), _of_jobs(sample)
    known = {name: found.estimate for name, found in of_jobs.items() if found.estimate is not None}
    alike = clustered(sample, level, {name: r for name, r in known.items() if abs(r) < 1})
    rows = []
    for unit, estimates in (("group_mean", of_means), ("job", of_jobs)):
        for method, found in estimates.items():
            of_clusters = dict(alike.get(method, {})) if unit == "job" else {}
            if unit == "group_mean" and found.ci_low is not None:
                of_clusters["why_not"] = OF_MEANS
            reason = "; ".join(filter(None, (found.reason, of_clusters.pop("why_not", None)))) or None
            rows.append(about | {"unit": unit, "method": method} | vars(found) | of_clusters | {"reason": reason})
    return rows


def _adjusted(rows: list[dict], significance: float) -> list[dict]:
    def family(row: dict) -> tuple:
        cutoff = -1 if row["cutoff_s"] is None else row["cutoff_s"]
        return row["outcome_set"], cutoff, row["unit"], row["method"]

    for _, members in groupby(sorted(rows, key=family), key=family):
        for row in with_holm(with_holm(members), "p_clustered", "p_adjusted_clustered"):
            for of in ("", "_clustered"):
                p = row[f"p_adjusted{of}"]
                row[f"reject{of}"] = None if p is None else p < significance
    return rows


def _of_group_means(sample: Sample) -> dict[str, Estimate]:
    """Method -> the correlation of one point per distinct value of the feature, ascending in it."""
    present = np.flatnonzero(sample.group_counts)
    sums, counts = (column[present].tolist() for column in (sample.group_runtime_sums, sample.group_counts))
    # In units of 2^-64 s, rounded down: a thousand times finer than a double, and two different means of
    # fewer than 2^32 jobs each stay different, so that ties are ties and nothing else is.
    means = [(sum_s << 64) // count for sum_s, count in zip(sums, counts, strict=True)]
    values, n = sample.coded.group_keys.gather(present).to_list(), len(means)
    # The values are distinct by construction: only the means can be constant.
    why = TOO_FEW if n < 3 else "every mean run time is the same" if min(means) == max(means) else None
    if why:
        return dict.fromkeys(("pearson", "spearman", "kendall"), Estimate(n, reason=why))
    _, codes, ties = np.unique(np.array(means, dtype=object), return_inverse=True, return_counts=True)
    ranks = doubled_ranks(ties)[codes]
    ranked = _parts(range(2, 2 * n + 1, 2), ranks.tolist())
    # Imported here: it takes 0.4 s, and the process that jobs are forked from does it once a run.
    from scipy.stats import kendalltau

    tau, p = map(float, kendalltau(np.arange(n), ranks))
    if 1 - abs(tau) < 1e-12:
        # Rounding in tau-b's square roots; with untied values one swap changes tau by far more.
        p, tiny = never_zero(p)
        reason = "; ".join(filter(None, (PERFECT_KENDALL, tiny)))
        of_ranks = Estimate(n, math.copysign(1.0, tau), None, None, p, reason)
    else:
        of_ranks = _with_interval(n, tau, 0.437, 4, p)
    pearson = _fisher(n, _parts(values, means))
    return {"pearson": pearson, "spearman": _fisher(n, ranked, of_ranks=True), "kendall": of_ranks}


def _of_jobs(sample: Sample) -> dict[str, Estimate]:
    """Method -> the correlation of one point per job, summed by distinct value first: requests have few of them."""
    n, why = sample.n, None
    if n < 3:
        why = TOO_FEW
    elif np.count_nonzero(sample.counts) == 1:
        why = f"every value of {sample.feature.name} is the same"
    elif sample.runtimes[0] == sample.runtimes[-1]:
        why = "every run time is the same"
    if why:
        return dict.fromkeys(("pearson", "spearman"), Estimate(n, reason=why))

    def parts(x: np.ndarray, y: np.ndarray, y_by_value: np.ndarray) -> tuple[float, float, float] | None:
        """x by distinct value, y by row and, summed over jobs, by distinct value."""
        of_x, of_y = product(x, sample.counts), product(y, sample.jobs)
        return correlation_parts(n, total(of_x), total(of_y), dot(x, of_x), dot(y, of_y), dot(x, y_by_value))

    values = sample.coded.values.to_numpy()
    # Shifting the values changes no correlation and keeps the exact sums small and non-negative.
    linear = parts(values - values[0], sample.runtimes, sample.runtime_sums)
    ranked = parts(doubled_ranks(sample.counts), sample.ranks, sample.sums(sample.ranks))
    return {"pearson": _fisher(n, linear), "spearman": _fisher(n, ranked, of_ranks=True)}


def _parts(x: Sequence[int], y: Sequence[int]) -> tuple[float, float, float] | None:
    """From a few points, in Python integers of any size."""
    products = (sum(a * b for a, b in zip(one, other, strict=True)) for one, other in ((x, x), (y, y), (x, y)))
    return correlation_parts(len(x), sum(x), sum(y), *products)


def _fisher(n: int, parts: tuple[float, float, float] | None, of_ranks: bool = False) -> Estimate:
    """r with its p-value, and its interval by Fisher's z, whose variance is 1 / (n - 3), of ranks (1 + r^2 / 2) of it.

    p, two-sided: 1 - r^2 is beta distributed with n/2 - 1 and 1/2, which is the same as the t test with n - 2 degrees
    of freedom. Of the two equal forms, the one whose argument is known to full precision.
    """
    assert parts is not None, "constant input is caught before"
    r, square, complement = parts
    if abs(r) == 1.0:
        return Estimate(n, r, None, None, SMALLEST_P, PERFECT)
    p = betaincc(0.5, n / 2 - 1, square) if square < 0.5 else betainc(n / 2 - 1, 0.5, complement)
    return _with_interval(n, r, 1 + square / 2 if of_ranks else 1.0, 3, float(p))


def _with_interval(n: int, estimate: float, spread: float, least: int, p: float) -> Estimate:
    """Back from Fisher's z, whose variance is spread / (n - least): no interval where n is no more than that."""
    low = high = why = None
    if n > least:
        centre, margin = math.atanh(estimate), Z_95 * math.sqrt(spread / (n - least))
        low, high = math.tanh(centre - margin), math.tanh(centre + margin)
    else:
        why = f"the interval needs more than {least} points"
    p, tiny = never_zero(p)
    return Estimate(n, estimate, low, high, p, "; ".join(filter(None, (why, tiny))) or None)
