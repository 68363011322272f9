"""Samples of run times by outcome set, feature and cut-off, for group means and correlations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import polars as pl
from scipy.sparse import csc_array

from ttf.analyses.factors.correlate import RUNTIME_BY_GROUP
from ttf.engine.counts import Rows, count_rows, distinct_texts, text_codes
from ttf.engine.exact_sums import doubled_ranks, group_sums, product
from ttf.stats.basics.order import example_rows, number_rows, run_starts
from ttf.stats.job_features import Feature, select_features

Result = TypeVar("Result")

# Kinds of outcomes that make up the sets; a job without an outcome is in no set.
_KIND = (
    pl.when(pl.col("outcome") == "success")
    .then(0)
    .when(pl.col("outcome") == "failure")
    .then(1)
    .when(pl.col("outcome").is_not_null())
    .then(2)
)
# First and last kind of each set. `not_success` is the second set of study 1: every other job with a run time.
OUTCOME_SETS = {"success": (0, 0), "failure": (1, 1), "not_success": (1, 2)}


@dataclass(frozen=True)
class CodedFeature:
    """The distinct values of a feature: code i is the i-th smallest."""

    feature: Feature
    values: pl.Series  # the distinct values of the column, ascending
    group_keys: pl.Series  # the distinct group keys, ascending
    group_by_code: np.ndarray

    @classmethod
    def from_values(cls, feature: Feature, values: pl.Series) -> "CodedFeature":
        keys = values.to_frame().select(feature.group_key()).to_series()
        # Ascending values have ascending keys. 16 bits are sorted fastest.
        group = keys.rle_id()
        dtype = pl.Int16 if values.len() < 2**15 else pl.Int64
        return cls(feature, values, keys.unique().sort(), group.cast(dtype).to_numpy())


@dataclass(frozen=True)
class Sample:
    """The jobs of one outcome set that have a value of one feature and a run time below the cut-off.

    A row is a number of jobs with the same value and run time. Rows are ordered by run time, so that a cut-off is a
    prefix and ties are neighbours. The parts of a row are its jobs by cluster, one after the other.
    """

    outcome_set: str
    coded: CodedFeature
    cutoff_s: int | None
    codes: np.ndarray  # of the feature's value
    runtimes: np.ndarray  # s, Int64, ascending
    ranks: np.ndarray  # doubled ranks of the run times among the jobs
    times: np.ndarray  # index of the run time among the distinct ones, 0 the shortest
    jobs: np.ndarray
    group_order: np.ndarray  # rows ordered by the group of their value, then by run time
    starts: np.ndarray  # index of the first part of each row, and the number of parts
    clusters: np.ndarray  # index of the cell of each part, a cluster in one block
    cells: np.ndarray  # numbers of all cells, ascending
    members: np.ndarray  # number of jobs of each part

    @property
    def feature(self) -> Feature:
        return self.coded.feature

    @cached_property
    def jobs_by_cell(self) -> csc_array:
        """Return the matrix of the number of jobs by cell and row."""
        return csc_array((self.members.astype(float), self.clusters, self.starts))

    @cached_property
    def n(self) -> int:
        """Return the number of jobs."""
        return int(self.jobs.sum())

    @cached_property
    def counts(self) -> np.ndarray:
        """Return the number of jobs by value of the feature."""
        return group_sums(self.codes, self.jobs, len(self.coded.values))

    @cached_property
    def runtime_sums(self) -> np.ndarray:
        """Return the summed run time (s) by value of the feature."""
        return self.sum_by_value(self.runtimes)

    def sum_by_value(self, row_values: np.ndarray) -> np.ndarray:
        """Sum a value of each row over its jobs, by value of the feature."""
        return group_sums(self.codes, product(row_values, self.jobs), len(self.coded.values))

    @cached_property
    def group_counts(self) -> np.ndarray:
        """Return the number of jobs by group, which is coarser than the value if it is measured."""
        return group_sums(self.coded.group_by_code, self.counts, len(self.coded.group_keys))

    @cached_property
    def group_runtime_sums(self) -> np.ndarray:
        return group_sums(self.coded.group_by_code, self.runtime_sums, len(self.coded.group_keys))


def iterate_samples(jobs: Rows, cutoffs: Sequence[int | None], cell: pl.Expr) -> Iterator[Sample]:
    """Yield every sample of a jobs table: features, then outcome sets, then cut-offs (none first, then ascending).

    jobs: outcome, runtime_s (Int64; null is excluded) and the features' columns; cell: number of the cell of each job.
    cutoffs: seconds; run times strictly below are kept, None means no cut-off. A cut-off selects on the run time
    itself, so it removes long jobs, not a kind of jobs. Raises ValueError for a cut-off that is not positive, and for a
    negative run time.
    """
    if any(cutoff is not None and cutoff <= 0 for cutoff in cutoffs):
        raise ValueError(f"a cut-off is a positive number of seconds, not {list(cutoffs)}")
    ordered_cutoffs = sorted(set(cutoffs), key=lambda cutoff: -1 if cutoff is None else cutoff)
    for feature in select_features(jobs):
        texts = None if feature.is_numeric else distinct_texts(jobs, feature.column)
        value = pl.col(feature.column) if texts is None else text_codes(feature.column, texts)
        valued_jobs = jobs.filter(pl.col(feature.column).is_not_null())
        # Features without numbers have no clustered correlation.
        cell_number = cell if feature.is_numeric else pl.lit(0)
        value_counts = count_rows(
            valued_jobs, kind=_KIND, runtime=pl.col("runtime_s"), value=value, cluster=cell_number
        )
        if (value_counts["runtime"] < 0).any():
            raise ValueError("a run time is negative")
        values = pl.Series(texts, dtype=pl.String)
        if texts is None:
            values = value_counts["value"].unique().sort()
            value_counts = value_counts.with_columns(value=number_rows(value_counts["value"].to_numpy()))
        cell_index = number_rows(value_counts["cluster"].to_numpy())
        cells = value_counts["cluster"].to_numpy()[example_rows(cell_index)]
        value_counts = value_counts.with_columns(cluster=cell_index.astype(np.int32))
        coded = CodedFeature.from_values(feature, values.alias(feature.column))
        kinds = value_counts.drop_in_place("kind")
        for outcome_set, (first, last) in OUTCOME_SETS.items():
            begin, end = kinds.search_sorted(first), kinds.search_sorted(last, side="right")
            # Rows of a single kind are already in order.
            rows = value_counts.slice(begin, end - begin)
            rows = rows if first == last else rows.sort("runtime", maintain_order=True)
            codes, runtimes, members, clusters = (
                rows[name].to_numpy() for name in ("value", "runtime", "n", "cluster")
            )
            starts = run_starts(runtimes, codes)
            codes, runtimes = codes[starts], runtimes[starts]
            n = np.add.reduceat(members, starts) if starts.size else members
            starts = np.append(starts, members.size)
            ranks, times = _doubled_ranks_of_sorted(runtimes, n)
            group_order = np.argsort(coded.group_by_code[codes], kind="stable")
            for cutoff in ordered_cutoffs:
                size = n.size if cutoff is None else int(np.searchsorted(runtimes, cutoff))
                end = int(starts[size])
                # A cut-off keeps or drops ties together, so ranks within the prefix do not change.
                prefix = codes[:size], runtimes[:size], ranks[:size], times[:size], n[:size]
                cluster_parts = starts[: size + 1], clusters[:end], cells, members[:end]
                yield Sample(outcome_set, coded, cutoff, *prefix, group_order[group_order < size], *cluster_parts)


def _doubled_ranks_of_sorted(values: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (doubled rank, index among the distinct ones) of ascending values, each occurring `times` times."""
    starts = run_starts(values)
    counts = np.add.reduceat(times, starts) if starts.size else times
    index = np.repeat(np.arange(starts.size), np.diff(starts, append=values.size))
    return doubled_ranks(counts)[index], index


def sort_by_outcome_set(results: Iterable[tuple[str, Result]]) -> list[Result]:
    """Return the results, given with their outcome set, in the order of OUTCOME_SETS."""
    return [result for _, result in sorted(results, key=lambda named: list(OUTCOME_SETS).index(named[0]))]


def summarise_groups(sample: Sample) -> pl.DataFrame:
    """Return the rows of RUNTIME_BY_GROUP of a sample; the median of an even number is the mean of two run times."""
    counts = sample.group_counts
    present = np.flatnonzero(counts)
    counts = counts[present]
    runtimes, cumulative = sample.runtimes[sample.group_order], np.cumsum(sample.jobs[sample.group_order])
    starts = np.cumsum(counts) - counts
    low, high = (np.searchsorted(cumulative, starts + rank, side="right") for rank in ((counts - 1) // 2, counts // 2))
    return pl.DataFrame(
        {
            "outcome_set": [sample.outcome_set] * len(present),
            "feature": [sample.feature.name] * len(present),
            "cutoff_s": [sample.cutoff_s] * len(present),
            "value": sample.feature.labels(sample.coded.group_keys.gather(present)),
            "jobs": counts,
            "runtime_mean_s": sample.group_runtime_sums[present] / counts,
            "runtime_median_s": (runtimes[low] + runtimes[high]) / 2,
        },
        schema=RUNTIME_BY_GROUP.schema,
    )
