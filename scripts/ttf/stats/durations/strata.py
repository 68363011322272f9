"""Counts of durations by stratum and distinct duration: the form that every survival estimator reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from ttf.engine.counts import Rows, text_codes
from ttf.records.clusters import first_block, level_names
from ttf.records.jobs import Frame
from ttf.stats.basics.order import distinct_rows, example_rows, number_rows, run_starts
from ttf.stats.durations.clustered_durations import ClusterDurations, group_by_cluster

NO_DURATION = "no known duration"
NEGATIVE = "a duration is negative"
ALL = "all"
NOBODY = np.zeros(0, dtype=np.int64)

# With more rows, only those of the latest stratification stay cached.
MAX_CACHED_ROWS = 1 << 23


@dataclass(frozen=True)
class Times:
    """Durations of one stratum by distinct length, ascending: three Int64 arrays of one length.

    seconds: the durations. ended: number of that length. events: number of these that ended by the event; the others
    are censored. late: entry ages above 0, ascending (delayed entry); all others were watched from age 0. without_time:
    number of unknown length that ended by the event; the arrays exclude them.
    """

    seconds: np.ndarray
    ended: np.ndarray
    events: np.ndarray
    late: np.ndarray = field(default_factory=lambda: NOBODY)
    without_time: int = 0

    @property
    def durations(self) -> int:
        """Return the number of durations of known length."""
        return int(self.ended.sum())

    @property
    def failures(self) -> int:
        """Return the number of these that ended by the event."""
        return int(self.events.sum())

    @property
    def exposure_s(self) -> int:
        return int((self.seconds * self.ended).sum() - self.late.sum())

    def from_zero(self) -> "Times":
        """Return the same durations with a first row at age 0, where none ends, unless there is one."""
        if self.seconds.size and self.seconds[0] == 0:
            return self
        seconds, ended, events = (np.concatenate(([0], column)) for column in (self.seconds, self.ended, self.events))
        return replace(self, seconds=seconds, ended=ended, events=events)

    def without(self, part: "Times") -> "Times":
        """Return the durations that are not in `part`, some of them."""
        index = np.searchsorted(self.seconds, part.seconds)
        ended, events = self.ended.copy(), self.events.copy()
        ended[index] -= part.ended
        events[index] -= part.events
        remains = ended > 0
        return replace(self, seconds=self.seconds[remains], ended=ended[remains], events=events[remains])

    def at_risk(self, seconds: np.ndarray) -> np.ndarray:
        """Return the number of durations at risk just before each age, in any order of ages.

        A duration with delayed entry is at risk after its entry age; one watched from the start also at age 0.
        """
        n_ended = np.concatenate(([0], np.cumsum(self.ended)))[np.searchsorted(self.seconds, seconds)]
        n_not_entered = self.late.size - np.searchsorted(self.late, seconds)
        return self.durations - n_ended - n_not_entered


def sum_by_stratum(durations: Rows, stratum_by: str, /, **sums: pl.Expr) -> pl.DataFrame:
    """Return sums of whole numbers over the durations of each stratum, sorted by stratum (raw: numbers as numbers).

    `all` is one stratum `all`, present even without durations; otherwise `stratum_by` names a column, and durations
    with null there belong to no stratum. A lazy frame stays lazy; only the sums are held. Raises ValueError for a
    missing column or a negative duration_s.
    """
    rows, sums = durations.lazy(), sums | {"shortest_s": pl.col("duration_s").min()}
    if stratum_by == ALL:
        totals = rows.select(stratum=pl.lit(ALL), **sums)
    else:
        _check_column(rows, stratum_by)
        totals = rows.drop_nulls(stratum_by).group_by(stratum=stratum_by).agg(**sums).sort("stratum")
    frame = totals.collect(engine="streaming")
    if (frame["shortest_s"] < 0).any():
        raise ValueError(NEGATIVE)
    return frame.drop("shortest_s")


def _check_column(rows: pl.LazyFrame, stratum_by: str) -> None:
    if stratum_by not in rows.collect_schema():
        raise ValueError(f"there is no column {stratum_by!r} to form strata by")


def sum_equal_durations(durations: Rows, strata: Sequence[str], *group_columns: str, **sums: pl.Expr) -> pl.DataFrame:
    """Return sums of whole numbers over the durations with equal strata and group columns, and the shortest duration_s.

    Sums over these add up to sums over all, so the durations are read once for all stratifications.
    """
    rows, sums = durations.lazy(), sums | {"duration_s": pl.col("duration_s").min()}
    # `sum_by_stratum` reports a stratification without a column.
    keys = [*(name for name in strata if name in rows.collect_schema()), *group_columns]
    return (rows.group_by(keys).agg(**sums) if keys else rows.select(**sums)).collect(engine="streaming")


# A duration that ended no later than its entry was never at risk.
_UNDER_WATCH = (pl.col("entry_s") == 0) | (pl.col("duration_s") > pl.col("entry_s"))


def durations_since_entry(durations: Frame) -> Frame:
    """Return the durations that were ever at risk, with duration_s from entry on: their exposure."""
    return durations.filter(_UNDER_WATCH).with_columns(duration_s=pl.col("duration_s") - pl.col("entry_s"))


class CountedDurations:
    """Durations counted by stratum and length, each stratification once, on first use.

    durations: frame or lazy frame with duration_s (Int64 seconds; null is excluded), event (String; null and words
    outside `events` censor) and the columns of the strata; for delayed entry also entry_s (Int64 seconds, not
    negative): such a duration is at risk from that age on, and excluded if never at risk. Durations are whole seconds,
    so the counts grow far more slowly than the rows.
    """

    def __init__(self, durations: Rows, events: Sequence[str]) -> None:
        self.durations, self.events = durations.lazy(), list(events)
        self._strata: dict[str, tuple[list[str], np.ndarray]] = {}
        self._times: dict[str, dict[str, list[Times]]] = {}
        self._by_cluster: dict[str, dict[str, ClusterDurations]] = {}

    def times(self, stratum_by: str, delayed_entry: bool = False) -> Iterator[tuple[str, list[Times]]]:
        """Yield (label, times of each event) of each stratum in order; raises as `sum_by_stratum` does.

        A stratum with only unknown durations has empty times. Labels are the raw values as text.
        """
        if stratum_by not in self._times:
            self._times[stratum_by] = dict(self._count_by_length(stratum_by))
        excluded, entries = {}, {}
        if delayed_entry and self._has_entries:
            never_watched = self.durations.filter(~_UNDER_WATCH.fill_null(False))
            excluded = dict(CountedDurations(never_watched, self.events).times(stratum_by))
            late_durations = self.durations.filter(_UNDER_WATCH & (pl.col("entry_s") > 0))
            late_durations = late_durations.with_columns(duration_s="entry_s")
            entries = dict(CountedDurations(late_durations, self.events).times(stratum_by))
        for label, event_times in self._times[stratum_by].items():
            if label in excluded:
                event_times = [times.without(never) for times, never in zip(event_times, excluded[label], strict=True)]
            if label in entries:
                late = np.repeat(entries[label][0].seconds, entries[label][0].ended)
                event_times = [replace(times, late=late) for times in event_times]
            yield label, event_times

    def by_cluster(self, stratum_by: str) -> dict[str, ClusterDurations]:
        """Return label -> durations of known length by cluster of each stratum; {} if the trace has no clusters.

        A stratum that is a single cluster (an account of one user, one system) is split by its groups.
        """
        if stratum_by not in self._by_cluster:
            cluster_by, group_by, block_by = self._level_names
            if cluster_by is None or group_by is None:
                return {}
            labels, stratum = self._index_strata(stratum_by)
            ages, (age, code, cluster, block) = self._columns
            columns = stratum, cluster, age, code, block
            is_timed = (ages[age] >= 0) & (stratum >= 0)
            strata = group_by_cluster(cluster_by, block_by, ages, *(column[is_timed] for column in columns))
            if single := [index for index, members in strata.items() if members.first.size == 1]:
                is_single = is_timed & np.isin(stratum, single)
                group = self.durations.select("group").collect(engine="streaming").to_series().to_numpy()
                columns = stratum, group, age, code, block
                groups = group_by_cluster(group_by, block_by, ages, *(column[is_single] for column in columns))
                strata |= {index: replace(groups[index], divided=int(strata[index].cluster[0])) for index in single}
            rows = sum(members.cluster.size for members in strata.values())
            cached = (members for cached_strata in self._by_cluster.values() for members in cached_strata.values())
            if rows + sum(members.cluster.size for members in cached) > MAX_CACHED_ROWS:
                self._by_cluster.clear()
            self._by_cluster[stratum_by] = {labels[index]: members for index, members in strata.items()}
        return self._by_cluster[stratum_by]

    @cached_property
    def _has_entries(self) -> bool:
        has_entry = (pl.col("entry_s") != 0).fill_null(True).any()
        return self.durations.select(has_entry).collect(engine="streaming").item()

    @cached_property
    def _level_names(self) -> tuple[str | None, ...]:
        return level_names(self.durations)

    @cached_property
    def _columns(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the distinct seconds, -1 for unknown, and age, code, cluster and block: see `ClusterDurations`."""
        cluster_by, _, block_by = self._level_names
        rows = self.durations.select(
            "duration_s",
            code=text_codes("event", self.events) + 1,
            cluster=pl.lit(0) if cluster_by is None else "cluster",
            block=first_block(block_by),
        ).collect(engine="streaming")
        if (rows["duration_s"] < 0).any():
            raise ValueError(NEGATIVE)
        seconds = rows["duration_s"].fill_null(-1).to_numpy()
        age = number_rows(seconds)
        columns = pl.Series(age), *rows.drop("duration_s")
        # The smallest types that fit, for ten million durations.
        return seconds[example_rows(age)], [column.shrink_dtype().to_numpy() for column in columns]

    def _index_strata(self, stratum_by: str) -> tuple[list[str], np.ndarray]:
        """Return the labels of the strata, and the index of each duration's label, -1 for none."""
        if stratum_by not in self._strata:
            labels, index = [ALL], np.zeros(self._columns[1][0].size, np.int8)
            if stratum_by != ALL:
                _check_column(self.durations, stratum_by)
                values = self.durations.select(pl.col(stratum_by).unique()).collect(engine="streaming").to_series()
                labels = values.drop_nulls().sort().cast(pl.String).to_list()
                codes = self.durations.select(text_codes(stratum_by, labels)).collect(engine="streaming").to_series()
                index = codes.shrink_dtype().to_numpy()
            self._strata[stratum_by] = labels, index
        return self._strata[stratum_by]

    def _count_by_length(self, stratum_by: str) -> Iterator[tuple[str, list[Times]]]:
        """Yield the label and the times of each stratum, without delayed entry: see `times`."""
        labels, stratum = self._index_strata(stratum_by)
        ages, (age, code, *_) = self._columns
        (stratum, age, code), counts = distinct_rows(stratum, age, code)
        starts = run_starts(stratum, age)
        codes = range(1, len(self.events) + 1)
        ended, *events = (
            np.add.reduceat(numbers, starts) for numbers in (counts, *(counts * (code == end) for end in codes))
        )
        stratum, seconds = stratum[starts], ages[age[starts]]
        for index, label in enumerate(labels):
            first, stop = np.searchsorted(stratum, (index, index + 1))
            start = first + np.count_nonzero(seconds[first:stop] < 0)
            lengths = seconds[start:stop], ended[start:stop]
            yield label, [Times(*lengths, n[start:stop], without_time=int(n[first:start].sum())) for n in events]


Durations = Rows | CountedDurations


def count_durations(durations: Durations, events: Sequence[str]) -> CountedDurations:
    """Count the durations, unless they are counted already."""
    return durations if isinstance(durations, CountedDurations) else CountedDurations(durations, events)


def iterate_times(
    durations: Durations, event: str, stratum_by: str, delayed_entry: bool = False
) -> Iterator[tuple[str, Times]]:
    """Yield (label, times) of each stratum in order: `CountedDurations.times` of one event; others censor."""
    for label, (times,) in iterate_competing_times(durations, [event], stratum_by, delayed_entry):
        yield label, times


def iterate_competing_times(
    durations: Durations, events: Sequence[str], stratum_by: str, delayed_entry: bool = False
) -> Iterator[tuple[str, list[Times]]]:
    """Yield (label, times of each event) of each stratum in order: `iterate_times` of competing events."""
    counted = count_durations(durations, events)
    indices = [counted.events.index(event) for event in events]
    for label, times in counted.times(stratum_by, delayed_entry):
        yield label, [times[index] for index in indices]


def stack_curves(curves: Sequence[tuple[Mapping[str, object], Mapping[str, np.ndarray]]]) -> pl.DataFrame:
    """Concatenate curves of (labels, columns): the labels repeat on each row; NaN becomes blank.

    At least one curve; all have the same labels and columns, and the columns of one curve have one length.
    """
    labels = pl.DataFrame([names for names, _ in curves])
    columns = {name: np.concatenate([curve[name] for _, curve in curves]) for name in curves[0][1]}
    rows = [next(iter(curve.values())).size for _, curve in curves]
    frame = labels[np.repeat(np.arange(len(curves)), rows)].hstack(pl.DataFrame(columns))
    return frame.with_columns(pl.selectors.float().fill_nan(None))
