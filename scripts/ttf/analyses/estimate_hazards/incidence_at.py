"""How many lives an end has come to by some ages, and by how much the ends at unknown times could change that."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.estimate_hazards import INCIDENCE_AT
from ttf.analyses.estimate_hazards.incidence import cumulative_incidence
from ttf.stats.order import first_of_each
from ttf.stats.strata import NO_LIFE, CountedLives, competing_times_by_stratum

_DAY_S = 86_400
# A minute, an hour, a day, a week, 30 days, a year, five years.
AGES_S = (60, 3_600, _DAY_S, 7 * _DAY_S, 30 * _DAY_S, 365 * _DAY_S, 5 * 365 * _DAY_S)
TOO_LATE = "no life of known duration lasted so long"

# (seconds, lives): how many lives have each of some ages.
_Counts = tuple[np.ndarray, np.ndarray]


def incidence_at(lives: CountedLives, events: Sequence[str], ages_s: Sequence[int] = AGES_S) -> pl.DataFrame:
    """The cumulative incidence of each event by some ages (s), over all lives, a row per event and age.

    lives: as of `cumulative_incidence`, with duration_max_s (Int64 s). incidence, ci_low and ci_high are those of the n
    lives of known duration. without_end: the lives that this event ended at a time nobody wrote, which are not among
    them; one that never started (its duration_max_s is blank too) was never at risk and is not counted.

    incidence_low, incidence_high: the least and the most that the Aalen-Johansen estimate can be with the lives of all
    events whose end is not written, wherever between 0 and duration_max_s each of them ended. By the estimate a life
    that is censored leaves its part to those at risk after it, so that a longer life has the larger part. So it is most
    by an age where each such life of this event ended then (or at its latest, if that is earlier) and those of other
    events at 0; and least where those of this event outlast the age, or ended at 0 if they cannot, and those of others
    last as long as they can. Without such lives both are the estimate. Without censoring they are, at an age below
    every duration_max_s, hits / (n + m) and (hits + m) / (n + m) with m lives of one event.
    """
    ((_, competing),) = competing_times_by_stratum(lives, events, "all")
    curves = cumulative_incidence(lives, events, ["all"])
    n, last = competing[0].lives, int(competing[0].seconds.max(initial=-1))
    hits = [(times.seconds, times.events) for times in competing]
    censored = (competing[0].seconds, competing[0].ended - sum(times.events for times in competing))
    lost = _without_end(lives.lives, events)
    rows = []
    for place, event in enumerate(events):
        curve = curves.filter(event=event)
        for age in ages_s:
            row = {"event": event, "stratum_by": "all", "stratum": "all", "time_s": age, "n": n}
            row["without_end"] = int(lost[place][1].sum())
            if age > last:
                rows.append(row | {"reason": TOO_LATE if n else NO_LIFE})
                continue
            step = curve.filter(pl.col("time_s") <= age).row(-1, named=True)
            row |= {name: step[name] for name in ("incidence", "ci_low", "ci_high", "reason")}
            row["incidence_low"] = row["incidence_high"] = row["incidence"]
            if any(count.size for _, count in lost):
                least, most = list(lost), [(np.zeros_like(longest), count) for longest, count in lost]
                longest, count = lost[place]
                least[place] = np.where(longest > age, longest, 0), count
                most[place] = np.minimum(longest, age), count
                row["incidence_low"] = _incidence(age, place, hits, least, censored)
                row["incidence_high"] = _incidence(age, place, hits, most, censored)
            rows.append(row)
    return INCIDENCE_AT.frame(rows)


def _without_end(lives: pl.LazyFrame, events: Sequence[str]) -> list[_Counts]:
    """Of each event, the lives that it ended at a time nobody wrote, by the longest they can have lasted."""
    lost = lives.filter(pl.col("duration_s").is_null() & pl.col("event").is_in(events))
    counted = (
        lost.drop_nulls("duration_max_s")
        .group_by("event", longest=pl.col("duration_max_s").clip(lower_bound=0))
        .agg(lives=pl.len().cast(pl.Int64))
        .collect(engine="streaming")
        .sort("event", "longest")
    )
    parts = (counted.filter(event=event) for event in events)
    return [(part["longest"].to_numpy(), part["lives"].to_numpy()) for part in parts]


def _incidence(age: int, place: int, hits: Sequence[_Counts], lost: Sequence[_Counts], censored: _Counts) -> float:
    """The Aalen-Johansen estimate by an age of the event at this place, with the lost ends at given times."""
    of_events = [
        tuple(map(np.concatenate, zip(known, more, strict=True))) for known, more in zip(hits, lost, strict=True)
    ]
    everybody = [*of_events, censored]
    n = sum(int(count.sum()) for _, count in everybody)
    # Sorted: of so many whole numbers np.unique takes ten times as long.
    seconds = np.sort(np.concatenate([at[at <= age] for at, _ in everybody]))
    seconds = seconds[first_of_each(seconds)]
    ended = []
    for at, count in everybody:
        until = at <= age
        by_time = np.zeros(seconds.size, np.int64)
        np.add.at(by_time, np.searchsorted(seconds, at[until]), count[until])
        ended.append(by_time)
    at_risk = n - np.concatenate(([0], np.cumsum(sum(ended))))[:-1]
    survival = np.cumprod(1 - sum(ended[:-1]) / at_risk)
    before = np.concatenate(([1.0], survival[:-1]))
    return float(min(1.0, (before * ended[place] / at_risk).sum()))
