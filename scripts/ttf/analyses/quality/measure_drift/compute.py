"""Drift: what moved between two windows of one trace, or between two traces, by how much, and whether by chance.

Everything is computed from counts of jobs by window and value, in integers, so that the order of the rows and the
number of threads cannot change a digit; only the last steps (a root, an arc sine, a tail of the normal) are floats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.quality.measure_drift import DRIFT, DRIFT_SUMMARY, SIGNIFICANCE, window_tests
from ttf.records.clusters import with_clusters
from ttf.records.inputs import Inputs
from ttf.records.jobs import OUTCOMES
from ttf.records.windows import WINDOW_S
from ttf.stats.basics.holm import with_holm
from ttf.stats.differences import compare_distributions, compare_medians, compare_shares

ALL_BEFORE = "all before"

# Numbers whose medians are compared, by their column of jobs.parquet; a value of it in seconds, milli-units or MiB.
NUMBERS = ("runtime_s", "queue_s", "gpu_milli", "cpu_milli", "mem_mib", "size")
MOST_VALUES = 8
MOST_ROWS = 5_000


@dataclass(frozen=True)
class _Share:
    """A share: `hits` of the jobs that count, per window. value: the column's value that it is the share of.

    by_cluster: hits and jobs.
    """

    column: str
    value: str
    statistic: str
    hits: np.ndarray
    jobs: np.ndarray
    by_cluster: window_tests.Counted | None = None

    def compared(self, before: slice, after: slice) -> dict:
        counts = (int(column[windows].sum()) for windows in (before, after) for column in (self.hits, self.jobs))
        row = compare_shares(*counts)
        if self.by_cluster and row["p_value"] is not None:
            row |= window_tests.of_means(*self.by_cluster.within(before).T, *self.by_cluster.within(after).T)
        return row


@dataclass(frozen=True)
class _Whole:
    """All shares of a column at once: counts by window and value, and by cluster."""

    column: str
    counts: np.ndarray
    by_cluster: window_tests.Counted | None = None
    value, statistic = None, "distribution"

    def compared(self, before: slice, after: slice) -> dict:
        counts = self.counts[before].sum(axis=0), self.counts[after].sum(axis=0)
        row, cells, chi2 = compare_distributions(*counts)
        if self.by_cluster and row["p_value"] is not None:
            of_clusters = (self.by_cluster.within(windows) for windows in (before, after))
            row |= window_tests.of_cells(*of_clusters, cells, chi2)
        return row


@dataclass(frozen=True)
class _Number:
    """A number by its distinct values, ascending, and how many jobs of each window have each of them.

    starts: of each window among the counts that are not 0, which are in the order of window, then place of the value.
    clusters: of each count (Int64), and how many there are in all; 0 where none are known.
    """

    column: str
    values: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    jobs: np.ndarray
    clusters: np.ndarray
    number: int
    value, statistic = None, "median"

    def compared(self, before: slice, after: slice) -> dict:
        counts = self._of(before), self._of(after)
        row = compare_medians(self.values, *counts)
        if self.number and row["p_value"] is not None:
            both = counts[0] + counts[1]
            rank = (np.cumsum(both) - both / 2) / both.sum()
            row |= window_tests.of_means(*self._ranks(rank, before), *self._ranks(rank, after))
        return row

    def _of(self, windows: slice) -> np.ndarray:
        part = self._part(windows)
        counts = np.bincount(self.places[part], weights=self.jobs[part], minlength=len(self.values))
        return counts.astype(np.int64)  # whole numbers of jobs: exact in a float

    def _ranks(self, rank: np.ndarray, windows: slice) -> Iterator[np.ndarray]:
        """Of each cluster the sum of its jobs' ranks, and how many jobs these are."""
        part = self._part(windows)
        for weights in (rank[self.places[part]] * self.jobs[part], self.jobs[part]):
            yield np.bincount(self.clusters[part], weights=weights, minlength=self.number)

    def _part(self, windows: slice) -> slice:
        return slice(self.starts[windows.start], self.starts[windows.stop])


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    jobs, windows = with_clusters(given.read("jobs")), given.settings.windows
    comparisons = by_window(jobs, windows["by"], given.settings.parts) if "by" in windows else []
    if "against" in windows:
        against = with_clusters(given.read("jobs_against"))
        comparisons += between(against, jobs, (windows["against"], given.trace))
    drift = drift_table(comparisons)
    return {"drift": drift, "drift_summary": summarise_drift(drift)}


def summarise_drift(drift: pl.DataFrame) -> pl.DataFrame:
    """The one row of DRIFT_SUMMARY. drift: DRIFT."""
    counts = {"comparisons": drift.height, "tested": drift["p_adjusted_clustered"].count()}
    counts["moved_if_independent"] = (drift["p_adjusted"] < SIGNIFICANCE).sum()
    counts["moved"] = (drift["p_adjusted_clustered"] < SIGNIFICANCE).sum()
    return DRIFT_SUMMARY.frame([counts | {"cluster_by": drift["cluster_by"].drop_nulls().first()}])


def windows_of(jobs: pl.DataFrame, by: str) -> pl.Series:
    """The window of each job, from 0, by its submission; blank where no submission was written."""
    return jobs.select(((pl.col("submit_s") - pl.col("submit_s").min()) // WINDOW_S[by]).alias("window")).to_series()


def by_window(jobs: pl.DataFrame, by: str, parts: Sequence[str] = ()) -> list[dict]:
    """Each window compared with the one before and with all before it: rows for `drift_table`.

    jobs: the job record; by: day, week or month (30 days), counted from the trace's first submission, or part: the
    column `part`, in the order of `parts`. Windows without a job are excluded; they are named `week 1`, `week 2` ...,
    or `part 1: name`. Jobs without a submission take no part in windows of time.
    """
    if by == "part":
        window = jobs["part"].replace_strict({part: number for number, part in enumerate(parts)}, return_dtype=pl.Int64)
    else:
        window = windows_of(jobs, by)
    kept = jobs.filter(window.is_not_null())
    numbers = window.drop_nulls()
    names = [
        f"{by} {number + 1}" + (f": {parts[number]}" if by == "part" else "") for number in numbers.unique().sort()
    ]
    codes = (numbers.rank("dense").cast(pl.Int64) - 1).to_numpy()
    pairs = []
    for last in range(1, len(names)):
        pairs.append((names[last], names[last - 1], slice(last - 1, last), slice(last, last + 1)))
        if last > 1:  # else the same comparison once more
            pairs.append((names[last], ALL_BEFORE, slice(0, last), slice(last, last + 1)))
    return _compared(kept, codes, len(names), pairs)


def between(before: pl.DataFrame, after: pl.DataFrame, names: tuple[str, str]) -> list[dict]:
    """One trace compared with another: `against` is the first name, `window` the second. Rows for `drift_table`."""
    needed = ["outcome", "gpu_type", *NUMBERS]
    if "cluster" in before.columns and "cluster" in after.columns:
        needed += ["cluster_by", "cluster"]
        # No user of the one trace is one of the other.
        after = after.with_columns(pl.col("cluster") + (before["cluster"].max() or 0) + 1)
    both = pl.concat([before.select(needed), after.select(needed)])
    codes = np.repeat(np.arange(2, dtype=np.int64), [before.height, after.height])
    return _compared(both, codes, 2, [(names[1], names[0], slice(0, 1), slice(1, 2))])


def drift_table(comparisons: Sequence[dict]) -> pl.DataFrame:
    """All comparisons (DRIFT), the largest effect first, those without one last; at most MOST_ROWS.

    p_adjusted, p_adjusted_clustered: Holm over all comparisons, also those that are excluded.
    """
    by_size = pl.col("effect").abs()
    table = DRIFT.frame(with_holm(with_holm(comparisons), "p_clustered", "p_adjusted_clustered"))
    return table.sort(by_size, descending=True, nulls_last=True, maintain_order=True).head(MOST_ROWS)


Pair = tuple[str, str, slice, slice]


def _compared(jobs: pl.DataFrame, codes: np.ndarray, windows: int, pairs: Sequence[Pair]) -> list[dict]:
    """A row per pair of windows and measure. codes: the window of each job, from 0."""
    if not pairs:
        return []
    frame = jobs.with_columns(pl.Series("_window", codes))
    known = jobs["cluster_by"].drop_nulls().unique().sort().to_list() if "cluster_by" in jobs.columns else []
    clusters = (jobs["cluster"].max() or 0) + 1 if known else 0
    measures = [*_shares(frame, windows, clusters), *_numbers(frame, windows, clusters)]
    by = {"cluster_by": " and ".join(known) or None}
    return [
        {"window": window, "against": against, "column": of.column, "value": of.value, "statistic": of.statistic}
        | by
        | of.compared(before, after)
        for window, against, before, after in pairs
        for of in measures
    ]


# Counts ----------------------------------------------------------------------------------------------------


def _shares(frame: pl.DataFrame, windows: int, clusters: int) -> Iterator[_Share | _Whole]:
    has_ended = frame.filter(pl.col("outcome").is_in(["success", "failure"]))
    is_failure = pl.col("outcome") == "failure"
    failed, ended = _per_window(has_ended.filter(is_failure), windows), _per_window(has_ended, windows)
    of_clusters = window_tests.Counted.of(has_ended, clusters, hits=is_failure.sum(), jobs=pl.len())
    yield _Share("outcome", "failure", "failure_share", failed, ended, of_clusters)
    for column, values in (("outcome", list(OUTCOMES)), ("gpu_type", None)):
        known = frame.filter(pl.col(column).is_not_null())
        jobs = _per_window(known, windows)
        counted = known.group_by("_window", column).agg(jobs=pl.len().cast(pl.Int64))
        totals = counted.group_by(column).agg(pl.col("jobs").sum()).sort(["jobs", column], descending=[True, False])
        top = totals[column].head(MOST_VALUES).to_list()
        if values:
            top = [value for value in values if value in top]
        if not top:
            continue
        hits = np.zeros((windows, len(top)), dtype=np.int64)
        for window, value, number in counted.filter(pl.col(column).is_in(top)).iter_rows():
            hits[window, top.index(value)] = number
        rest = jobs - hits.sum(axis=1)
        of_values = {f"value {place}": (pl.col(column) == value).sum() for place, value in enumerate(top)}
        if rest.any():
            of_values["rest"] = (~pl.col(column).is_in(top)).sum()
        of_clusters = window_tests.Counted.of(known, clusters, **of_values)
        yield _Whole(column, np.column_stack([hits, rest]) if rest.any() else hits, of_clusters)
        for place, value in enumerate(top):
            yield _Share(column, value, "share", hits[:, place], jobs, of_clusters and of_clusters.one_of(place))


def _per_window(frame: pl.DataFrame, windows: int) -> np.ndarray:
    return np.bincount(frame["_window"].to_numpy(), minlength=windows).astype(np.int64)


def _numbers(frame: pl.DataFrame, windows: int, clusters: int) -> Iterator[_Number]:
    whose = pl.col("cluster").cast(pl.Int64) if clusters else pl.lit(0, dtype=pl.Int64)
    for column in NUMBERS:
        known = frame.select("_window", pl.col(column).alias("value"), cluster=whose).drop_nulls("value")
        if not known.height:
            continue
        counted = known.group_by("_window", "value", "cluster").agg(jobs=pl.len().cast(pl.Int64))
        counted = counted.sort("_window", "value", "cluster")
        values = counted["value"].unique().sort()
        places = (counted["value"].rank("dense").cast(pl.Int64) - 1).to_numpy()
        starts = np.searchsorted(counted["_window"].to_numpy(), np.arange(windows + 1))
        found = (counted[name].to_numpy() for name in ("jobs", "cluster"))
        yield _Number(column, values.to_numpy(), starts, places, *found, clusters)
