"""Drift: changes of shares, distributions and medians between windows or traces, and their significance.

All results are computed from integer counts of jobs by window and value. The order of rows and the number of threads
therefore cannot change a digit; only the last steps (a root, an arcsine, a normal tail) are floats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.quality.measure_drift import DRIFT, DRIFT_SUMMARY, SIGNIFICANCE
from ttf.records.clusters import add_clusters
from ttf.records.inputs import Inputs
from ttf.records.jobs import OUTCOMES
from ttf.records.windows import WINDOW_S
from ttf.stats import clustered_differences as window_tests
from ttf.stats.basics.holm import add_adjusted_p
from ttf.stats.differences import compare_distributions, compare_medians, compare_shares

ALL_BEFORE = "all before"

# Columns of jobs.parquet whose medians are compared, in seconds, milli-units or MiB.
NUMBERS = ("runtime_s", "queue_s", "gpu_milli", "cpu_milli", "mem_mib", "size")
MOST_VALUES = 8
MOST_ROWS = 5_000


@dataclass(frozen=True)
class _Share:
    """A share: `hits` among the `jobs` that count, by window. value: the column's value whose share this is.

    cluster_counts: hits and jobs by cluster.
    """

    column: str
    value: str
    statistic: str
    hits: np.ndarray
    jobs: np.ndarray
    cluster_counts: window_tests.ClusterCounts | None = None

    def compare(self, before: slice, after: slice) -> dict:
        """Return cells of DRIFT on the change of the share between two ranges of windows."""
        counts = (int(column[windows].sum()) for windows in (before, after) for column in (self.hits, self.jobs))
        row = compare_shares(*counts)
        if self.cluster_counts and row["p_value"] is not None:
            row |= window_tests.compare_means(
                *self.cluster_counts.sum_over(before).T, *self.cluster_counts.sum_over(after).T
            )
        return row


@dataclass(frozen=True)
class _Distribution:
    """All shares of a column together: counts by window and value, and by cluster."""

    column: str
    counts: np.ndarray
    cluster_counts: window_tests.ClusterCounts | None = None
    value, statistic = None, "distribution"

    def compare(self, before: slice, after: slice) -> dict:
        """Return cells of DRIFT on the change of all shares between two ranges of windows."""
        row, cells, chi2 = compare_distributions(self.counts[before].sum(axis=0), self.counts[after].sum(axis=0))
        if self.cluster_counts and row["p_value"] is not None:
            sums_before, sums_after = (self.cluster_counts.sum_over(windows) for windows in (before, after))
            row |= window_tests.compare_cells(sums_before, sums_after, cells, chi2)
        return row


@dataclass(frozen=True)
class _Median:
    """A number by its distinct values, ascending, and the jobs of each window with each value.

    starts: start of each window among the non-zero counts, which are sorted by window, then by value. clusters: cluster
    of each count (Int64); n_clusters: number of all clusters, 0 if none are known.
    """

    column: str
    values: np.ndarray
    starts: np.ndarray
    value_indices: np.ndarray
    jobs: np.ndarray
    clusters: np.ndarray
    n_clusters: int
    value, statistic = None, "median"

    def compare(self, before: slice, after: slice) -> dict:
        """Return cells of DRIFT on the change of the median between two ranges of windows."""
        counts = self._count_jobs_by_value(before), self._count_jobs_by_value(after)
        row = compare_medians(self.values, *counts)
        if self.n_clusters and row["p_value"] is not None:
            total = counts[0] + counts[1]
            rank = (np.cumsum(total) - total / 2) / total.sum()
            row |= window_tests.compare_means(*self._sum_ranks(rank, before), *self._sum_ranks(rank, after))
        return row

    def _count_jobs_by_value(self, windows: slice) -> np.ndarray:
        rows = self._value_slice(windows)
        counts = np.bincount(self.value_indices[rows], weights=self.jobs[rows], minlength=len(self.values))
        return counts.astype(np.int64)  # whole numbers of jobs: exact in a float

    def _sum_ranks(self, rank: np.ndarray, windows: slice) -> Iterator[np.ndarray]:
        """Yield for each cluster the sum of its jobs' ranks, then its number of jobs."""
        rows = self._value_slice(windows)
        for weights in (rank[self.value_indices[rows]] * self.jobs[rows], self.jobs[rows]):
            yield np.bincount(self.clusters[rows], weights=weights, minlength=self.n_clusters)

    def _value_slice(self, windows: slice) -> slice:
        return slice(self.starts[windows.start], self.starts[windows.stop])


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    jobs, windows = add_clusters(inputs.read("jobs")), inputs.settings.windows
    comparisons = by_window(jobs, windows["by"], inputs.settings.parts) if "by" in windows else []
    if "against" in windows:
        other_jobs = add_clusters(inputs.read("jobs_against"))
        comparisons += compare_traces(other_jobs, jobs, (windows["against"], inputs.trace))
    drift = drift_table(comparisons)
    return {"drift": drift, "drift_summary": summarise_drift(drift)}


def summarise_drift(drift: pl.DataFrame) -> pl.DataFrame:
    """Count the comparisons of DRIFT, and the tested and significant ones, in the one row of DRIFT_SUMMARY."""
    counts = {"comparisons": drift.height, "tested": drift["p_adjusted_clustered"].count()}
    counts["moved_if_independent"] = int((drift["p_adjusted"] < SIGNIFICANCE).sum())
    counts["moved"] = int((drift["p_adjusted_clustered"] < SIGNIFICANCE).sum())
    return DRIFT_SUMMARY.frame([counts | {"cluster_by": drift["cluster_by"].drop_nulls().first()}])


def submission_windows(jobs: pl.DataFrame, unit: str) -> pl.Series:
    """Return the window of each job's submission, from 0; blank without a recorded submission."""
    return jobs.select(((pl.col("submit_s") - pl.col("submit_s").min()) // WINDOW_S[unit]).alias("window")).to_series()


def by_window(jobs: pl.DataFrame, unit: str, parts: Sequence[str] = ()) -> list[dict]:
    """Compare each window with the one before and with all before it: rows for `drift_table`.

    jobs: the job record. unit: day, week or month (30 days), counted from the trace's first submission; or part: the
    column `part`, in the order of `parts`. Windows are named `week 1`, `week 2` ..., or `part 1: name`; windows without
    a job are excluded. Jobs without a submission are excluded from windows of time.
    """
    if unit == "part":
        window = jobs["part"].replace_strict({part: number for number, part in enumerate(parts)}, return_dtype=pl.Int64)
    else:
        window = submission_windows(jobs, unit)
    windowed_jobs = jobs.filter(window.is_not_null())
    numbers = window.drop_nulls()
    names = [
        f"{unit} {number + 1}" + (f": {parts[number]}" if unit == "part" else "") for number in numbers.unique().sort()
    ]
    codes = (numbers.rank("dense").cast(pl.Int64) - 1).to_numpy()
    pairs = []
    for last in range(1, len(names)):
        pairs.append((names[last], names[last - 1], slice(last - 1, last), slice(last, last + 1)))
        if last > 1:  # otherwise both comparisons are the same
            pairs.append((names[last], ALL_BEFORE, slice(0, last), slice(last, last + 1)))
    return _compare_pairs(windowed_jobs, codes, len(names), pairs)


def compare_traces(jobs_before: pl.DataFrame, jobs_after: pl.DataFrame, names: tuple[str, str]) -> list[dict]:
    """Compare two traces; return rows for `drift_table`. names: of the earlier (`against`) and later one (`window`)."""
    columns = ["outcome", "gpu_type", *NUMBERS]
    if "cluster" in jobs_before.columns and "cluster" in jobs_after.columns:
        columns += ["cluster_by", "cluster"]
        # The traces share no users.
        jobs_after = jobs_after.with_columns(pl.col("cluster") + (jobs_before["cluster"].max() or 0) + 1)
    jobs = pl.concat([jobs_before.select(columns), jobs_after.select(columns)])
    codes = np.repeat(np.arange(2, dtype=np.int64), [jobs_before.height, jobs_after.height])
    return _compare_pairs(jobs, codes, 2, [(names[1], names[0], slice(0, 1), slice(1, 2))])


def drift_table(comparisons: Sequence[dict]) -> pl.DataFrame:
    """Return all comparisons (DRIFT), the largest effects first, those without an effect last; at most MOST_ROWS.

    p_adjusted, p_adjusted_clustered: Holm's correction over all comparisons, including those that are cut off.
    """
    effect_size = pl.col("effect").abs()
    table = DRIFT.frame(add_adjusted_p(add_adjusted_p(comparisons), "p_clustered", "p_adjusted_clustered"))
    return table.sort(effect_size, descending=True, nulls_last=True, maintain_order=True).head(MOST_ROWS)


Pair = tuple[str, str, slice, slice]


def _compare_pairs(jobs: pl.DataFrame, codes: np.ndarray, windows: int, pairs: Sequence[Pair]) -> list[dict]:
    """Return a row per pair of windows and measure. codes: the window of each job, from 0."""
    if not pairs:
        return []
    windowed_jobs = jobs.with_columns(pl.Series("_window", codes))
    levels = jobs["cluster_by"].drop_nulls().unique().sort().to_list() if "cluster_by" in jobs.columns else []
    clusters = (jobs.select(pl.col("cluster").max()).item() or 0) + 1 if levels else 0
    measures = [*_iterate_shares(windowed_jobs, windows, clusters), *_iterate_medians(windowed_jobs, windows, clusters)]
    cluster_cell = {"cluster_by": " and ".join(levels) or None}
    return [
        {"window": window, "against": against}
        | {name: getattr(measure, name) for name in ("column", "value", "statistic")}
        | cluster_cell
        | measure.compare(before, after)
        for window, against, before, after in pairs
        for measure in measures
    ]


# Counts ----------------------------------------------------------------------------------------------------


def _iterate_shares(frame: pl.DataFrame, windows: int, clusters: int) -> Iterator[_Share | _Distribution]:
    ended_jobs = frame.filter(pl.col("outcome").is_in(["success", "failure"]))
    is_failure = pl.col("outcome") == "failure"
    failed, ended = _count_by_window(ended_jobs.filter(is_failure), windows), _count_by_window(ended_jobs, windows)
    cluster_counts = window_tests.ClusterCounts.from_rows(ended_jobs, clusters, hits=is_failure.sum(), jobs=pl.len())
    yield _Share("outcome", "failure", "failure_share", failed, ended, cluster_counts)
    for column, values in (("outcome", list(OUTCOMES)), ("gpu_type", None)):
        jobs_with_value = frame.filter(pl.col(column).is_not_null())
        jobs = _count_by_window(jobs_with_value, windows)
        counts = jobs_with_value.group_by("_window", column).agg(jobs=pl.len().cast(pl.Int64))
        totals = counts.group_by(column).agg(pl.col("jobs").sum()).sort(["jobs", column], descending=[True, False])
        top = totals[column].head(MOST_VALUES).to_list()
        if values:
            top = [value for value in values if value in top]
        if not top:
            continue
        hits = np.zeros((windows, len(top)), dtype=np.int64)
        for window, value, number in counts.filter(pl.col(column).is_in(top)).iter_rows():
            hits[window, top.index(value)] = number
        rest = jobs - hits.sum(axis=1)
        value_sums = {f"value {index}": (pl.col(column) == value).sum() for index, value in enumerate(top)}
        if rest.any():
            value_sums["rest"] = (~pl.col(column).is_in(top)).sum()
        cluster_counts = window_tests.ClusterCounts.from_rows(jobs_with_value, clusters, **value_sums)
        yield _Distribution(column, np.column_stack([hits, rest]) if rest.any() else hits, cluster_counts)
        for index, value in enumerate(top):
            yield _Share(
                column, value, "share", hits[:, index], jobs, cluster_counts and cluster_counts.select_share(index)
            )


def _count_by_window(frame: pl.DataFrame, windows: int) -> np.ndarray:
    return np.bincount(frame["_window"].to_numpy(), minlength=windows).astype(np.int64)


def _iterate_medians(frame: pl.DataFrame, windows: int, clusters: int) -> Iterator[_Median]:
    cluster = pl.col("cluster").cast(pl.Int64) if clusters else pl.lit(0, dtype=pl.Int64)
    for column in NUMBERS:
        jobs_with_value = frame.select("_window", pl.col(column).alias("value"), cluster=cluster).drop_nulls("value")
        if not jobs_with_value.height:
            continue
        counts = jobs_with_value.group_by("_window", "value", "cluster").agg(jobs=pl.len().cast(pl.Int64))
        counts = counts.sort("_window", "value", "cluster")
        values = counts["value"].unique().sort()
        value_indices = (counts["value"].rank("dense").cast(pl.Int64) - 1).to_numpy()
        starts = np.searchsorted(counts["_window"].to_numpy(), np.arange(windows + 1))
        jobs, cluster_numbers = (counts[name].to_numpy() for name in ("jobs", "cluster"))
        yield _Median(column, values.to_numpy(), starts, value_indices, jobs, cluster_numbers, clusters)
