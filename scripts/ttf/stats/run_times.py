"""Run times by outcome set, feature and cut-off: the ground that group means and correlations stand on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ttf.stats.exact import doubled_ranks, group_sums
from ttf.stats.features import Feature, features_of
from ttf.stats.order import numbered

# `not_success` is study 1's second set: whatever is not a success and has a run time.
OUTCOME_SETS = {
    "success": pl.col("outcome") == "success",
    "failure": pl.col("outcome") == "failure",
    "not_success": pl.col("outcome") != "success",
}

GROUP_SCHEMA = {
    "outcome_set": pl.String,
    "feature": pl.String,
    "cutoff_s": pl.Int64,
    "value": pl.String,
    "jobs": pl.Int64,
    "runtime_mean_s": pl.Float64,
    "runtime_median_s": pl.Float64,
}


@dataclass(frozen=True)
class Coded:
    """A feature's column with its distinct values counted through: code i stands for the i-th smallest."""

    feature: Feature
    codes: np.ndarray  # per job; -1 where the job has no value
    values: pl.Series  # the distinct values of the column, ascending
    group_keys: pl.Series  # the distinct group keys, ascending
    group_of_code: np.ndarray

    @classmethod
    def of(cls, jobs: pl.DataFrame, feature: Feature) -> "Coded":
        column = pl.col(feature.column).cast(pl.Int64 if feature.is_numeric else pl.String)
        series = jobs.select(column).to_series()
        values = series.drop_nulls().unique().sort()
        keys = values.to_frame().select(feature.group_key()).to_series()
        distinct = keys.unique().sort()
        # 16 bits are sorted fastest.
        kind = np.int16 if distinct.len() < 2**15 else np.int64
        return cls(feature, _codes(series, values), values, distinct, _codes(keys, distinct).astype(kind))


def _codes(series: pl.Series, values: pl.Series) -> np.ndarray:
    """The place of each value among the distinct ones, which ascend; -1 for null."""
    if series.dtype == pl.String:
        return series.cast(pl.Enum(values)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    codes = np.full(series.len(), -1, dtype=np.int64)
    codes[series.is_not_null().to_numpy()] = numbered(series.drop_nulls().to_numpy())
    return codes


@dataclass(frozen=True)
class Sample:
    """The jobs of one outcome set that have a value of one feature and a run time below the cut-off.

    Rows are ordered by run time, so that a cut-off is a prefix and ties are neighbours.
    """

    outcome_set: str
    coded: Coded
    cutoff_s: int | None
    codes: np.ndarray  # of the feature's value, per job
    runtimes: np.ndarray  # s, Int64, ascending
    ranks: np.ndarray  # of the run times, doubled

    @property
    def feature(self) -> Feature:
        return self.coded.feature

    @cached_property
    def counts(self) -> np.ndarray:
        """Jobs by value of the feature."""
        return np.bincount(self.codes, minlength=len(self.coded.values))

    @cached_property
    def runtime_sums(self) -> np.ndarray:
        """Summed run time (s) by value of the feature."""
        return group_sums(self.codes, self.runtimes, len(self.coded.values))

    @cached_property
    def group_counts(self) -> np.ndarray:
        """Jobs by group (measured values are grouped more coarsely than they differ)."""
        return group_sums(self.coded.group_of_code, self.counts, len(self.coded.group_keys))

    @cached_property
    def group_runtime_sums(self) -> np.ndarray:
        """Summed run time (s) by group."""
        return group_sums(self.coded.group_of_code, self.runtime_sums, len(self.coded.group_keys))


def samples(
    jobs: pl.DataFrame, cutoffs: Sequence[int | None], features: Sequence[Feature] | None = None
) -> Iterator[Sample]:
    """Every sample of a jobs table: outcome sets, then features, then cut-offs (none first, then ascending).

    jobs: outcome, runtime_s (Int64, null where unknown: left out) and the features' columns.
    cutoffs: seconds, kept are run times strictly below; None stands for no cut-off. They select on the
    outcome: a cut-off removes long jobs, not jobs of a kind.
    Raises ValueError for a cut-off that is not positive or a negative run time.
    """
    if any(cutoff is not None and cutoff <= 0 for cutoff in cutoffs):
        raise ValueError(f"a cut-off is a positive number of seconds, not {list(cutoffs)}")
    in_order = sorted(set(cutoffs), key=lambda cutoff: -1 if cutoff is None else cutoff)
    chosen = features_of(jobs) if features is None else features
    every_coded = [Coded.of(jobs, feature) for feature in chosen]
    for outcome_set, belongs in OUTCOME_SETS.items():
        # Jobs of one run time may come in any order: everything computed from them is an exact sum.
        rows = (
            jobs.select("runtime_s", member=belongs.fill_null(False))
            .with_row_index("row")
            .filter(pl.col("member") & pl.col("runtime_s").is_not_null())
            .sort("runtime_s")
        )
        order = rows["row"].to_numpy()
        runtimes = rows["runtime_s"].cast(pl.Int64).to_numpy()
        if runtimes.size and runtimes[0] < 0:
            raise ValueError("a run time is negative")
        for coded in every_coded:
            codes = coded.codes[order]
            known = codes >= 0
            codes, known_runtimes = codes[known], runtimes[known]
            ranks = _doubled_ranks_of_sorted(known_runtimes)
            for cutoff in in_order:
                size = codes.size if cutoff is None else int(np.searchsorted(known_runtimes, cutoff))
                # A cut-off keeps or drops ties together, so ranks within the prefix stay what they are.
                yield Sample(outcome_set, coded, cutoff, codes[:size], known_runtimes[:size], ranks[:size])


def _doubled_ranks_of_sorted(values: np.ndarray) -> np.ndarray:
    if values.size == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    counts = np.diff(np.append(starts, values.size))
    return np.repeat(doubled_ranks(counts), counts)


def runtime_by_group(
    jobs: pl.DataFrame, cutoffs: Sequence[int | None], features: Sequence[Feature] | None = None
) -> pl.DataFrame:
    """Mean and median run time (s) by outcome set, feature, cut-off (s; null: none) and value.

    jobs, cutoffs, errors: see `samples`. Values carry the unit people use and ascend, numbers as numbers.
    The mean is the exact integer sum over the jobs, divided once; the median of an even number of jobs is
    the middle of the two middle run times.
    """
    parts = [groups_of(sample) for sample in samples(jobs, cutoffs, features)]
    return pl.concat([pl.DataFrame(schema=GROUP_SCHEMA), *parts])


def groups_of(sample: Sample) -> pl.DataFrame:
    """The rows of `runtime_by_group` of one sample."""
    counts = sample.group_counts
    present = np.flatnonzero(counts)
    counts = counts[present]
    # A stable sort by group keeps each group's run times ascending.
    groups = sample.coded.group_of_code[sample.codes]
    runtimes = sample.runtimes[np.argsort(groups, kind="stable")]
    starts = np.cumsum(counts) - counts
    middle = runtimes[starts + (counts - 1) // 2] + runtimes[starts + counts // 2]
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
        schema=GROUP_SCHEMA,
    )
