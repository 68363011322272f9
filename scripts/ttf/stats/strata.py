"""Lives by stratum, counted up per distinct duration: the one form that every survival estimator reads."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

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


def with_stratum(lives: pl.DataFrame, stratum_by: str) -> pl.DataFrame:
    """The lives of every stratum, with their raw stratum in the column `stratum`.

    `all` is one stratum `all`; otherwise `stratum_by` names a column, and lives with null there form none.
    Raises ValueError when there is no such column or a duration is negative.
    """
    if stratum_by != "all" and stratum_by not in lives.columns:
        raise ValueError(f"the lives have no column {stratum_by!r} to form strata by")
    if (lives["duration_s"] < 0).any():
        raise ValueError("a duration is negative")
    if stratum_by == "all":
        return lives.with_columns(stratum=pl.lit("all"))
    return lives.with_columns(stratum=pl.col(stratum_by)).drop_nulls("stratum")


def strata_in_order(lives: pl.DataFrame, stratum_by: str) -> pl.Series:
    """The strata of `with_stratum`'s lives: numbers as numbers, text by text; `all` is there without lives."""
    if stratum_by == "all":
        return pl.Series("stratum", ["all"])
    return lives["stratum"].unique().sort()


def under_watch(lives: pl.DataFrame) -> pl.DataFrame:
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
    members = with_stratum(lives, stratum_by)
    entries = {}
    if delayed_entry:
        late = under_watch(members.filter(pl.col("duration_s").is_not_null())).filter(pl.col("entry_s") > 0)
        entries = dict(late.sort("entry_s").group_by("stratum").agg("entry_s").iter_rows())
    counted = (
        (under_watch(members) if delayed_entry else members)
        .lazy()
        .filter(pl.col("duration_s").is_not_null())
        .select(
            "stratum",
            pl.col("duration_s").cast(pl.Int64),
            hit=(pl.col("event") == event).fill_null(False),
        )
        .group_by("stratum", "duration_s")
        .agg(ended=pl.len().cast(pl.Int64), events=pl.col("hit").sum().cast(pl.Int64))
        .sort("stratum", "duration_s")
        .collect(engine="in-memory")
    )
    columns = [counted[name].to_numpy() for name in ("duration_s", "ended", "events")]
    rows = dict(counted.group_by("stratum", maintain_order=True).len().iter_rows())
    start = 0
    strata = strata_in_order(members, stratum_by)
    for stratum, label in zip(strata, strata.cast(pl.String), strict=True):
        stop = start + rows.get(stratum, 0)
        watch = [np.array(entries[stratum], dtype=np.int64)] if stratum in entries else []
        yield label, Times(*(column[start:stop] for column in columns), *watch)
        start = stop
