"""Curves by age: the hazard that lives have been through (Nelson-Aalen), and which of several ends they come to by

when, where these compete (Aalen-Johansen); the latter also by some ages, with what ends at unknown times could change.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.factors.estimate_hazards import CUMULATIVE_HAZARD, CUMULATIVE_INCIDENCE, INCIDENCE_AT
from ttf.records.jobs import Frame, choose_text
from ttf.stats.basics.normal import Z_95
from ttf.stats.basics.order import first_of_each
from ttf.stats.durations.clustered_lives import ClusterLives, Influences, about, limits_log_log, with_why
from ttf.stats.durations.strata import (
    NO_LIFE,
    CountedLives,
    Lives,
    Times,
    competing_times_by_stratum,
    counted_lives,
    stacked,
    times_by_stratum,
)
from ttf.stats.durations.survival import thinned

NO_EVENT_YET = "no event yet: the interval is not defined"
UNKNOWN_CAUSE = "unknown cause"
EVERYBODY = "the incidence is 1: the log-log interval is not defined there"
# A sum that everybody adds to reaches 1 only up to rounding.
ONE = 1 - 1e-9

_DAY_S = 86_400
# A minute, an hour, a day, a week, 30 days, a year, five years.
AGES_S = (60, 3_600, _DAY_S, 7 * _DAY_S, 30 * _DAY_S, 365 * _DAY_S, 5 * 365 * _DAY_S)
TOO_LATE = "no life of known duration lasted so long"

_LIMITS = ("ci_low", "ci_high", "ci_low_clustered", "ci_high_clustered")

# (seconds, lives): how many lives have each of some ages.
_Counts = tuple[np.ndarray, np.ndarray]


def cumulative_incidence(
    lives: Lives, events: Sequence[str], strata: Sequence[str], max_steps: int | None = None
) -> pl.DataFrame:
    """The Aalen-Johansen estimate (1978) of each event's cumulative incidence, by stratum.

    The events compete: a life ends by at most one of them, and incidence is the share of lives that this event will
    have ended by an age, the others being there too (where Kaplan-Meier asks what would be if they were not). At every
    age the incidences of all events and the share that goes on add up to 1.

    lives, errors: see `CountedLives`. One row per event, stratum and distinct duration, from age 0 on; with
    max_steps, at most as many of each event and stratum as `ttf.stats.durations.survival.thin` keeps: `events` are then
    those of the rows kept, while events_so_far counts all up to the age, and a curve's last row has their number.
    without_time: lives of unknown duration that ended by the event, which are in no other column. se is from the
    delta-method variance of Dinse & Larson (1986; Marubini & Valsecchi 1995, section 10.2), which without censoring is
    the binomial's, and 0 where the incidence is 1. ci_low, ci_high: 95 %, on the log(-log) scale of the incidence
    (Choudhury 2002); blank, with a reason, before the first such event and where the incidence is 1. The clustered
    limits are on the same scale, from what each cluster adds to the incidence (`ttf.stats.durations.clustered_lives`).
    """
    curves, lives = [], counted_lives(lives, events)
    for stratum_by in strata:
        by_cluster = lives.by_cluster(stratum_by)
        for stratum, competing in competing_times_by_stratum(lives, events, stratum_by):
            of = by_cluster.get(stratum)
            curves_of = _curves(
                [times.from_zero() for times in competing], of, [lives.events.index(e) + 1 for e in events]
            )
            for event, curve in zip(events, curves_of, strict=True):
                names = {"event": event, "stratum_by": stratum_by, "stratum": stratum} | about(of)
                curves.append((names, thinned(curve, max_steps)))
    if not curves:
        return CUMULATIVE_INCIDENCE.frame([])
    incidence = pl.col("incidence")
    inside = (incidence > 0) & (incidence < ONE)
    reason = choose_text({NO_EVENT_YET: incidence == 0, NO_LIFE: incidence.is_null(), EVERYBODY: ~inside})
    table = stacked(curves).with_columns(pl.when(inside).then(pl.col(_LIMITS)), reason=reason)
    return CUMULATIVE_INCIDENCE.typed(with_why(table))


def exclusive_causes(lives: Frame, causes: Sequence[str]) -> tuple[Frame, list[str]]:
    """(lives, events): each failed life with the one thing that ended it, so that the causes can compete.

    lives: event, and a Boolean per cause that says whether it took part. Causes that can come together (a GPU with both
    kinds of error) are no competing events as they stand: a life with several is ended by all of them together, as an
    event of its own (`dbe and otb`), and one that comes alone as well as in company is named so (`dbe only`). A failure
    without a cause is of unknown cause. events: those that occur, in the order of `causes`, then those of company, then
    the unknown; where no life has failed, failure, whose incidence is 0.
    """
    failed = pl.col("event") == "failure"
    took_part = [pl.col(cause).fill_null(False) for cause in causes]
    together = pl.concat_list(pl.when(hit).then(pl.lit(cause)) for cause, hit in zip(causes, took_part, strict=True))
    lists = pl.when(failed).then(together.list.drop_nulls())
    found = lives.lazy().select(lists.alias("causes").unique()).collect(engine="streaming")
    seen = found["causes"].drop_nulls().to_list()
    accompanied = {cause for several in seen if len(several) > 1 for cause in several}
    names = {tuple(several): _name(several, accompanied) for several in seen}
    rank = {cause: place for place, cause in enumerate(causes)}
    order = sorted(names, key=lambda several: (not several, len(several), [rank[cause] for cause in several]))
    named = lists.list.join(" + ").replace_strict(
        [" + ".join(several) for several in order], [names[several] for several in order], return_dtype=pl.String
    )
    return lives.with_columns(event=named), [names[several] for several in order] or ["failure"]


def _name(causes: list[str], accompanied: set[str]) -> str:
    words = [cause.replace("_", " ") for cause in causes]
    if not words:
        return UNKNOWN_CAUSE
    if len(words) > 1:
        return " and ".join(words)
    return f"{words[0]} only" if causes[0] in accompanied else words[0]


def _curves(competing: list[Times], of: ClusterLives | None, codes: list[int]) -> list[dict[str, np.ndarray]]:
    """The curve of each of some events of the same lives; of: these by cluster, codes: of the events there."""
    first = competing[0]
    events = sum(times.events for times in competing)
    at_risk = first.at_risk(first.seconds)
    shared = {"time_s": first.seconds, "at_risk": at_risk, "censored": first.ended - events}
    if first.lives == 0:
        blanks = dict.fromkeys(("incidence", "se", *_LIMITS), np.full(1, np.nan))
        none = dict.fromkeys(("events", "events_so_far", "other_events"), first.events)
        return [shared | none | blanks | {"without_time": np.array([times.without_time])} for times in competing]
    survivors = at_risk - events
    survival = np.cumprod(survivors / at_risk)
    before = np.concatenate(([1.0], survival[:-1]))
    # The last term, where nobody is left, is multiplied by a difference of 0 in every sum.
    greenwood = np.divide(events, at_risk * survivors, out=np.zeros(before.size), where=survivors > 0)
    # The share still going on just before each age over those at risk there.
    weight = before / at_risk
    left, hazard = np.divide(1, survivors, out=np.zeros(before.size), where=survivors > 0), None
    nothing = np.full(before.size, np.nan)
    if of is not None and not np.isnan(of.student()):
        influences = Influences(of, first.seconds)
        # What lives add to -log of the share still going on.
        hazard = influences.added(_by_end(codes, left), np.cumsum(greenwood))
    curves = []
    for times, code in zip(competing, codes, strict=True):
        hits = times.events
        incidence = np.cumsum(weight * hits)
        # The sums over ages s up to t of (I(t) - I(s))^2 greenwood, of weight^2 hits (n - hits) / n, and of
        # (I(t) - I(s)) weight hits / n, with the square and the difference multiplied out.
        squares = incidence**2 * np.cumsum(greenwood) - 2 * incidence * np.cumsum(incidence * greenwood)
        squares += np.cumsum(incidence**2 * greenwood)
        own = np.cumsum(weight**2 * hits * (at_risk - hits) / at_risk)
        step = weight * hits / at_risk
        crossed = incidence * np.cumsum(step) - np.cumsum(incidence * step)
        # Where everybody has come to this end the terms cancel, but for rounding.
        se = np.where(incidence < ONE, np.sqrt(np.maximum(squares + own - 2 * crossed, 0)), 0.0)
        base = np.where((incidence > 0) & (incidence < ONE), incidence, 0.5)
        # A spread beyond e^30 is an interval from 0 to 1 already.
        spread = np.exp(np.minimum(Z_95 * se / (-base * np.log(base)), 30))
        counted = {"events": hits, "events_so_far": np.cumsum(hits), "other_events": events - hits}
        counted["without_time"] = np.full(hits.size, times.without_time)
        limits = {"ci_low": base**spread, "ci_high": base ** (1 / spread)}
        limits |= {"ci_low_clustered": nothing, "ci_high_clustered": nothing}
        if hazard is not None:
            # That of a life whose part in it is its own, less those of who is no longer there to come to this end.
            passed = np.cumsum(weight * hits / at_risk + incidence * greenwood)
            added = influences.added(_by_end(codes, incidence * left, {code: weight}), passed)
            away = added.se(hazard, incidence) / np.where(incidence > 0, incidence, 1)
            low, high = limits_log_log(incidence, away, of.student())
            limits |= {"ci_low_clustered": low, "ci_high_clustered": high}
        curves.append(shared | counted | {"incidence": np.minimum(incidence, 1), "se": se} | limits)
    return curves


def _by_end(codes: list[int], values: np.ndarray, more: dict[int, np.ndarray] | None = None) -> list[np.ndarray | None]:
    """By the code of an end, 0 for none of them, what a life adds by age: values, and of some ends more."""
    by_end: list[np.ndarray | None] = [None] * (max(codes) + 1)
    for code in codes:
        by_end[code] = values + more[code] if more and code in more else values
    return by_end


def incidence_at(
    lives: CountedLives, events: Sequence[str], curves: pl.DataFrame, ages_s: Sequence[int] = AGES_S
) -> pl.DataFrame:
    """The cumulative incidence of each event by some ages (s), over all lives, a row per event and age.

    lives: as of `cumulative_incidence`, with duration_max_s (Int64 s). curves: those of all of them, whole. incidence,
    ci_low and ci_high are those of the n lives of known duration. without_end: the lives that this event ended at a
    time nobody wrote, which are not among them; one that never started (its duration_max_s is blank too) was never at
    risk and is not counted.

    incidence_low, incidence_high: the least and the most that the Aalen-Johansen estimate can be with the lives of all
    events whose end is not written, wherever between 0 and duration_max_s each of them ended. By the estimate a life
    that is censored leaves its part to those at risk after it, so that a longer life has the larger part. So it is most
    by an age where each such life of this event ended then (or at its latest, if that is earlier) and those of other
    events at 0; and least where those of this event outlast the age, or ended at 0 if they cannot, and those of others
    last as long as they can. Without such lives both are the estimate. Without censoring they are, at an age below
    every duration_max_s, hits / (n + m) and (hits + m) / (n + m) with m lives of one event.
    """
    ((_, competing),) = competing_times_by_stratum(lives, events, "all")
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
            row |= {name: step[name] for name in ("incidence", *_LIMITS, "cluster_by", "clusters", "reason")}
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


def cumulative_hazard(lives: Lives, event: str, strata: Sequence[str], max_steps: int | None = None) -> pl.DataFrame:
    """The Nelson-Aalen estimate (Nelson 1972; Aalen 1978) by stratum, a row per distinct duration.

    lives, errors: see `CountedLives`. Rows start at age 0 as those of `survival_tables` do; with max_steps, at most as
    many of each stratum as `ttf.stats.durations.survival.thin` keeps. With d events among n at risk at an age,
    cumulative_hazard is the sum of d / n (expected events per life, a pure number), variance Aalen's sum of d / n^2;
    ci_low, ci_high: 95 %, on the log scale, H exp(-+ z sqrt(variance) / H) (Klein & Moeschberger 2003, section 4.3);
    blank, with a reason, before the first event. The clustered limits are on the same scale, from what each cluster
    adds to the hazard (`ttf.stats.durations.clustered_lives`).
    """
    curves, lives = [], counted_lives(lives, [event])
    code = lives.events.index(event) + 1
    for stratum_by in strata:
        by_cluster = lives.by_cluster(stratum_by)
        for stratum, times in times_by_stratum(lives, event, stratum_by):
            of = by_cluster.get(stratum)
            names = {"event": event, "stratum_by": stratum_by, "stratum": stratum} | about(of)
            curves.append((names, thinned(_curve(times, of, code), max_steps)))
    if not curves:
        return CUMULATIVE_HAZARD.frame([])
    seen = pl.col("cumulative_hazard") > 0
    reason = pl.when(~seen).then(pl.lit(NO_EVENT_YET)).when(pl.col("cumulative_hazard").is_null()).then(pl.lit(NO_LIFE))
    table = stacked(curves).with_columns(pl.when(seen).then(pl.col(_LIMITS)), reason=reason)
    return CUMULATIVE_HAZARD.typed(with_why(table))


def _curve(times: Times, of: ClusterLives | None, code: int) -> dict[str, np.ndarray]:
    times = times.from_zero()
    at_risk = times.at_risk(times.seconds)
    columns = {"time_s": times.seconds, "at_risk": at_risk, "events": times.events}
    columns["censored"] = times.ended - times.events
    if times.lives == 0:
        return columns | dict.fromkeys(("cumulative_hazard", "variance", *_LIMITS), np.full(1, np.nan))
    hazard = np.cumsum(times.events / at_risk)
    variance = np.cumsum(times.events / at_risk / at_risk)
    spread = np.exp(Z_95 * np.sqrt(variance) / np.where(hazard > 0, hazard, 1))
    limits = {"ci_low": hazard / spread, "ci_high": hazard * spread}
    limits |= dict.fromkeys(("ci_low_clustered", "ci_high_clustered"), np.full(hazard.size, np.nan))
    if of is not None and not np.isnan(of.student()):
        se = Influences(of, times.seconds).added(_by_end([code], 1 / at_risk), variance).se()
        # A spread beyond e^300 is no limit.
        away = np.where(se > 0, of.student() * se / np.where(hazard > 0, hazard, 1), np.nan)
        spread = np.exp(np.minimum(away, 300))
        limits |= {"ci_low_clustered": hazard / spread, "ci_high_clustered": hazard * spread}
    return columns | {"cumulative_hazard": hazard, "variance": variance} | limits
