"""Cumulative incidence of competing events by age (Aalen-Johansen).

Also the incidence at given ages, with the range that ends at unknown times allow.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.factors.estimate_hazards import CUMULATIVE_INCIDENCE, INCIDENCE_AT
from ttf.records.jobs import Frame, choose_text
from ttf.stats.basics.normal import Z_95
from ttf.stats.basics.order import run_starts
from ttf.stats.clustered import append_reason
from ttf.stats.durations.clustered_durations import ClusterDurations, Influences, describe_clusters, limits_log_log
from ttf.stats.durations.strata import (
    NO_DURATION,
    CountedDurations,
    Durations,
    Times,
    count_durations,
    iterate_competing_times,
    stack_curves,
)
from ttf.stats.durations.survival import thin_arrays

NO_EVENT_YET = "no event yet: the interval is not defined"
UNKNOWN_CAUSE = "unknown cause"
EVERYBODY = "the incidence is 1: the log-log interval is not defined there"
# The incidence counts as 1 above this value, because of rounding.
ONE = 1 - 1e-9

_DAY_S = 86_400
# A minute, an hour, a day, a week, 30 days, a year, five years.
AGES_S = (60, 3_600, _DAY_S, 7 * _DAY_S, 30 * _DAY_S, 365 * _DAY_S, 5 * 365 * _DAY_S)
TOO_LATE = "no known duration is that long"

_LIMITS = ("ci_low", "ci_high", "ci_low_clustered", "ci_high_clustered")

# (seconds, durations): number of durations of each age.
_AgeCounts = tuple[np.ndarray, np.ndarray]


def cumulative_incidence(
    durations: Durations, events: Sequence[str], strata: Sequence[str], max_steps: int | None = None
) -> pl.DataFrame:
    """Estimate the cumulative incidence of each event (Aalen-Johansen 1978), by stratum.

    The events compete: at most one ends a duration. Incidence is the share that this event has ended by an age in the
    presence of the others; Kaplan-Meier asks for the share in their absence. At every age the incidences of all events
    and the share that continues sum to 1.

    durations: see `CountedDurations`. events: the competing events. strata: columns, or `all`.
    max_steps: maximum rows per curve, as in `ttf.stats.durations.survival.thin_curves`. `events` are then those of the
    rows kept, while events_so_far counts all up to the age, also in a curve's last row.

    Returns CUMULATIVE_INCIDENCE: a row per event, stratum and distinct duration, from age 0 on. without_time: durations
    that are unknown and were ended by the event; no other column counts them. se: by the delta-method variance of Dinse
    & Larson (1986; Marubini & Valsecchi 1995, section 10.2), which without censoring is the binomial's, and 0 if the
    incidence is 1. ci_low, ci_high: 95 %, on the log(-log) scale of the incidence (Choudhury 2002); blank, with a
    reason, before the first event and if the incidence is 1. The clustered limits are on the same scale, from the
    influence of each cluster on the incidence (`ttf.stats.durations.clustered_durations`).
    """
    curves, durations = [], count_durations(durations, events)
    codes = [durations.events.index(event) + 1 for event in events]
    for stratum_by in strata:
        by_cluster = durations.by_cluster(stratum_by)
        for stratum, event_times in iterate_competing_times(durations, events, stratum_by):
            clusters = by_cluster.get(stratum)
            event_curves = _curves([times.from_zero() for times in event_times], clusters, codes)
            for event, curve in zip(events, event_curves, strict=True):
                keys = {"event": event, "stratum_by": stratum_by, "stratum": stratum} | describe_clusters(clusters)
                curves.append((keys, thin_arrays(curve, max_steps)))
    if not curves:
        return CUMULATIVE_INCIDENCE.frame([])
    incidence = pl.col("incidence")
    is_inside = (incidence > 0) & (incidence < ONE)
    reason = choose_text({NO_EVENT_YET: incidence == 0, NO_DURATION: incidence.is_null(), EVERYBODY: ~is_inside})
    table = stack_curves(curves).with_columns(pl.when(is_inside).then(pl.col(_LIMITS)), reason=reason)
    return CUMULATIVE_INCIDENCE.conform(append_reason(table))


def exclusive_causes(durations: Frame, causes: Sequence[str]) -> tuple[Frame, list[str]]:
    """Return the durations with one exclusive cause for each failure, so that causes can compete, and these causes.

    durations: event, and a Boolean column per cause. Causes that can occur together (a GPU with both kinds of error)
    are not competing events. A failure with several causes becomes an event of its own (`dbe and otb`); a cause that
    occurs alone and in combination becomes `dbe only`; a failure without a cause is of unknown cause. The second value
    lists the events that occur, in the order of `causes`, then combinations, then the unknown cause; if nothing failed,
    it is `failure`, whose incidence is 0.
    """
    is_failure = pl.col("event") == "failure"
    has_cause = [pl.col(cause).fill_null(False) for cause in causes]
    texts = (pl.when(has).then(pl.lit(cause)) for cause, has in zip(causes, has_cause, strict=True))
    failure_causes = pl.when(is_failure).then(pl.concat_list(texts).list.drop_nulls())
    distinct_causes = durations.lazy().select(failure_causes.alias("causes").unique()).collect(engine="streaming")
    groups = distinct_causes["causes"].drop_nulls().to_list()
    shared_causes = {cause for group in groups if len(group) > 1 for cause in group}
    name_by_group = {tuple(group): _name_event(group, shared_causes) for group in groups}
    rank_by_cause = {cause: index for index, cause in enumerate(causes)}
    order = sorted(name_by_group, key=lambda group: (not group, len(group), [rank_by_cause[cause] for cause in group]))
    names = [name_by_group[group] for group in order]
    keys = [" + ".join(group) for group in order]
    event_names = failure_causes.list.join(" + ").replace_strict(keys, names, return_dtype=pl.String)
    return durations.with_columns(event=event_names), names or ["failure"]


def _name_event(causes: list[str], shared_causes: set[str]) -> str:
    name = " and ".join(cause.replace("_", " ") for cause in causes) or UNKNOWN_CAUSE
    return f"{name} only" if len(causes) == 1 and causes[0] in shared_causes else name


def _curves(
    event_times: list[Times], clusters: ClusterDurations | None, codes: list[int]
) -> list[dict[str, np.ndarray]]:
    """Return the curve of each event. clusters: the same durations by cluster; codes: of the events in these."""
    first = event_times[0]
    events = sum(times.events for times in event_times)
    at_risk = first.at_risk(first.seconds)
    shared = {"time_s": first.seconds, "at_risk": at_risk, "censored": first.ended - events}
    if first.durations == 0:
        blanks = dict.fromkeys(("incidence", "se", *_LIMITS), np.full(1, np.nan))
        blanks |= shared | dict.fromkeys(("events", "events_so_far"), first.events)
        return [blanks | {"without_time": np.array([times.without_time])} for times in event_times]
    survivors = at_risk - events
    survival_before = np.concatenate(([1.0], np.cumprod(survivors / at_risk)[:-1]))
    # The last term, with no survivors, is multiplied by a difference of 0 in every sum.
    greenwood = np.divide(events, at_risk * survivors, out=np.zeros(survival_before.size), where=survivors > 0)
    # Survival just before each age over the number at risk.
    weight = survival_before / at_risk
    inverse, hazard = np.divide(1, survivors, out=np.zeros(survival_before.size), where=survivors > 0), None
    blank_limits = np.full(survival_before.size, np.nan)
    if clusters is not None and not np.isnan(clusters.student()):
        influences = Influences(clusters, first.seconds)
        # Influence of durations on -log of survival.
        hazard = influences.accumulate(_influence_by_end(codes, inverse), np.cumsum(greenwood))
    curves = []
    for times, code in zip(event_times, codes, strict=True):
        d = times.events
        incidence = np.cumsum(weight * d)
        # The sums over ages s up to t of (I(t) - I(s))^2 greenwood, of weight^2 d (n - d) / n, and of
        # (I(t) - I(s)) weight d / n, with d events of n at risk and the products expanded.
        squares = incidence**2 * np.cumsum(greenwood) - 2 * incidence * np.cumsum(incidence * greenwood)
        squares += np.cumsum(incidence**2 * greenwood)
        binomial = np.cumsum(weight**2 * d * (at_risk - d) / at_risk)
        step = weight * d / at_risk
        cross_term = incidence * np.cumsum(step) - np.cumsum(incidence * step)
        # If the incidence is 1, the terms cancel up to rounding.
        se = np.where(incidence < ONE, np.sqrt(np.maximum(squares + binomial - 2 * cross_term, 0)), 0.0)
        base = np.where((incidence > 0) & (incidence < ONE), incidence, 0.5)
        # A spread beyond e^30 is an interval from 0 to 1 already.
        factor = np.exp(np.minimum(Z_95 * se / (-base * np.log(base)), 30))
        counts = {"events": d, "events_so_far": np.cumsum(d)}
        counts["without_time"] = np.full(d.size, times.without_time)
        limits = {"ci_low": base**factor, "ci_high": base ** (1 / factor)}
        limits |= {"ci_low_clustered": blank_limits, "ci_high_clustered": blank_limits}
        if hazard is not None:
            # The duration's own contribution, less the expected one while it was at risk.
            expected = np.cumsum(weight * d / at_risk + incidence * greenwood)
            influence = influences.accumulate(_influence_by_end(codes, incidence * inverse, {code: weight}), expected)
            half_width = influence.half_width(hazard, incidence) / np.where(incidence > 0, incidence, 1)
            low, high = limits_log_log(incidence, half_width)
            limits |= {"ci_low_clustered": low, "ci_high_clustered": high}
        curves.append(shared | counts | {"incidence": np.minimum(incidence, 1), "se": se} | limits)
    return curves


def _influence_by_end(
    codes: list[int], values: np.ndarray, extra: dict[int, np.ndarray] | None = None
) -> list[np.ndarray | None]:
    """Return, by code of the end (0: none), the influence by age: values, plus extra for some ends."""
    influences: list[np.ndarray | None] = [None] * (max(codes) + 1)
    for code in codes:
        influences[code] = values + extra[code] if extra and code in extra else values
    return influences


def incidence_at(
    durations: CountedDurations, events: Sequence[str], curves: pl.DataFrame, ages_s: Sequence[int] = AGES_S
) -> pl.DataFrame:
    """Return the cumulative incidence of each event at given ages, over all durations.

    durations: as of `cumulative_incidence`, with duration_max_s (Int64 s). events: the competing events. curves:
    CUMULATIVE_INCIDENCE of all durations, not thinned. ages_s: ages in seconds.

    Returns INCIDENCE_AT, a row per event and age. incidence, ci_low and ci_high are those of the n known durations.
    without_end: durations that this event ended at an unrecorded time, which n excludes. A unit that never started has
    a blank duration_max_s too; it was never at risk and is not counted.

    incidence_low, incidence_high: the range of the Aalen-Johansen estimate over all possible ends, from 0 to
    duration_max_s, of the durations without a recorded end, for all events. The estimate redistributes a censored
    duration to those at risk after it, so a longer duration carries more weight. It is highest at an age if those of
    this event ended at that age (or at their maximum, if earlier) and those of other events at 0. It is lowest if those
    of this event outlast the age, or ended at 0 if they cannot, and those of others last their maximum. Without such
    durations both are the estimate. Without censoring and below every duration_max_s, with m such durations of one
    event, they are d / (n + m) and (d + m) / (n + m).
    """
    ((_, event_times),) = iterate_competing_times(durations, events, "all")
    n, last_age = event_times[0].durations, int(event_times[0].seconds.max(initial=-1))
    recorded = [(times.seconds, times.events) for times in event_times]
    censored = (event_times[0].seconds, event_times[0].ended - sum(times.events for times in event_times))
    unrecorded = _unrecorded_ends(durations.durations, events)
    rows = []
    for index, event in enumerate(events):
        curve = curves.filter(event=event)
        for age in ages_s:
            row: dict[str, object] = {"event": event, "stratum_by": "all", "stratum": "all", "time_s": age, "n": n}
            row["without_end"] = int(unrecorded[index][1].sum())
            if age > last_age:
                rows.append(row | {"reason": TOO_LATE if n else NO_DURATION})
                continue
            step = curve.filter(pl.col("time_s") <= age).row(-1, named=True)
            row |= {name: step[name] for name in ("incidence", *_LIMITS, "cluster_by", "clusters", "reason")}
            row["incidence_low"] = row["incidence_high"] = row["incidence"]
            if any(counts.size for _, counts in unrecorded):
                lowest_case = list(unrecorded)
                highest_case = [(np.zeros_like(longest), counts) for longest, counts in unrecorded]
                longest, counts = unrecorded[index]
                lowest_case[index] = np.where(longest > age, longest, 0), counts
                highest_case[index] = np.minimum(longest, age), counts
                row["incidence_low"] = _estimate_incidence(age, index, recorded, lowest_case, censored)
                row["incidence_high"] = _estimate_incidence(age, index, recorded, highest_case, censored)
            rows.append(row)
    return INCIDENCE_AT.frame(rows)


def _unrecorded_ends(durations: pl.LazyFrame, events: Sequence[str]) -> list[_AgeCounts]:
    """Count, for each event, the durations that it ended at an unrecorded time, by their maximum."""
    counts = (
        durations.filter(pl.col("duration_s").is_null() & pl.col("event").is_in(events))
        .drop_nulls("duration_max_s")
        .group_by("event", max_s=pl.col("duration_max_s").clip(lower_bound=0))
        .agg(durations=pl.len().cast(pl.Int64))
        .collect(engine="streaming")
        .sort("event", "max_s")
    )
    event_counts = (counts.filter(event=event) for event in events)
    return [(rows["max_s"].to_numpy(), rows["durations"].to_numpy()) for rows in event_counts]


def _estimate_incidence(
    age: int, index: int, recorded: Sequence[_AgeCounts], unrecorded: Sequence[_AgeCounts], censored: _AgeCounts
) -> float:
    """Return the Aalen-Johansen estimate at an age of the event of this index, with unrecorded ends at given times."""
    events = [
        tuple(map(np.concatenate, zip(known_ends, unknown_ends, strict=True)))
        for known_ends, unknown_ends in zip(recorded, unrecorded, strict=True)
    ]
    all_ends = [*events, censored]
    n = sum(int(count.sum()) for _, count in all_ends)
    # Sort first: np.unique takes ten times as long for so many integers.
    seconds = np.sort(np.concatenate([end_s[end_s <= age] for end_s, _ in all_ends]))
    seconds = seconds[run_starts(seconds)]
    end_counts = []
    for end_s, count in all_ends:
        is_up_to_age = end_s <= age
        counts = np.zeros(seconds.size, np.int64)
        np.add.at(counts, np.searchsorted(seconds, end_s[is_up_to_age]), count[is_up_to_age])
        end_counts.append(counts)
    at_risk = n - np.concatenate(([0], np.cumsum(sum(end_counts))))[:-1]
    survival_before = np.concatenate(([1.0], np.cumprod(1 - sum(end_counts[:-1]) / at_risk)[:-1]))
    return float(min(1.0, (survival_before * end_counts[index] / at_risk).sum()))
