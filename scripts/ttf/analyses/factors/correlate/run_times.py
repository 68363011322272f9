"""Run times by outcome set, feature and cut-off: the ground that group means and correlations stand on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import polars as pl

from ttf.analyses.factors.correlate import RUNTIME_BY_GROUP
from ttf.engine.counts import Rows, code, counts, labels
from ttf.engine.exact_sums import doubled_ranks, group_sums, product
from ttf.stats.basics.order import first_of_each, numbered
from ttf.stats.job_features import Feature, features_of

Result = TypeVar("Result")

# What counts of an outcome: the three that the sets are made of; a job without one is in none.
_KIND = (
    pl.when(pl.col("outcome") == "success")
    .then(0)
    .when(pl.col("outcome") == "failure")
    .then(1)
    .when(pl.col("outcome").is_not_null())
    .then(2)
)
# The first and the last kind. `not_success` is study 1's second set: whatever is not a success and has a run time.
OUTCOME_SETS = {"success": (0, 0), "failure": (1, 1), "not_success": (1, 2)}


@dataclass(frozen=True)
class Coded:
    """A feature's column with its distinct values counted through: code i stands for the i-th smallest."""

    feature: Feature
    values: pl.Series  # the distinct values of the column, ascending
    group_keys: pl.Series  # the distinct group keys, ascending
    group_of_code: np.ndarray

    @classmethod
    def of(cls, feature: Feature, values: pl.Series) -> "Coded":
        keys = values.to_frame().select(feature.group_key()).to_series()
        # Of ascending values the keys ascend too. 16 bits are sorted fastest.
        number = keys.rle_id()
        kind = pl.Int16 if values.len() < 2**15 else pl.Int64
        return cls(feature, values, keys.unique().sort(), number.cast(kind).to_numpy())


@dataclass(frozen=True)
class Sample:
    """The jobs of one outcome set that have a value of one feature and a run time below the cut-off.

    A row is so many jobs of one value and one run time. Rows are ordered by run time, so that a cut-off is a prefix and
    ties are neighbours. What is asked by cluster has the parts of each row one after the other, several times as many.
    """

    outcome_set: str
    coded: Coded
    cutoff_s: int | None
    codes: np.ndarray  # of the feature's value
    runtimes: np.ndarray  # s, Int64, ascending
    ranks: np.ndarray  # of the run times among the jobs', doubled
    times: np.ndarray  # of the rows' run times among the distinct ones, 0 the shortest
    jobs: np.ndarray
    by_group: np.ndarray  # the rows' places by the group of their value, then by run time
    parts: np.ndarray  # how many parts each row has
    clusters: np.ndarray  # of each part the number of its jobs' cluster
    members: np.ndarray  # and how many jobs it is

    @property
    def feature(self) -> Feature:
        return self.coded.feature

    @cached_property
    def weights(self) -> np.ndarray:
        """The jobs of each part as floats."""
        return self.members.astype(float)

    def of_parts(self, of_rows: np.ndarray) -> np.ndarray:
        """What is of a row, for each of its parts."""
        return np.repeat(of_rows, self.parts)

    @cached_property
    def n(self) -> int:
        return int(self.jobs.sum())

    @cached_property
    def counts(self) -> np.ndarray:
        """Jobs by value of the feature."""
        return group_sums(self.codes, self.jobs, len(self.coded.values))

    @cached_property
    def runtime_sums(self) -> np.ndarray:
        """Summed run time (s) by value of the feature."""
        return self.sums(self.runtimes)

    def sums(self, of_jobs: np.ndarray) -> np.ndarray:
        """Something that each job of a row has, summed by value of the feature."""
        return group_sums(self.codes, product(of_jobs, self.jobs), len(self.coded.values))

    @cached_property
    def group_counts(self) -> np.ndarray:
        """Jobs by group (measured values are grouped more coarsely than they differ)."""
        return group_sums(self.coded.group_of_code, self.counts, len(self.coded.group_keys))

    @cached_property
    def group_runtime_sums(self) -> np.ndarray:
        return group_sums(self.coded.group_of_code, self.runtime_sums, len(self.coded.group_keys))


def samples(jobs: Rows, cutoffs: Sequence[int | None], cluster: pl.Expr) -> Iterator[Sample]:
    """Every sample of a jobs table: features, then outcome sets, then cut-offs (none first, then ascending).

    jobs: outcome, runtime_s (Int64, null where unknown: excluded) and the features' columns; cluster: the number of the
    cluster of each.
    cutoffs: seconds, kept are run times strictly below; None stands for no cut-off. They select on the
    outcome: a cut-off removes long jobs, not jobs of a kind.
    Raises ValueError for a cut-off that is not positive or a negative run time.
    """
    if any(cutoff is not None and cutoff <= 0 for cutoff in cutoffs):
        raise ValueError(f"a cut-off is a positive number of seconds, not {list(cutoffs)}")
    in_order = sorted(set(cutoffs), key=lambda cutoff: -1 if cutoff is None else cutoff)
    for feature in features_of(jobs):
        texts = None if feature.is_numeric else labels(jobs, feature.column)
        value = code(feature.column, texts) if texts is not None else pl.col(feature.column)
        known = jobs.filter(pl.col(feature.column).is_not_null())
        # Nothing is asked by cluster of a feature without numbers.
        of_cluster = cluster if feature.is_numeric else pl.lit(0)
        found = counts(known, kind=_KIND, runtime=pl.col("runtime_s"), value=value, cluster=of_cluster)
        if found.height and found["runtime"].min() < 0:
            raise ValueError("a run time is negative")
        values = pl.Series(texts, dtype=pl.String)
        if texts is None:
            values = found["value"].unique().sort()
            found = found.with_columns(value=numbered(found["value"].to_numpy()))
        coded = Coded.of(feature, values.alias(feature.column))
        kinds = found.drop_in_place("kind")
        for outcome_set, (first, last) in OUTCOME_SETS.items():
            begin, end = kinds.search_sorted(first), kinds.search_sorted(last, side="right")
            # Of one kind they are in order as they stand.
            rows = found.slice(begin, end - begin)
            rows = rows if first == last else rows.sort("runtime", maintain_order=True)
            codes, runtimes, members, clusters = (
                rows[name].to_numpy() for name in ("value", "runtime", "n", "cluster")
            )
            starts = first_of_each(runtimes, codes)
            parts, codes, runtimes = np.diff(starts, append=members.size), codes[starts], runtimes[starts]
            n = np.add.reduceat(members, starts) if starts.size else members
            ranks, times = _doubled_ranks_of_sorted(runtimes, n)
            by_group = np.argsort(coded.group_of_code[codes], kind="stable")
            for cutoff in in_order:
                size = n.size if cutoff is None else int(np.searchsorted(runtimes, cutoff))
                end = members.size if size == n.size else int(starts[size])
                # A cut-off keeps or drops ties together, so ranks within the prefix stay what they are.
                prefix = (column[:size] for column in (codes, runtimes, ranks, times, n))
                of_clusters = parts[:size], clusters[:end], members[:end]
                yield Sample(outcome_set, coded, cutoff, *prefix, by_group[by_group < size], *of_clusters)


def _doubled_ranks_of_sorted(values: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(doubled rank, place among the distinct ones) of ascending values, each there so many times, and maybe again."""
    starts = first_of_each(values)
    counts = np.add.reduceat(times, starts) if starts.size else times
    place = np.repeat(np.arange(starts.size), np.diff(starts, append=values.size))
    return doubled_ranks(counts)[place], place


def by_outcome_set(results: Iterable[tuple[str, Result]]) -> list[Result]:
    """Results of samples, in the order of the tables: outcome sets, then features and cut-offs as they come."""
    return [result for _, result in sorted(results, key=lambda named: list(OUTCOME_SETS).index(named[0]))]


def groups_of(sample: Sample) -> pl.DataFrame:
    """The rows of RUNTIME_BY_GROUP of one sample: the middle of an even number of run times is that of two."""
    counts = sample.group_counts
    present = np.flatnonzero(counts)
    counts = counts[present]
    runtimes, ends = sample.runtimes[sample.by_group], np.cumsum(sample.jobs[sample.by_group])
    starts = np.cumsum(counts) - counts
    low, high = (np.searchsorted(ends, starts + rank, side="right") for rank in ((counts - 1) // 2, counts // 2))
    middle = runtimes[low] + runtimes[high]
    return pl.DataFrame(
        {
            "outcome_set": [sample.outcome_set] * len(present),
            "feature": [sample.feature.name] * len(present),
            "cutoff_s": [sample.cutoff_s] * len(present),
            "value": sample.feature.labels(sample.coded.group_keys.gather(present)),
            "jobs": counts,
            "runtime_mean_s": sample.group_runtime_sums[present] / counts,
            "runtime_median_s": middle / 2,
        },
        schema=RUNTIME_BY_GROUP.schema,
    )
