"""Tables of the cumulative incidence of competing events: by age, and at given ages with its range."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.factors.estimate_hazards import CUMULATIVE_INCIDENCE, INCIDENCE_AT
from ttf.engine.counts import count_rows, text_codes
from ttf.records.jobs import Frame, choose_text
from ttf.stats.clustered import append_reason
from ttf.stats.durations.clustered_durations import describe_clusters
from ttf.stats.durations.incidence import LIMITS, ONE, AgeCounts, estimate_incidence, incidence_curves
from ttf.stats.durations.strata import (
    NO_DURATION,
    CountedDurations,
    Durations,
    count_durations,
    iterate_competing_times,
    stack_curves,
)
from ttf.stats.durations.survival import thin_arrays

NO_EVENT_YET = "no event yet: the interval is not defined"
UNKNOWN_CAUSE = "unknown cause"
EVERYBODY = "the incidence is 1: the log-log interval is not defined there"
_DAY_S = 86_400
# A minute, an hour, a day, a week, 30 days, a year, five years.
AGES_S = (60, 3_600, _DAY_S, 7 * _DAY_S, 30 * _DAY_S, 365 * _DAY_S, 5 * 365 * _DAY_S)
TOO_LATE = "no known duration is that long"


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
    & Larson (1986, Biometrika 73), which without censoring is the binomial's, and 0 if the incidence is 1. ci_low,
    ci_high: 95 %, on the log(-log) scale of the incidence (Choudhury 2002); blank, with a reason, before the first
    event and if the incidence is 1. The clustered limits are on the same scale, from the influence of each cluster on
    the incidence (`ttf.stats.durations.clustered_durations`).
    """
    curves, durations = [], count_durations(durations, events)
    codes = [durations.events.index(event) + 1 for event in events]
    for stratum_by in strata:
        by_cluster = durations.by_cluster(stratum_by)
        for stratum, event_times in iterate_competing_times(durations, events, stratum_by):
            clusters = by_cluster.get(stratum)
            event_curves = incidence_curves([times.from_zero() for times in event_times], clusters, codes)
            for event, curve in zip(events, event_curves, strict=True):
                keys = {"event": event, "stratum_by": stratum_by, "stratum": stratum} | describe_clusters(clusters)
                curves.append((keys, thin_arrays(curve, max_steps)))
    if not curves:
        return CUMULATIVE_INCIDENCE.frame([])
    incidence = pl.col("incidence")
    is_inside = (incidence > 0) & (incidence < ONE)
    reason = choose_text({NO_EVENT_YET: incidence == 0, NO_DURATION: incidence.is_null(), EVERYBODY: ~is_inside})
    table = stack_curves(curves).with_columns(pl.when(is_inside).then(pl.col(LIMITS)), reason=reason)
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
            row |= {name: step[name] for name in ("incidence", *LIMITS, "cluster_by", "clusters", "reason")}
            row["incidence_low"] = row["incidence_high"] = row["incidence"]
            if any(counts.size for _, counts in unrecorded):
                lowest_case = list(unrecorded)
                highest_case = [(np.zeros_like(longest), counts) for longest, counts in unrecorded]
                longest, counts = unrecorded[index]
                lowest_case[index] = np.where(longest > age, longest, 0), counts
                highest_case[index] = np.minimum(longest, age), counts
                row["incidence_low"] = estimate_incidence(age, index, recorded, lowest_case, censored)
                row["incidence_high"] = estimate_incidence(age, index, recorded, highest_case, censored)
            rows.append(row)
    return INCIDENCE_AT.frame(rows)


def _unrecorded_ends(durations: pl.LazyFrame, events: Sequence[str]) -> list[AgeCounts]:
    """Count, for each event, the durations that it ended at an unrecorded time, by their maximum."""
    columns = {"code": text_codes("event", events), "max_s": pl.col("duration_max_s").clip(lower_bound=0)}
    counts = count_rows(durations.filter(pl.col("duration_s").is_null()), **columns)
    event_counts = (counts.filter(code=code) for code in range(len(events)))
    return [(rows["max_s"].to_numpy(), rows["n"].to_numpy()) for rows in event_counts]
