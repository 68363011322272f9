"""Counts of durations by stratum and distinct duration: the form that every survival estimator reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from ttf.engine.counts import Rows, sum_by_keys
from ttf.records.clusters import level_names
from ttf.records.jobs import Frame
from ttf.stats.durations.clustered_durations import ClusterDurations, group_by_cluster

NO_DURATION = "no known duration"
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

    def at_risk(self, seconds: np.ndarray) -> np.ndarray:
        """Return the number of durations at risk just before each age, in any order of ages.

        A duration with delayed entry is at risk after its entry age; one watched from the start also at age 0.
        """
        n_ended = np.concatenate(([0], np.cumsum(self.ended)))[np.searchsorted(self.seconds, seconds)]
        n_not_entered = self.late.size - np.searchsorted(self.late, seconds)
        return self.durations - n_ended - n_not_entered


def sum_by_stratum(durations: Rows, stratum_by: str, /, *group_columns: str, **sums: pl.Expr) -> pl.DataFrame:
    """Return sums of whole numbers over the durations of each stratum, or of its combinations with `group_columns`.

    `all` is one stratum `all`, present even without durations; otherwise `stratum_by` names a column, and durations
    with null there belong to no stratum. A lazy frame stays lazy; only the sums are held. Rows are sorted by stratum
    (raw: numbers as numbers, text by text) and the group columns, null last. Raises ValueError for a missing column or
    a negative duration_s.
    """
    rows, keys = durations.lazy(), group_columns
    if stratum_by != ALL:
        if stratum_by not in rows.collect_schema():
            raise ValueError(f"there is no column {stratum_by!r} to form strata by")
        rows, keys = rows.drop_nulls(stratum_by).with_columns(stratum=stratum_by), ("stratum", *group_columns)
    totals = sum_by_keys(rows, keys, **sums, shortest_s=pl.col("duration_s").min())
    if (totals["shortest_s"] < 0).any():
        raise ValueError("a duration is negative")
    if stratum_by == ALL:
        totals = totals if totals.height else totals.clear(1).with_columns(pl.col(*sums).fill_null(0))
        totals = totals.with_columns(stratum=pl.lit(ALL))
    return totals.select("stratum", *group_columns, *sums)


def sum_equal_durations(durations: Rows, strata: Sequence[str], *group_columns: str, **sums: pl.Expr) -> pl.DataFrame:
    """Return sums of whole numbers over the durations with equal strata and group columns, and the shortest duration_s.

    Sums over these add up to sums over all, so the durations are read once for all stratifications.
    """
    schema = durations.lazy().collect_schema()
    # `sum_by_stratum` reports a stratification without a column.
    keys = [*(name for name in strata if name in schema), *group_columns]
    return sum_by_keys(durations, keys, **sums, duration_s=pl.col("duration_s").min())


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
        self._counts: dict[str, dict[str, list[np.ndarray]]] = {}
        # Number of unknown duration that ended by each event.
        self._without_time: dict[str, dict[str, list[int]]] = {}
        self._by_cluster: dict[str, dict[str, ClusterDurations]] = {}

    def times(self, stratum_by: str, delayed_entry: bool = False) -> Iterator[tuple[str, list[Times]]]:
        """Yield (label, times of each event) of each stratum in order; raises as `sum_by_stratum` does.

        A stratum with only unknown durations has empty times. Labels are the raw values as text.
        """
        if stratum_by not in self._counts:
            totals = self._count_by_length(self.durations, stratum_by)
            self._counts[stratum_by] = dict(_strata_columns(totals))
            without_time = totals.filter(pl.col("duration_s").is_null()).drop("duration_s", "ended")
            without_time = without_time.with_columns(pl.col("stratum").cast(pl.String))
            self._without_time[stratum_by] = {label: n_events for label, *n_events in without_time.iter_rows()}
        excluded: dict[str, list[np.ndarray]] = {}
        late_entries: dict[str, list[np.ndarray]] = {}
        if delayed_entry and self._has_entries:
            never_watched = self.durations.filter(~_UNDER_WATCH.fill_null(False))
            excluded = dict(_strata_columns(self._count_by_length(never_watched, stratum_by)))
            late_durations = self.durations.filter(_UNDER_WATCH & (pl.col("entry_s") > 0))
            entry_counts = sum_by_stratum(late_durations, stratum_by, "entry_s", durations=pl.len())
            late_entries = dict(_strata_columns(entry_counts))
        for label, columns in self._counts[stratum_by].items():
            seconds, *counts = (column.astype(np.int64) for column in columns)
            if label in excluded:
                indices = np.searchsorted(seconds, excluded[label][0])
                for count, n_never in zip(counts, excluded[label][1:], strict=True):
                    count[indices] -= n_never
                remains = counts[0] > 0
                seconds, *counts = (column[remains] for column in (seconds, *counts))
            ended, *event_counts = counts
            entries = np.repeat(*late_entries[label]) if label in late_entries else NOBODY
            unknown = self._without_time[stratum_by].get(label, [0] * len(event_counts))
            events = zip(event_counts, unknown, strict=True)
            yield label, [Times(seconds, ended, n_events, entries, n_unknown) for n_events, n_unknown in events]

    def by_cluster(self, stratum_by: str) -> dict[str, ClusterDurations]:
        """Return label -> durations of known length by cluster of each stratum; {} if the trace has no clusters.

        A stratum that is a single cluster (an account of one user, one system) is split by its groups.
        """
        if stratum_by not in self._by_cluster:
            cluster_by, group_by, block_by = self._level_names
            if cluster_by is None or group_by is None:
                return {}
            timed = self.durations.filter(pl.col("duration_s").is_not_null())
            stratum, labels = None, pl.Series([ALL])
            if stratum_by != ALL:
                stratum = pl.col(stratum_by)
                labels = timed.select(stratum).drop_nulls().unique().collect(engine="streaming").to_series().sort()
            strata = group_by_cluster(timed, stratum, labels, ("cluster", cluster_by, block_by), self.events)
            if single := [index for index, members in strata.items() if members.first.size == 1]:
                split = timed if stratum is None else timed.filter(stratum.is_in(labels.gather(single).implode()))
                groups = group_by_cluster(split, stratum, labels, ("group", group_by, block_by), self.events)
                strata |= {index: replace(groups[index], divided=int(strata[index].cluster[0])) for index in single}
            names = labels.cast(pl.String).to_list()
            rows = sum(members.cluster.size for members in strata.values())
            cached = (members for cached_strata in self._by_cluster.values() for members in cached_strata.values())
            if rows + sum(members.cluster.size for members in cached) > MAX_CACHED_ROWS:
                self._by_cluster.clear()
            self._by_cluster[stratum_by] = {names[index]: members for index, members in strata.items()}
        return self._by_cluster[stratum_by]

    @cached_property
    def _has_entries(self) -> bool:
        has_entry = (pl.col("entry_s") != 0).fill_null(True).any()
        return self.durations.select(has_entry).collect(engine="streaming").item()

    @cached_property
    def _level_names(self) -> tuple[str | None, ...]:
        return level_names(self.durations)

    def _count_by_length(self, durations: pl.LazyFrame, stratum_by: str) -> pl.DataFrame:
        """Return, by stratum and duration_s, how many `ended`, and how many by each event (column: its index)."""
        event_counts = {str(index): (pl.col("event") == event).sum() for index, event in enumerate(self.events)}
        return sum_by_stratum(durations, stratum_by, "duration_s", ended=pl.len(), **event_counts)


def _strata_columns(totals: pl.DataFrame) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yield (label, columns) of each stratum of `sum_by_stratum` with one group column; no rows where it is null."""
    group_column = totals.columns[1]
    strata = totals.group_by("stratum", maintain_order=True).agg(rows=pl.col(group_column).count())
    columns = [column.to_numpy() for column in totals.drop_nulls(group_column).drop("stratum")]
    start = 0
    for label, rows in strata.with_columns(pl.col("stratum").cast(pl.String)).iter_rows():
        yield label, [column[start : start + rows] for column in columns]
        start += rows


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
