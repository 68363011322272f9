"""Lives by stratum, counted up per distinct duration: the one form that every survival estimator reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from ttf.records.clusters import level_names
from ttf.records.jobs import Frame
from ttf.stats.durations.clustered_lives import ClusterLives, counted

NO_LIFE = "no life with a known duration"
ALL = "all"
NOBODY = np.zeros(0, dtype=np.int64)

# Of more rows only those of the stratification that was asked for last are kept.
MOST_KEPT = 1 << 23


@dataclass(frozen=True)
class Times:
    """The lives of one stratum by distinct duration, ascending: three Int64 arrays of one length.

    seconds: the durations. ended: lives that lasted as long. events: those of them that ended by the event;
    the rest are censored there. late: the ages above 0, ascending, at which lives came under watch (delayed entry);
    all others were watched from age 0. without_time: lives of unknown duration that ended by the event, which are in
    none of these.
    """

    seconds: np.ndarray
    ended: np.ndarray
    events: np.ndarray
    late: np.ndarray = field(default_factory=lambda: NOBODY)
    without_time: int = 0

    @property
    def lives(self) -> int:
        return int(self.ended.sum())

    @property
    def failures(self) -> int:
        return int(self.events.sum())

    @property
    def exposure_s(self) -> int:
        return int((self.seconds * self.ended).sum() - self.late.sum())

    def from_zero(self) -> "Times":
        """The same lives with a first row at age 0, where nobody ends, unless there is one already."""
        if self.seconds.size and self.seconds[0] == 0:
            return self
        columns = (np.concatenate(([0], column)) for column in (self.seconds, self.ended, self.events))
        return Times(*columns, self.late, self.without_time)

    def at_risk(self, seconds: np.ndarray) -> np.ndarray:
        """How many lives were under watch and had not ended just before each of some ages, ascending or not.

        A life that came under watch at an age is at risk after it; one watched from the start also at age 0.
        """
        gone = np.concatenate(([0], np.cumsum(self.ended)))[np.searchsorted(self.seconds, seconds)]
        still_to_come = self.late.size - np.searchsorted(self.late, seconds)
        return self.lives - gone - still_to_come


def by_stratum(lives: Frame, stratum_by: str, /, *beside: str, **sums: pl.Expr) -> pl.DataFrame:
    """Sums of whole numbers over the lives of each stratum, or of each of its combinations with the columns beside.

    lives: a frame, or one yet to be read; of this the sums are held alone. `all` is one stratum `all`, there without
    lives too; otherwise `stratum_by` names a column, and lives with null there form none. Rows are in the order of
    stratum (raw: numbers as numbers, text by text) and of the columns beside, null last.
    Raises ValueError when there is no such column or a duration (duration_s) is negative.
    """
    lives = lives.lazy()
    if stratum_by == "all":
        by = [*beside]
    elif stratum_by in lives.collect_schema():
        lives = lives.drop_nulls(stratum_by)
        by = [pl.col(stratum_by).alias("stratum"), *beside]
    else:
        raise ValueError(f"there is no column {stratum_by!r} to form strata by")
    # Where durations distinguish groups, each has one.
    shortest = {} if "duration_s" in beside else {"shortest_s": pl.col("duration_s").min()}
    # Whole numbers: what order they are added in, a block at a time, does not matter.
    found = lives.group_by(by).agg(**sums, **shortest) if by else lives.select(**sums, **shortest)
    found = found.collect(engine="streaming")
    if (found["shortest_s" if shortest else "duration_s"] < 0).any():
        raise ValueError("a duration is negative")
    if stratum_by == "all":
        found = found if found.height else found.clear(1).with_columns(pl.col(*sums).fill_null(0))
        found = found.with_columns(stratum=pl.lit("all"))
    found = found.select("stratum", *beside, *sums)
    if not beside:
        return found.sort("stratum")
    # To sort each stratum takes a fifth of what it takes to sort all of them together.
    strata = sorted(found.partition_by("stratum"), key=lambda rows: rows["stratum"][0])
    return pl.concat([found.clear(), *(rows.sort(beside, nulls_last=True) for rows in strata)])


def alike(lives: Frame, strata: Sequence[str], *beside: str, **sums: pl.Expr) -> pl.DataFrame:
    """Sums of whole numbers over the lives that are alike in every stratum and in the columns beside; duration_s: of

    the shortest of them. What adds up over these adds up over the lives, which are read once for all stratifications.
    """
    there = lives.lazy().collect_schema()
    # One that has no column is for `by_stratum` to name.
    by = [*(name for name in strata if name in there), *beside]
    sums = {**sums, "duration_s": pl.col("duration_s").min()}
    return (lives.lazy().group_by(by).agg(**sums) if by else lives.lazy().select(**sums)).collect(engine="streaming")


# A life that ended no later than it came under watch never was at risk.
_UNDER_WATCH = (pl.col("entry_s") == 0) | (pl.col("duration_s") > pl.col("entry_s"))


def since_watched(lives: Frame) -> Frame:
    """The lives that were ever under watch, with the time (duration_s) that each was: what adds up to exposure."""
    return lives.filter(_UNDER_WATCH).with_columns(duration_s=pl.col("duration_s") - pl.col("entry_s"))


class CountedLives:
    """Lives counted by stratum and duration, each stratification once, when it is first asked for.

    lives: a frame, or one yet to be read, with duration_s (Int64 seconds; null, unknown, is excluded), event (String;
    null and any other than one of `events` censor) and the strata's columns; for delayed entry also entry_s (Int64
    seconds, not negative): such a life is at risk from that age on, and one never at risk is excluded.
    Durations being whole seconds, the counts grow far more slowly than the lives.
    """

    def __init__(self, lives: Frame, events: Sequence[str]) -> None:
        self.lives, self.events = lives.lazy(), list(events)
        self._counted: dict[str, dict[str, list[np.ndarray]]] = {}
        # Of unknown duration, ended by each event.
        self._without_time: dict[str, dict[str, list[int]]] = {}
        self._by_cluster: dict[str, dict[str, ClusterLives]] = {}
        self._named: tuple[str | None, ...] | None = None

    def times(self, stratum_by: str, delayed_entry: bool = False) -> Iterator[tuple[str, list[Times]]]:
        """(label, times of each event) of each stratum in order; errors: see `by_stratum`.

        A stratum whose lives all lack a duration comes with empty times. Labels are the raw values as text.
        """
        if stratum_by not in self._counted:
            counted = self._count(self.lives, stratum_by)
            self._counted[stratum_by] = dict(_columns(counted))
            unknown = counted.filter(pl.col("duration_s").is_null()).drop("duration_s", "ended")
            unknown = unknown.with_columns(pl.col("stratum").cast(pl.String))
            self._without_time[stratum_by] = {label: hits for label, *hits in unknown.iter_rows()}
        gone, late = {}, {}
        if delayed_entry:
            gone = dict(_columns(self._count(self.lives.filter(~_UNDER_WATCH.fill_null(False)), stratum_by)))
            came = self.lives.filter(_UNDER_WATCH & (pl.col("entry_s") > 0))
            late = dict(_columns(by_stratum(came, stratum_by, "entry_s", lives=pl.len())))
        for label, columns in self._counted[stratum_by].items():
            seconds, *counts = (column.astype(np.int64) for column in columns)
            if label in gone:
                places = np.searchsorted(seconds, gone[label][0])
                for count, never in zip(counts, gone[label][1:], strict=True):
                    count[places] -= never
                left = counts[0] > 0
                seconds, *counts = (column[left] for column in (seconds, *counts))
            ended, *hits = counts
            entries = np.repeat(*late[label]) if label in late else NOBODY
            unknown = self._without_time[stratum_by].get(label, [0] * len(hits))
            yield label, [Times(seconds, ended, hit, entries, of) for hit, of in zip(hits, unknown, strict=True)]

    def by_cluster(self, stratum_by: str) -> dict[str, ClusterLives]:
        """Label -> the lives of each stratum by cluster, those of known duration; nothing where nothing names clusters.

        A stratum that is one cluster alone (an account of one user, one system of several) is divided by its groups.
        """
        if stratum_by not in self._by_cluster:
            if not (named := self._named_clusters()):
                return {}
            known = self.lives.filter(pl.col("duration_s").is_not_null())
            stratum, labels = None, [ALL]
            if stratum_by != ALL:
                stratum = pl.col(stratum_by)
                labels = known.select(stratum).drop_nulls().unique().collect(engine="streaming").to_series().sort()
            found = counted(known, stratum, labels, ("cluster", named[0]), self.events)
            if alone := [place for place, of in found.items() if of.first.size == 1]:
                within = (
                    known if stratum is None else known.filter(stratum.is_in(pl.Series(labels).gather(alone).implode()))
                )
                groups = counted(within, stratum, labels, ("group", named[1]), self.events)
                found |= {place: replace(groups[place], divided=int(found[place].cluster[0])) for place in alone}
            names = pl.Series(labels).cast(pl.String).to_list()
            rows = sum(of.cluster.size for of in found.values())
            if rows + sum(of.cluster.size for kept in self._by_cluster.values() for of in kept.values()) > MOST_KEPT:
                self._by_cluster.clear()
            self._by_cluster[stratum_by] = {names[place]: of for place, of in found.items()}
        return self._by_cluster[stratum_by]

    def _named_clusters(self) -> tuple[str | None, ...]:
        """What the clusters and the groups of these lives are; nothing where nothing names any."""
        if self._named is None:
            names = level_names(self.lives)
            self._named = () if names[0] is None else names
        return self._named

    def _count(self, lives: pl.LazyFrame, stratum_by: str) -> pl.DataFrame:
        hits = {str(place): (pl.col("event") == event).sum() for place, event in enumerate(self.events)}
        return by_stratum(lives, stratum_by, "duration_s", ended=pl.len(), **hits)


def _columns(counted: pl.DataFrame) -> Iterator[tuple[str, list[np.ndarray]]]:
    """(label, its columns) of each stratum of `by_stratum` with a column beside; without the row where that is null."""
    beside = counted.columns[1]
    strata = counted.group_by("stratum", maintain_order=True).agg(rows=pl.col(beside).count())
    columns = [column.to_numpy() for column in counted.drop_nulls(beside).drop("stratum")]
    first = 0
    for label, rows in strata.with_columns(pl.col("stratum").cast(pl.String)).iter_rows():
        yield label, [column[first : first + rows] for column in columns]
        first += rows


Lives = pl.DataFrame | pl.LazyFrame | CountedLives


def counted_lives(lives: Lives, events: Sequence[str]) -> CountedLives:
    """The lives counted, unless they are already."""
    return lives if isinstance(lives, CountedLives) else CountedLives(lives, events)


def times_by_stratum(
    lives: Lives, event: str, stratum_by: str, delayed_entry: bool = False
) -> Iterator[tuple[str, Times]]:
    """(label, times) of each stratum in order: `CountedLives.times` of one event, any other being censoring."""
    for label, (times,) in competing_times_by_stratum(lives, [event], stratum_by, delayed_entry):
        yield label, times


def competing_times_by_stratum(
    lives: Lives, events: Sequence[str], stratum_by: str, delayed_entry: bool = False
) -> Iterator[tuple[str, list[Times]]]:
    """(label, times of each event) of each stratum in order: `times_by_stratum` of some events that end lives."""
    of_strata = counted_lives(lives, events)
    places = [of_strata.events.index(event) for event in events]
    for label, times in of_strata.times(stratum_by, delayed_entry):
        yield label, [times[place] for place in places]


def stacked(curves: Sequence[tuple[Mapping[str, str], Mapping[str, np.ndarray]]]) -> pl.DataFrame:
    """Curves, each of (labels, columns), one below the other: the labels on each of its rows; blank where NaN.

    At least one curve; all have the same labels and columns, the columns of one curve are of one length.
    """
    labels = pl.DataFrame([names for names, _ in curves])
    columns = {name: np.concatenate([of[name] for _, of in curves]) for name in curves[0][1]}
    rows = [next(iter(of.values())).size for _, of in curves]
    frame = labels[np.repeat(np.arange(len(curves)), rows)].hstack(pl.DataFrame(columns))
    return frame.with_columns(pl.selectors.float().fill_nan(None))
