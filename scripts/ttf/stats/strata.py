"""Lives by stratum, counted up per distinct duration: the one form that every survival estimator reads."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

NO_LIFE = "no life with a known duration"


@dataclass(frozen=True)
class Times:
    """The lives of one stratum by distinct duration, ascending: three Int64 arrays of one length.

    seconds: the durations. ended: lives that lasted as long. events: those of them that ended by the event;
    the rest are censored there.
    """

    seconds: np.ndarray
    ended: np.ndarray
    events: np.ndarray

    @property
    def lives(self) -> int:
        return int(self.ended.sum())

    @property
    def failures(self) -> int:
        return int(self.events.sum())

    @property
    def exposure_s(self) -> int:
        return int((self.seconds * self.ended).sum())


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


def times_by_stratum(lives: pl.DataFrame, event: str, stratum_by: str) -> Iterator[tuple[str, Times]]:
    """(label, times) of each stratum in order.

    lives: duration_s (Int64 seconds; null, unknown, is left out), event (String; any other event than the
    given one censors, and so does null), the stratum's column. A stratum whose lives all lack a duration
    comes with empty times. Labels are the raw values as text. Errors: see `with_stratum`.
    """
    members = with_stratum(lives, stratum_by)
    counted = (
        members.lazy()
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
        yield label, Times(*(column[start:stop] for column in columns))
        start = stop
