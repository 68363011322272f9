"""Survival before the event: Kaplan-Meier curves, medians and restricted means."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import polars as pl

from ttf.engine.columns import CURVES, STRATUM, SUMMARY, SUMMARY_DELAYED_ENTRY
from ttf.engine.contract import make_frame, make_schema
from ttf.engine.storage.tables import read_blocks
from ttf.records.jobs import Frame, choose_text, conform
from ttf.stats.basics.normal import Z_95
from ttf.stats.clustered import NO_SPREAD, append_reason
from ttf.stats.durations.clustered_durations import (
    Influences,
    describe_clusters,
    limits_log_log,
    missing_interval_reason,
)
from ttf.stats.durations.strata import NO_DURATION, Durations, Times, count_durations, iterate_times, stack_curves

# Products of many factors reach an exact half only up to rounding. With a million durations a step of the curve at the
# median is 5e-7 or more, so this tolerance includes no step that is truly above.
HALF = 0.5 + 1e-10

# Strata with fewer durations do not shorten the common horizon of the restricted means.
FEWEST_DURATIONS = 100

# Rows of whole curves in one block.
BLOCK_ROWS = 1 << 17

ALL_DEAD = "survival is 0: the log-log interval is not defined there"
NOT_REACHED = "too few have had the event for some cells"
NOT_WITH_ENTRIES = "with delayed entry no clustered interval is worked out"


# Names of a curve's stratum and clusters, and the columns of a curve.
_Names: TypeAlias = dict[str, str | float | None]
_Columns: TypeAlias = dict[str, np.ndarray]


def survival_tables(
    durations: Durations, event: str, strata: Sequence[str], delayed_entry: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (curves, summary) of every stratum of every stratification, in order.

    curves: the product-limit estimate of survival (Kaplan & Meier 1958), uncut (`thin_curves` cuts them for a table), a
    row per distinct duration; durations are censored after the events of their length. The first row is time 0 with
    survival 1 and none ended, unless durations end at 0 s. ci_low, ci_high: 95 %, Greenwood's variance (1926) on the
    log(-log) scale (Kalbfleisch & Prentice 1980); 1 to 1 before the first event; blank, with a reason, where survival
    is 0. Without a known duration, one row of time 0 with a blank survival.

    summary, a row per stratum: n and events count known durations. median_s is the smallest time with survival <= 0.5;
    its 95 % limits are where the log-log limits first reach 0.5 (Brookmeyer & Crowley 1982). restricted_mean_s is the
    area under the curve up to horizon_s, one horizon for all strata of a stratification, so that their means are
    comparable. It is the shortest of the strata's longest durations, for strata with FEWEST_DURATIONS durations (or all
    strata, if none has), except strata whose curve falls to 0, which stay at 0; if all do, it is the longest duration.
    A stratum whose curve ends above 0 before the horizon has no restricted mean. restricted_mean_se_s: the root of the
    sum over event times of (area from there to the horizon)^2 d / (n (n - d)), with d events of n at risk (Klein &
    Moeschberger 2003, section 4.5; R's survival). Missing values are blank, with a reason.

    Clustered limits, those of the median and the standard error of the restricted mean come from the influence of each
    cluster on the cumulative hazard (`ttf.stats.durations.clustered_durations`), on the same scales with Student's t. A
    stratum that is a single cluster is split by its groups. There are none with delayed entry.

    With delayed entry (left truncation: Kalbfleisch & Prentice 1980, section 1.3; Klein & Moeschberger 2003, section
    4.6) a duration is at risk only from age entry_s on, so at_risk may rise along a curve. n counts the durations ever
    at risk; a further column entered_late counts those with an entry_s above 0. If all at risk at some age have ended
    by the event, the estimate is 0 from there on, despite later entries, and the reason says so.

    durations: see `CountedDurations`. event: the event that counts. strata: names of the
    stratifications.
    """
    empty = pl.DataFrame(schema=make_schema(CURVES)), _summary_table([], delayed_entry)
    curves, summaries = zip(empty, *survival_blocks(durations, event, strata, delayed_entry), strict=True)
    return pl.concat(curves), pl.concat(summaries)


def survival_blocks(
    durations: Durations, event: str, strata: Sequence[str], delayed_entry: bool = False
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the tables of `survival_tables` a few strata at a time: up to BLOCK_ROWS rows of curves and one curve."""
    curves: list[tuple[_Names, _Columns]] = []
    summaries: list[dict] = []
    rows = 0
    for names, steps, summary in _stratum_curves(durations, event, strata, delayed_entry):
        curves.append((names, steps))
        summaries.append(summary)
        rows += steps["time_s"].size
        if rows >= BLOCK_ROWS:
            yield _make_curves_and_summary(curves, summaries, delayed_entry)
            curves, summaries, rows = [], [], 0
    if curves:
        yield _make_curves_and_summary(curves, summaries, delayed_entry)


def _make_curves_and_summary(
    curves: Sequence[tuple[_Names, _Columns]], summaries: Sequence[dict], delayed_entry: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    reason = choose_text({NO_DURATION: pl.col("survival").is_null(), ALL_DEAD: pl.col("ci_low").is_null()})
    steps = append_reason(stack_curves(curves).with_columns(reason=reason)).select(*CURVES)
    return conform(steps, make_schema(CURVES)), _summary_table(summaries, delayed_entry)


def survival_summary(
    durations: Durations, event: str, strata: Sequence[str], delayed_entry: bool = False
) -> pl.DataFrame:
    """Return only the summary of `survival_tables`; no more than one curve is held at a time."""
    summaries = [summary for _, _, summary in _stratum_curves(durations, event, strata, delayed_entry)]
    return _summary_table(summaries, delayed_entry)


def curve_quantiles(curves: pl.DataFrame, percents: Sequence[int]) -> pl.DataFrame:
    """Return the times by which shares of each stratum have had the event, with clustered 95% intervals.

    Parameters
    ----------
    curves : from `survival_tables`
    percents : shares in percent, such as 90

    Returns
    -------
    pl.DataFrame
        stratum, n, events, cluster_by, clusters, reason; per percent p: p{p}_s, the first time at which survival is at
        most 1 - p / 100, with p{p}_ci_low_clustered_s and p{p}_ci_high_clustered_s, at which its clustered limits are

    References
    ----------
    Brookmeyer & Crowley (1982), Biometrics 38
    """
    curve_by_suffix = {"_s": "survival"} | {f"_{name}_s": name for name in ("ci_low_clustered", "ci_high_clustered")}
    quantiles = {
        f"p{percent}{suffix}": pl.col("time_s").filter(pl.col(curve) <= HALF + 0.5 - percent / 100).first()
        for percent in percents
        for suffix, curve in curve_by_suffix.items()
    }
    has_no_interval = pl.col("ci_low_clustered").is_null() & (pl.col("survival") > 0)
    constants = [pl.col(name).first() for name in ("cluster_by", "clusters")]
    reason = pl.col("reason").filter(has_no_interval).first()
    table = curves.group_by("stratum", maintain_order=True).agg(
        *constants, n=pl.col("at_risk").first(), events=pl.col("events").sum(), **quantiles, reason=reason
    )
    is_open = pl.any_horizontal(pl.col(*quantiles).is_null())
    return table.with_columns(pl.coalesce("reason", pl.when(is_open).then(pl.lit(NOT_REACHED))))


def _stratum_curves(
    durations: Durations, event: str, strata: Sequence[str], delayed_entry: bool
) -> Iterator[tuple[_Names, _Columns, dict]]:
    """Yield the names, the uncut curve and the summary row of each stratum of each stratification."""
    durations = count_durations(durations, [event])
    code = durations.events.index(event) + 1
    for stratum_by in strata:
        strata_times = list(iterate_times(durations, event, stratum_by, delayed_entry))
        clusters_by_stratum = {} if delayed_entry else durations.by_cluster(stratum_by)
        horizon = _choose_horizon([times for _, times in strata_times if times.durations])
        for stratum, times in strata_times:
            clusters = clusters_by_stratum.get(stratum)
            why_not = NOT_WITH_ENTRIES if delayed_entry else missing_interval_reason(clusters)
            stratum_names = {"event": event, "stratum_by": stratum_by, "stratum": stratum}
            names = stratum_names | describe_clusters(clusters) | {"why_not": why_not}
            steps = _kaplan_meier_steps(times)
            influences = None
            if clusters is not None and not np.isnan(clusters.student()):
                influences = Influences(clusters, steps["time_s"])
            steps |= _clustered_limits(steps, influences, code)
            yield names, steps, names | _summary_row(steps, times, horizon, influences, code, why_not)


def _choose_horizon(strata: Sequence[Times]) -> int:
    eligible = [times for times in strata if times.durations >= FEWEST_DURATIONS] or strata
    above_zero = [times for times in eligible if not _survival_reaches_zero(times)]
    if above_zero:
        return min(int(times.seconds[-1]) for times in above_zero)
    return max((int(times.seconds[-1]) for times in eligible), default=0)


def _survival_reaches_zero(times: Times) -> bool:
    return bool(((times.events > 0) & (times.events == times.at_risk(times.seconds))).any())


def _summary_table(summaries: Sequence[dict], delayed_entry: bool) -> pl.DataFrame:
    return make_frame(SUMMARY_DELAYED_ENTRY if delayed_entry else SUMMARY, summaries)


def iterate_curves(curves: Frame) -> Iterator[tuple[tuple[str, ...], pl.DataFrame]]:
    """Yield ((event, stratum_by, stratum), rows) of each curve of `survival_tables`, read block by block."""
    blocks = (block.group_by(*STRATUM, maintain_order=True) for block in read_blocks(curves.lazy()))
    for key, parts in itertools.groupby(itertools.chain.from_iterable(blocks), key=itemgetter(0)):
        yield key, pl.concat(rows for _, rows in parts)


def thin_curves(curve: pl.DataFrame, max_steps: int) -> pl.DataFrame:
    """Cut a curve to at most `max_steps` rows a stratum, each an exact row of it, none interpolated.

    A longer curve keeps its first row, its last row and rows with an event: all of them if they fit (survival is
    constant between events), else as many as fit at even positions, so at even shares of the event times. `events` and
    `censored` stay those of the row's own time, so they no longer add up to n. curve: one curve, or several with their
    event, stratum_by and stratum. Raises ValueError for max_steps below 2.
    """
    keys = [name for name in STRATUM if name in curve.columns]
    parts = curve.partition_by(keys, maintain_order=True) if keys else [curve]
    return pl.concat(
        [curve.clear(), *(part[_choose_row_indices(part["events"].to_numpy(), max_steps)] for part in parts)]
    )


def thin_arrays(curve: Mapping[str, np.ndarray], max_steps: int | None) -> dict[str, np.ndarray]:
    """Cut the columns of one curve, with `events`, as `thin_curves` cuts a frame; uncut if max_steps is None."""
    if max_steps is None:
        return dict(curve)
    indices = _choose_row_indices(curve["events"], max_steps)
    return {name: values[indices] for name, values in curve.items()}


def _choose_row_indices(events: np.ndarray, max_steps: int) -> np.ndarray:
    if max_steps < 2:
        raise ValueError(f"a curve has at least a first and a last step, so max_steps cannot be {max_steps}")
    size, n_inner = events.size, max_steps - 2
    if size <= max_steps:
        return np.arange(size)
    inner = 1 + np.flatnonzero(events[1:-1])
    if inner.size > n_inner:
        # The middles of `n_inner` equal parts, in integers.
        inner = inner[(2 * np.arange(n_inner) + 1) * inner.size // (2 * n_inner)] if n_inner else inner[:0]
    return np.concatenate(([0], inner, [size - 1]))


def _kaplan_meier_steps(times: Times) -> dict[str, np.ndarray]:
    times = times.from_zero()
    time, ended, events = times.seconds, times.ended, times.events
    at_risk = times.at_risk(time)
    survivors = at_risk - events
    steps = {"time_s": time, "at_risk": at_risk, "events": events, "censored": ended - events}
    if times.durations == 0:
        blank = np.full(1, np.nan)
        return steps | {"survival": blank, "ci_low": blank, "ci_high": blank}
    # At age 0 none may be at risk yet.
    survival = np.cumprod(np.divide(survivors, at_risk, out=np.ones(time.size), where=at_risk > 0))
    # Greenwood's sum is infinite where survival is 0, so limits stop there.
    is_positive = survival > 0
    greenwood = np.cumsum(_greenwood_terms(at_risk, events))
    before_event = np.cumsum(events) == 0
    has_interval = is_positive & ~before_event
    log_survival = np.log(survival, out=np.full(time.size, -1.0), where=has_interval)
    exponent = np.exp(Z_95 * np.sqrt(greenwood) / -log_survival)
    low = np.where(has_interval, survival**exponent, np.where(before_event, 1.0, np.nan))
    high = np.where(has_interval, survival ** (1 / exponent), np.where(before_event, 1.0, np.nan))
    return steps | {"survival": survival, "ci_low": low, "ci_high": high}


def _clustered_limits(steps: dict[str, np.ndarray], influences: Influences | None, code: int) -> dict[str, np.ndarray]:
    if influences is None:
        return dict.fromkeys(("ci_low_clustered", "ci_high_clustered"), np.full(steps["time_s"].size, np.nan))
    hazard = influences.accumulate(*_log_survival_parts(steps["at_risk"], steps["events"], code))
    low, high = limits_log_log(steps["survival"], hazard.half_width())
    before_event = np.cumsum(steps["events"]) == 0
    return {
        "ci_low_clustered": np.where(before_event, 1.0, low),
        "ci_high_clustered": np.where(before_event, 1.0, high),
    }


def _log_survival_parts(
    at_risk: np.ndarray, events: np.ndarray, code: int
) -> tuple[list[np.ndarray | None], np.ndarray]:
    """Return (jumps by code, compensator) of the influence on -log of survival, by age: see `Influences`."""
    survivors = at_risk - events
    jumps = np.divide(1, survivors, out=np.zeros(events.size), where=survivors > 0)
    return [*[None] * code, jumps], np.cumsum(_greenwood_terms(at_risk, events))


def _greenwood_terms(at_risk: np.ndarray, events: np.ndarray) -> np.ndarray:
    """Return d / (n (n - d)) at each age; 0 if there is no event, or all have one."""
    survivors = at_risk - events
    return np.divide(events, at_risk * survivors, out=np.zeros(events.size), where=(events > 0) & (survivors > 0))


def _summary_row(
    steps: dict[str, np.ndarray],
    times: Times,
    horizon: int,
    influences: Influences | None,
    code: int,
    no_interval_reason: str,
) -> dict[str, int | float | str | None]:
    time, survival = steps["time_s"], steps["survival"]
    if times.durations == 0:
        return {"n": 0, "events": 0, "entered_late": 0, "reason": NO_DURATION}
    reasons = []
    zeros = np.flatnonzero(survival == 0)
    if zeros.size and (n_late := int((times.late >= time[zeros[0]]).sum())):
        reasons.append(f"all under watch had ended at {time[zeros[0]]} s, before {n_late} came under watch")
    reasons += [no_interval_reason] if influences is None else []
    medians = {}
    for name, curve, missing_reason in (
        ("median_s", "survival", "survival never falls to 0.5: no median"),
        ("median_ci_low_s", "ci_low", "the lower limit never falls to 0.5: no lower limit of the median"),
        ("median_ci_high_s", "ci_high", "the upper limit never falls to 0.5: no upper limit of the median"),
        ("median_ci_low_clustered_s", "ci_low_clustered", "the clustered lower limit never falls to 0.5"),
        ("median_ci_high_clustered_s", "ci_high_clustered", "the clustered upper limit never falls to 0.5"),
    ):
        # A limit may end in NaN.
        crossings = np.flatnonzero(steps[curve] <= HALF)
        medians[name] = int(time[crossings[0]]) if crossings.size else None
        if not crossings.size and (influences is not None or "clustered" not in name):
            reasons.append(missing_reason)
    mean = error = clustered_error = None
    if time[-1] < horizon and survival[-1] > 0:
        reasons.append(f"observed for {time[-1]} s at the most, short of the horizon: no restricted mean")
    else:
        areas = survival[:-1] * np.diff(np.minimum(time, horizon))
        mean = math.fsum(areas)
        areas_ahead = np.cumsum(areas[::-1])[::-1]
        error = math.sqrt(math.fsum(areas_ahead**2 * _greenwood_terms(steps["at_risk"], steps["events"])[:-1])) or None
        if error is None:
            reasons.append(
                "no event before the horizon that another duration exceeds: no standard error of the restricted mean"
            )
        elif influences is not None:
            clustered_error = _clustered_mean_se(steps, np.append(areas_ahead, 0.0), influences, code)
            reasons += [f"{NO_SPREAD}: no clustered standard error"] if clustered_error is None else []
    return {
        "n": times.durations,
        "events": times.failures,
        "entered_late": times.late.size,
        **medians,
        "horizon_s": horizon,
        "restricted_mean_s": mean,
        "restricted_mean_se_s": error,
        "restricted_mean_se_clustered_s": clustered_error,
        "reason": "; ".join(reasons) or None,
    }


def _clustered_mean_se(
    steps: dict[str, np.ndarray], areas: np.ndarray, influences: Influences, code: int
) -> float | None:
    """Return the clustered standard error of the restricted mean, or None. areas: from each age to the horizon."""
    jumps, _ = _log_survival_parts(steps["at_risk"], steps["events"], code)
    compensator = np.cumsum(_greenwood_terms(steps["at_risk"], steps["events"]) * areas)
    clusters, index = influences.durations, influences.age_index
    gains = np.where(clusters.code == code, (jumps[code] * areas)[index], 0.0)
    influence = clusters.durations * gains - clusters.durations * compensator[index]
    cells = clusters.cells
    se = float(cells.se(np.bincount(clusters.cell, influence), cells.share(cells.members))[0])
    return se if math.isfinite(se) else None
