"""Lives by stratum, counted up per distinct duration: the one form that every survival estimator reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import polars as pl

from ttf.stats.order import last_of_each, sorted_rows

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

NO_LIFE = "no life with a known duration"


@dataclass(frozen=True)
class Times:
    """The lives of one stratum by distinct duration, ascending: three Int64 arrays of one length.

    seconds: the durations. ended: lives that lasted as long. events: those of them that ended by the event;
    the rest are censored there. late: the ages above 0, ascending, at which lives came under watch (delayed entry);
    all others were watched from age 0.
    """

    seconds: np.ndarray
    ended: np.ndarray
    events: np.ndarray
    late: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

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
        return Times(*columns, self.late)

    def at_risk(self, seconds: np.ndarray) -> np.ndarray:
        """How many lives were under watch and had not ended just before each of some ages, ascending or not.

        A life that came under watch at an age is at risk after it; one watched from the start also at age 0.
        """
        gone = np.concatenate(([0], np.cumsum(self.ended)))[np.searchsorted(self.seconds, seconds)]
        still_to_come = self.late.size - np.searchsorted(self.late, seconds)
        return self.lives - gone - still_to_come


def with_stratum(lives: pl.DataFrame, stratum_by: str) -> pl.LazyFrame:
    """The lives of every stratum, with their raw stratum in the column `stratum`; lazy, so that only what is used of

    them is picked out.

    `all` is one stratum `all`; otherwise `stratum_by` names a column, and lives with null there form none.
    Raises ValueError when there is no such column or a duration is negative.
    """
    if stratum_by != "all" and stratum_by not in lives.columns:
        raise ValueError(f"the lives have no column {stratum_by!r} to form strata by")
    if (lives["duration_s"] < 0).any():
        raise ValueError("a duration is negative")
    if stratum_by == "all":
        return lives.lazy().with_columns(stratum=pl.lit("all"))
    return lives.lazy().with_columns(stratum=pl.col(stratum_by)).drop_nulls("stratum")


def strata_in_order(lives: pl.DataFrame, stratum_by: str) -> pl.Series:
    """The strata of the lives: numbers as numbers, text by text; `all` is there without lives."""
    if stratum_by == "all":
        return pl.Series("stratum", ["all"])
    return lives[stratum_by].unique().drop_nulls().sort()


def under_watch(lives: Frame) -> Frame:
    """The lives that were ever at risk under watch: without those that ended no later than they entered (entry_s)."""
    return lives.filter((pl.col("entry_s") == 0) | (pl.col("duration_s") > pl.col("entry_s")))


def since_watched(lives: pl.DataFrame) -> pl.DataFrame:
    """The lives that were ever under watch, with the time (duration_s) that each was: what adds up to exposure."""
    return under_watch(lives).with_columns(duration_s=pl.col("duration_s") - pl.col("entry_s"))


def times_by_stratum(
    lives: pl.DataFrame, event: str, stratum_by: str, delayed_entry: bool = False
) -> Iterator[tuple[str, Times]]:
    """(label, times) of each stratum in order.

    lives: duration_s (Int64 seconds; null, unknown, is left out), event (String; any other event than the
    given one censors, and so does null), the stratum's column. With delayed entry also entry_s (Int64 seconds, not
    negative): a life is at risk from that age on, and one never at risk is left out. A stratum whose lives all lack
    a duration comes with empty times. Labels are the raw values as text. Errors: see `with_stratum`.
    """
    for label, (times,) in competing_times_by_stratum(lives, [event], stratum_by, delayed_entry):
        yield label, times


def competing_times_by_stratum(
    lives: pl.DataFrame, events: Sequence[str], stratum_by: str, delayed_entry: bool = False
) -> Iterator[tuple[str, list[Times]]]:
    """(label, times of each event) of each stratum in order: `times_by_stratum` of some events that end lives."""
    members = with_stratum(lives, stratum_by)
    strata = strata_in_order(lives, stratum_by)
    code = pl.col("stratum").replace_strict(strata, range(strata.len()), return_dtype=pl.Int64)
    chosen = under_watch(members) if delayed_entry else members
    # By which of the events a life ended, from 1; 0 by none of them.
    end = pl.sum_horizontal((pl.col("event") == event).cast(pl.Int8) * place for place, event in enumerate(events, 1))
    known = chosen.filter(pl.col("duration_s").is_not_null()).select(
        code=code if strata.len() > 1 else pl.lit(0, dtype=pl.Int64),
        seconds=pl.col("duration_s").cast(pl.Int64),
        end=end,
        late=pl.col("entry_s").cast(pl.Int64) if delayed_entry else pl.lit(0, dtype=pl.Int64),
    )
    known = known.collect()
    stratum, seconds, end, late = (known[name].to_numpy() for name in known.columns)
    # A stratum's durations lie in a stretch of its own, and so do its entries.
    width = int(seconds.max(initial=0)) + 1
    offset = stratum * width
    (entries,) = sorted_rows((offset + late)[late > 0])
    key, end = sorted_rows(offset + seconds, end)
    last = last_of_each(key)
    key, ended = key[last], np.diff(last, prepend=-1)
    hits = [np.diff(np.cumsum(end == place)[last], prepend=0) for place in range(1, len(events) + 1)]
    edges = np.arange(strata.len() + 1) * width
    rows, entered = np.searchsorted(key, edges), np.searchsorted(entries, edges)
    for place, label in enumerate(strata.cast(pl.String)):
        of, came = slice(*rows[place : place + 2]), slice(*entered[place : place + 2])
        since = key[of] - edges[place], ended[of]
        yield label, [Times(*since, hit[of], entries[came] - edges[place]) for hit in hits]


def stacked(curves: Sequence[tuple[Mapping[str, str], Mapping[str, np.ndarray]]]) -> pl.DataFrame:
    """Curves, each of (labels, columns), one below the other: the labels on each of its rows; blank where NaN.

    At least one curve; all have the same labels and columns, the columns of one curve are of one length.
    """
    labels = pl.DataFrame([names for names, _ in curves])
    columns = {name: np.concatenate([of[name] for _, of in curves]) for name in curves[0][1]}
    rows = [next(iter(of.values())).size for _, of in curves]
    frame = labels[np.repeat(np.arange(len(curves)), rows)].hstack(pl.DataFrame(columns))
    return frame.with_columns(pl.selectors.float().fill_nan(None))
