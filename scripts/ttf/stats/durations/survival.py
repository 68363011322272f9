"""How long lives last before the event: Kaplan-Meier curves, medians and restricted means."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from ttf.engine.columns import CURVES, STRATUM, SUMMARY, SUMMARY_DELAYED_ENTRY
from ttf.engine.contract import frame_of, schema_of
from ttf.engine.storage.tables import blocks
from ttf.records.jobs import Frame
from ttf.stats.basics.normal import Z_95
from ttf.stats.basics.order import places
from ttf.stats.clustered import NO_SPREAD
from ttf.stats.durations.clustered_lives import ClusterLives, Influences, about, limits_log_log, with_why
from ttf.stats.durations.strata import NO_LIFE, Lives, Times, counted_lives, stacked, times_by_stratum

# Products of many factors reach an exact half only up to rounding. With a million lives a step of the curve
# at the median is 5e-7 or more, so this cannot take in a step that is truly above.
HALF = 0.5 + 1e-10

# Strata of fewer lives do not shorten the time to which the restricted means of all are taken.
FEWEST_LIVES = 100

# Rows of whole curves that are put together at a time.
BLOCK_ROWS = 1 << 17

ALL_DEAD = "survival is 0: the log-log interval is not defined there"
NOT_WITH_ENTRIES = "with delayed entry no clustered interval is worked out"


def survival_tables(
    lives: Lives, event: str, strata: Sequence[str], delayed_entry: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(curves, summary) of every stratum of every stratification, in order. lives, errors: see `CountedLives`.

    curves: the product-limit estimate of survival (Kaplan & Meier 1958), whole (`thin` cuts them for a table), a row
    per distinct duration; lives are censored at their duration after the events there. Rows start with time 0, where
    survival is 1 and nobody has left, unless lives end at 0 s: then that row carries them. ci_low, ci_high: 95 %,
    Greenwood's variance (1926) on the log(-log) scale (Kalbfleisch & Prentice 1980); 1 to 1 before the first event;
    blank, with a reason, where survival is 0. Without a known duration, one row of time 0 with a blank survival.
    summary, one row a stratum: n and events count lives of known duration; median_s is the smallest time
    with survival <= 0.5, its 95 % limits where the log-log limits first reach 0.5 (Brookmeyer & Crowley
    1982); restricted_mean_s the area under the curve up to horizon_s, which is one for all strata of a stratification,
    so that their means can be compared: the shortest of the longest durations of strata with FEWEST_LIVES lives or more
    (of all strata, where none has so many), but for those whose curve falls to 0, which go on at 0; where all do, the
    longest duration. A stratum whose curve ends above 0 before the horizon has no restricted mean.
    restricted_mean_se_s: the root of the sum over event times of (area from there to the horizon)^2 d / (n (n - d)),
    with d events of n at risk (Klein & Moeschberger 2003, section 4.5; R's survival). What the data cannot give is
    blank, with a reason.

    Beside these stand the clustered limits, those of the median and the standard error of the restricted mean, from
    what each cluster adds to the cumulative hazard (`ttf.stats.durations.clustered_lives`), on the same scales with
    Student's t; a stratum that is one cluster is divided by its groups. There are none with delayed entry.

    With delayed entry (left truncation: Kalbfleisch & Prentice 1980, section 1.3; Klein & Moeschberger 2003,
    section 4.6) a life is at risk from the age entry_s on only, so at_risk may rise along a curve; n counts the
    lives ever at risk, and a further column entered_late those of them with an entry_s above 0. Where all lives
    under watch at some age have ended by the event, the estimate is 0 from there on, whatever comes under watch
    later, and the reason says so.
    """
    nothing = pl.DataFrame(schema=schema_of(CURVES)), _summary_table([], delayed_entry)
    curves, summaries = zip(nothing, *survival_blocks(lives, event, strata, delayed_entry), strict=True)
    return pl.concat(curves), pl.concat(summaries)


def survival_blocks(
    lives: Lives, event: str, strata: Sequence[str], delayed_entry: bool = False
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The same, a few strata at a time: no more than the curves of one reach BLOCK_ROWS."""
    curves, summaries, rows = [], [], 0
    for names, steps, summary in _by_stratum(lives, event, strata, delayed_entry):
        curves.append((names, steps))
        summaries.append(summary)
        rows += steps["time_s"].size
        if rows >= BLOCK_ROWS:
            yield _block(curves, summaries, delayed_entry)
            curves, summaries, rows = [], [], 0
    if curves:
        yield _block(curves, summaries, delayed_entry)


def _block(
    curves: list[tuple[dict, dict]], summaries: list[dict], delayed_entry: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    return _with_reasons(stacked(curves)).select(*CURVES).cast(schema_of(CURVES)), _summary_table(
        summaries, delayed_entry
    )


def survival_summary(lives: Lives, event: str, strata: Sequence[str], delayed_entry: bool = False) -> pl.DataFrame:
    """The summary of `survival_tables` alone: no more than one curve is held at a time."""
    summaries = [summary for _, _, summary in _by_stratum(lives, event, strata, delayed_entry)]
    return _summary_table(summaries, delayed_entry)


def _by_stratum(
    lives: Lives, event: str, strata: Sequence[str], delayed_entry: bool
) -> Iterator[tuple[dict[str, str], dict[str, np.ndarray], dict]]:
    """(labels, curve, row of the summary) of each stratum."""
    lives = counted_lives(lives, [event])
    code = lives.events.index(event) + 1
    for stratum_by in strata:
        of_strata = list(times_by_stratum(lives, event, stratum_by, delayed_entry))
        by_cluster = {} if delayed_entry else lives.by_cluster(stratum_by)
        horizon = _horizon([times for _, times in of_strata if times.lives])
        for stratum, times in of_strata:
            of = by_cluster.get(stratum)
            names = {"event": event, "stratum_by": stratum_by, "stratum": stratum} | about(of)
            if delayed_entry:
                names["why_not"] = NOT_WITH_ENTRIES
            steps = _steps(times)
            steps |= _clustered_limits(steps, of, code)
            yield names, steps, names | _summary(steps, times, horizon, of, code, names["why_not"])


def _horizon(strata: Sequence[Times]) -> int:
    """The time to which strata, each with lives, have restricted means: see `survival_tables`; 0 of none."""
    counted = [times for times in strata if times.lives >= FEWEST_LIVES] or strata
    going_on = [times for times in counted if not _falls_to_zero(times)]
    if going_on:
        return min(int(times.seconds[-1]) for times in going_on)
    return max((int(times.seconds[-1]) for times in counted), default=0)


def _falls_to_zero(times: Times) -> bool:
    return bool(((times.events > 0) & (times.events == times.at_risk(times.seconds))).any())


def _summary_table(summaries: Sequence[dict], delayed_entry: bool) -> pl.DataFrame:
    return frame_of(SUMMARY_DELAYED_ENTRY if delayed_entry else SUMMARY, summaries)


def curve_by_curve(curves: Frame) -> Iterator[tuple[tuple[str, ...], pl.DataFrame]]:
    """((event, stratum_by, stratum), rows) of each of the curves of `survival_tables`, read block by block."""
    key, rows = None, []
    for block in blocks(curves.lazy()):
        for here, part in block.group_by(*STRATUM, maintain_order=True):
            if here != key and rows:
                yield key, pl.concat(rows)
                rows = []
            key = here
            rows.append(part)
    if rows:
        yield key, pl.concat(rows)


def thin(curve: pl.DataFrame, max_steps: int) -> pl.DataFrame:
    """At most `max_steps` rows a stratum, each an exact row of the curve, none interpolated.

    A longer curve keeps its first row, its last row and rows with an event: all of them if they fit (between
    events survival does not change), else as many as fit at even places in their order, so at even shares of
    the event times. `events` and `censored` stay those of the row's own time: they no longer add up to n.
    curve: one, or many with their event, stratum_by and stratum.
    Raises ValueError when max_steps is below 2.
    """
    by = [name for name in STRATUM if name in curve.columns]
    if not by:
        return curve[_kept_rows(curve["events"].to_numpy(), max_steps)]
    sizes = curve.group_by(by, maintain_order=True).len()["len"].to_list()
    events = curve["events"].to_numpy()
    kept, start = [np.zeros(0, dtype=np.int64)], 0
    for size in sizes:
        kept.append(start + _kept_rows(events[start : start + size], max_steps))
        start += size
    return curve[np.concatenate(kept)]


def thinned(curve: Mapping[str, np.ndarray], max_steps: int | None) -> dict[str, np.ndarray]:
    """The columns of one curve, `events` among them, cut as `thin` cuts a frame; whole where max_steps is None."""
    if max_steps is None:
        return dict(curve)
    kept = _kept_rows(curve["events"], max_steps)
    return {name: values[kept] for name, values in curve.items()}


def _kept_rows(events: np.ndarray, max_steps: int) -> np.ndarray:
    if max_steps < 2:
        raise ValueError(f"a curve has at least a first and a last step, so max_steps cannot be {max_steps}")
    size, room = events.size, max_steps - 2
    if size <= max_steps:
        return np.arange(size)
    inner = 1 + np.flatnonzero(events[1:-1])
    if inner.size > room:
        # The middles of `room` equal parts, in integers.
        inner = inner[(2 * np.arange(room) + 1) * inner.size // (2 * room)] if room else inner[:0]
    return np.concatenate(([0], inner, [size - 1]))


def _steps(times: Times) -> dict[str, np.ndarray]:
    """The columns of a curve as arrays; NaN where the limits are not defined."""
    times = times.from_zero()
    time, ended, events = times.seconds, times.ended, times.events
    at_risk = times.at_risk(time)
    survivors = at_risk - events
    steps = {"time_s": time, "at_risk": at_risk, "events": events, "censored": ended - events}
    if times.lives == 0:
        nothing = np.full(1, np.nan)
        return steps | {"survival": nothing, "ci_low": nothing, "ci_high": nothing}
    # At age 0 nobody need be under watch yet.
    survival = np.cumprod(np.divide(survivors, at_risk, out=np.ones(time.size), where=at_risk > 0))
    # Greenwood's sum; where nobody survives it is infinite, and no limits are written from there on.
    alive = survival > 0
    greenwood = np.cumsum(_greenwood_terms(at_risk, events))
    untouched = np.cumsum(events) == 0
    inside = alive & ~untouched
    log_survival = np.log(survival, out=np.full(time.size, -1.0), where=inside)
    spread = np.exp(Z_95 * np.sqrt(greenwood) / -log_survival)
    low = np.where(inside, survival**spread, np.where(untouched, 1.0, np.nan))
    high = np.where(inside, survival ** (1 / spread), np.where(untouched, 1.0, np.nan))
    return steps | {"survival": survival, "ci_low": low, "ci_high": high}


def _clustered_limits(steps: dict[str, np.ndarray], of: ClusterLives | None, code: int) -> dict[str, np.ndarray]:
    """ci_low_clustered and ci_high_clustered of a curve; NaN where they are not defined."""
    nothing = np.full(steps["time_s"].size, np.nan)
    if of is None or np.isnan(student := of.student()):
        return {"ci_low_clustered": nothing, "ci_high_clustered": nothing}
    hazard = Influences(of, steps["time_s"]).added(*_of_log_survival(steps["at_risk"], steps["events"], code))
    low, high = limits_log_log(steps["survival"], hazard.se(), student)
    untouched = np.cumsum(steps["events"]) == 0
    return {"ci_low_clustered": np.where(untouched, 1.0, low), "ci_high_clustered": np.where(untouched, 1.0, high)}


def _of_log_survival(at_risk: np.ndarray, events: np.ndarray, code: int) -> tuple[list[np.ndarray | None], np.ndarray]:
    """What lives add to -log of survival, by age: (by the way they end, what those at risk have passed)."""
    survivors = at_risk - events
    own = np.divide(1, survivors, out=np.zeros(events.size), where=survivors > 0)
    return [*[None] * code, own], np.cumsum(_greenwood_terms(at_risk, events))


def _greenwood_terms(at_risk: np.ndarray, events: np.ndarray) -> np.ndarray:
    """d / (n (n - d)) at each age; 0 where nothing happens, or to all."""
    survivors = at_risk - events
    return np.divide(events, at_risk * survivors, out=np.zeros(events.size), where=(events > 0) & (survivors > 0))


def _with_reasons(steps: pl.DataFrame) -> pl.DataFrame:
    survival, ci_low = pl.col("survival"), pl.col("ci_low")
    return with_why(
        steps.with_columns(
            reason=pl.when(survival.is_null()).then(pl.lit(NO_LIFE)).when(ci_low.is_null()).then(pl.lit(ALL_DEAD))
        )
    )


def _summary(
    steps: dict[str, np.ndarray], times: Times, horizon: int, of: ClusterLives | None, code: int, why_not: str
) -> dict[str, int | float | str | None]:
    time, survival = steps["time_s"], steps["survival"]
    if times.lives == 0:
        return {"n": 0, "events": 0, "entered_late": 0, "reason": NO_LIFE}
    reasons = []
    dead = np.flatnonzero(survival == 0)
    if dead.size and (late := int((times.late >= time[dead[0]]).sum())):
        reasons.append(f"all under watch had ended at {time[dead[0]]} s, before {late} came under watch")
    known = of is not None and not np.isnan(of.student())
    reasons += [] if known else [why_not]
    medians = {}
    for name, curve, missing in (
        ("median_s", "survival", "survival never falls to 0.5: no median"),
        ("median_ci_low_s", "ci_low", "the lower limit never falls to 0.5: no lower limit of the median"),
        ("median_ci_high_s", "ci_high", "the upper limit never falls to 0.5: no upper limit of the median"),
        ("median_ci_low_clustered_s", "ci_low_clustered", "the clustered lower limit never falls to 0.5"),
        ("median_ci_high_clustered_s", "ci_high_clustered", "the clustered upper limit never falls to 0.5"),
    ):
        # A limit may end in NaN.
        reached = np.flatnonzero(steps[curve] <= HALF)
        medians[name] = int(time[reached[0]]) if reached.size else None
        if not reached.size and (known or "clustered" not in name):
            reasons.append(missing)
    mean = error = clustered_error = None
    if time[-1] < horizon and survival[-1] > 0:
        reasons.append(f"observed for {time[-1]} s at the most, short of the horizon: no restricted mean")
    else:
        areas = survival[:-1] * np.diff(np.minimum(time, horizon))
        mean = math.fsum(areas)
        ahead = np.cumsum(areas[::-1])[::-1]
        error = math.sqrt(math.fsum(ahead**2 * _greenwood_terms(steps["at_risk"], steps["events"])[:-1])) or None
        if error is None:
            reasons.append("no event before the horizon that a life outlasts: no standard error of the restricted mean")
        elif known:
            clustered_error = _mean_se(steps, np.append(ahead, 0.0), of, code)
            reasons += [f"{NO_SPREAD}: no clustered standard error"] if clustered_error is None else []
    return {
        "n": times.lives,
        "events": times.failures,
        "entered_late": times.late.size,
        **medians,
        "horizon_s": horizon,
        "restricted_mean_s": mean,
        "restricted_mean_se_s": error,
        "restricted_mean_se_clustered_s": clustered_error,
        "reason": "; ".join(reasons) or None,
    }


def _mean_se(steps: dict[str, np.ndarray], ahead: np.ndarray, of: ClusterLives, code: int) -> float | None:
    """The clustered standard error of the restricted mean; ahead: by age the area under the curve from there on."""
    own, _ = _of_log_survival(steps["at_risk"], steps["events"], code)
    passed = np.cumsum(_greenwood_terms(steps["at_risk"], steps["events"]) * ahead)
    place = places(steps["time_s"], of.seconds)
    added = of.lives * np.where(of.code == code, (own[code] * ahead)[place], 0.0) - of.lives * passed[place]
    se = float(of.clusters.se(of.by_cluster(added), of.clusters.share(of.members))[0])
    return se if math.isfinite(se) else None
