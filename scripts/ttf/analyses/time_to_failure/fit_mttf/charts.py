"""How long lives go on without failure: Kaplan-Meier curves; and the mean time to failure with its exact intervals."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.time_to_failure.fit_mttf import AGES, STEP
from ttf.display.charts.axes import (
    log_axis,
    log_domain,
    log_scale,
    log_time,
    on_log_time,
    percent_axis,
    time_axis,
    time_domain,
)
from ttf.display.charts.encodings import coloured, picked, side_notes, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, fitted, nothing_to_draw, one_for_all
from ttf.display.charts.intervals import by_what, draw_estimates, draw_lower_bounds, shown
from ttf.display.charts.steps import CLUSTERED, bands, step_curves, step_rows
from ttf.display.charts.text import HOUR_S, labels
from ttf.display.charts.theme import ACCENT, CATEGORY_COLOURS, FAILURE, FAINT, INK, ORDER_COLOURS
from ttf.engine.columns import GAP
from ttf.engine.words import capital, duration, in_words, listed, plural, share
from ttf.stats.durations.survival import thin

MOST_STRATA = 6
MOST_STEPS = 160  # of one curve: a step every four pixels
MOST_ROWS = 600  # of all curves together
# Steps of time limits that are named, the largest.
MOST_LIMITS = 3
# The axis of time begins where so many have failed.
TO_BE_SEEN = 0.01
# What is in service, not running.
COMPONENTS = ("node", "GPU", "drive")
AFTER_REPAIR = "Without failure since a repair"
TOOLTIPS = 50  # of one curve
# Of more than these each takes less room.
MOST_WIDE = 10
MOST_ROWS_OF_MTTF = 20


def still_running(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """The share of all lives without failure by age, beside what a constant rate would leave; steps and times named."""
    of_all = {"event": "failure", "stratum_by": "all"}
    curve = given["survival"].filter(pl.col("survival").is_not_null(), **of_all)
    at_work = "in service" if study.unit in COMPONENTS else "still running"
    what = AFTER_REPAIR if study.life == GAP else f"{capital(study.units)} {at_work} without failure"
    mttf = given["mttf"].filter(confidence=0.95, **of_all)
    if not curve.height or not mttf["events"].sum():
        return nothing_to_draw(what, f"no {study.unit} failed at a known time")
    n, events, mean = mttf.select("n", "events", "mttf_s").row(0)
    if mean is None:
        return nothing_to_draw(what, f"every {study.unit} ended as it began")
    limits, _ = bands(curve, study.lives)
    # A large step begins and ends where it does.
    at_step = pl.col("time_s").is_in(given["survival_steps"]["time_s"].implode())
    thinned = thin(curve, MOST_STEPS // 2 if study.narrow else MOST_STEPS)
    drawn = pl.concat([thinned, curve.filter(at_step | at_step.shift(-1))]).unique("time_s").sort("time_s")
    rows = _rows(drawn, {"all": "all"}, limits)
    fallen = curve.filter(pl.col("survival") < 1 - TO_BE_SEEN)["time_s"].min()
    domain = time_domain([on_log_time(fallen or 0), max(row["x"] for row in rows)])
    spots = _spots(given["survival_at"], mean, domain[0])
    name = _name(mean, domain[1], rows[-1]["v"])
    # So much further that the labels to the right of their points have room.
    domain[1] = max([domain[1], *(_room(spot, domain[0], study) for spot in spots if spot["above"])])
    low, high = (math.log(end) for end in domain)
    ages = (math.exp(low + (high - low) * place / 80) for place in range(81))
    constant = [{"x": x, "v": math.exp(-x / mean)} for x in ages]
    steps = given["survival_steps"].filter((pl.col("drop") > STEP) & (2 * pl.col("time_limits") > pl.col("failures")))
    steps = steps.sort("drop", descending=True).head(MOST_LIMITS).sort("time_s")
    marked = [
        {"x": row["time_s"], "v": row["survival"] + row["drop"] / 2}
        | {"label": f"{duration(row['time_s'])} limit", "key": f"survival.limits.{number}.time_s"}
        for number, row in enumerate(steps.iter_rows(named=True), start=1)
    ]
    by = drawn["cluster_by"].drop_nulls().unique().sort().to_list() if limits is CLUSTERED else []
    band = f"95% CI clustered by {' or '.join(by)}" if by else "95% CI if independent"
    told = ", ".join(spot["label"] for spot in spots)
    alt_text = f"{what}: a falling step curve on a logarithmic time axis, {told}; dashed, a constant rate with a mean "
    return figure(
        fitted(_running(domain, study), study, 270),
        {"steps": rows, "constant": constant, "spots": spots, "limits": marked, "name": [name]},
        study,
        title=what,
        subtitle=f"Kaplan–Meier estimate, {band}; {study.lives} that ended otherwise are censored",
        caption=f"n = {plural(n, study.life)}, {plural(events, 'failure')}",
        alt_text=f"{alt_text}time to failure of {duration(mean)}.",
    )


def _spots(at_ages: pl.DataFrame, mean: float, low: float) -> list[dict]:
    """The estimate at the last two ages that the curve reaches; `above`: where its label has room."""
    left = dict(at_ages.filter(pl.col("time_s") > low).select("time_s", "survival").iter_rows())
    reached = [(name, age_s, age) for name, (age_s, age) in AGES.items() if age_s in left]
    return [
        {"x": age_s, "v": left[age_s], "label": f"{share(left[age_s])} at {age}"}
        | {"above": left[age_s] > math.exp(-age_s / mean), "key": f"survival.{name}.survival"}
        for name, age_s, age in reached[-2:]
        if left[age_s] < 1 - TO_BE_SEEN / 20
    ]


def _room(spot: dict, low: float, study: Study) -> float:
    """Where the axis has to end for the label to the right of its point."""
    share = (7 * len(spot["label"]) + 10) / (study.width - 50)
    return low * (spot["x"] / low) ** (1 / (1 - share))


def _name(mean: float, end: float, last: float) -> dict:
    """Where the dashed line is named: left of the end of its fall, below the curve; below both that end before."""
    x = min(2 * mean, end)
    v = math.exp(-x / mean)
    below = v if v < 0.2 else max(min(v, last) - 0.1, 0)
    return {"x": x, "v": below, "label": f"constant rate, MTTF {duration(mean)}", "key": "mttf.mttf_s"}


def _running(domain: list[float], study: Study) -> alt.LayerChart:
    time = "Time in service" if study.unit in COMPONENTS else "Run time"
    time = "Time up" if study.life == GAP else time
    x = alt.X("x:Q", scale=log_scale(domain), axis=time_axis(f"{time} (logarithmic)", grid=False))
    y = alt.Y("v:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(values=[0, 0.25, 0.5, 0.75, 1]))
    curve, constant, spots, limits, name = (
        chart_of(data).encode(x=x, y=y) for data in ("steps", "constant", "spots", "limits", "name")
    )
    band = chart_of("steps").transform_filter("isValid(datum.l) && isValid(datum.h)")
    band = band.mark_area(interpolate="step-after", opacity=0.18, color=FAILURE, line=False, clip=True)
    bold = {"fontSize": 12, "fontWeight": "bold", "color": INK}
    plain = {"fontSize": 12, "color": FAINT, "align": "right"}
    texts = [
        spots.transform_filter("datum.above").mark_text(align="left", dx=7, dy=-12, **bold),
        spots.transform_filter("!datum.above").mark_text(align="right", dx=-7, dy=12, **bold),
        limits.mark_text(dx=-6, **plain),
        name.mark_text(dx=-8, **plain),
    ]
    return alt.layer(
        band.encode(x=x, y=alt.Y("l:Q"), y2="h:Q"),
        constant.mark_line(strokeDash=[5, 4], strokeWidth=1.5, color=INK),
        curve.mark_line(interpolate="step-after", strokeWidth=2, color=FAILURE, clip=True),
        spots.mark_point(filled=True, size=70, opacity=1, color=FAILURE),
        *(text.encode(text="label:N") for text in texts),
    )


def survival_by(given: Mapping[str, pl.DataFrame], study: Study, stratum_by: str) -> Figure:
    """The share of lives without failure by age, of the strata with the most lives."""
    curves, summary = given["survival"], given["survival_summary"].filter(event="failure")
    by = in_words(stratum_by)
    what = f"{capital(study.units)} without failure by {by}"
    mine = summary.filter(pl.col("n") > 0, stratum_by=stratum_by)
    if not mine.height:
        return nothing_to_draw(what, f"no {study.unit} has a known {by} and duration")
    if one_for_all(summary, stratum_by):
        return nothing_to_draw(what, f"all {study.units} have one {by}")
    if not mine["events"].sum():
        return nothing_to_draw(what, f"no {study.unit} failed at a known time")
    kept = mine.sort("n", descending=True, maintain_order=True).head(MOST_STRATA)["stratum"]
    is_drawn = pl.col("stratum").is_in(kept.implode())
    drawn = mine.filter(is_drawn)
    names = labels(drawn["stratum"].to_list())
    if stratum_by == "gpu_count":
        names = {gpus: plural(int(gpus), study.size) for gpus in names}
    chosen = curves.filter(is_drawn & pl.col("survival").is_not_null(), event="failure", stratum_by=stratum_by)
    legend = {row["stratum"]: f"{names[row['stratum']]} (n = {row['n']:,})" for row in drawn.iter_rows(named=True)}
    limits, about_bands = bands(chosen, study.units)
    rows = _rows(thin(chosen, min(MOST_STEPS, MOST_ROWS // drawn.height)), legend, limits)
    caption = f"n = {plural(drawn['n'].sum(), study.unit)}, {plural(drawn['events'].sum(), 'failure')}. {about_bands}"
    if (left_out := mine.filter(~is_drawn)).height:
        caption += (
            f" The {MOST_STRATA} with the most {study.units}; {plural(left_out.height, 'stratum')} left out, with "
            f"{left_out['n'].sum():,} ({_left_out(stratum_by, left_out['stratum'].to_list())})."
        )
    return figure(
        _chart(rows, list(legend.values()), stratum_by, study),
        {"steps": rows},
        study,
        title=what,
        subtitle=f"Kaplan–Meier estimate with 95% CI; {study.units} that ended otherwise are censored",
        caption=caption,
        alt_text=f"{what}: {plural(drawn.height, 'falling step curve')} on a logarithmic time axis.",
    )


def _left_out(stratum_by: str, strata: Sequence[str], most: int = 8) -> str:
    """The strata left out by name, as many as can be read."""
    shown = [f"{int(s):,}" for s in strata] if stratum_by == "gpu_count" else list(labels(strata).values())
    unit = " GPUs" if stratum_by == "gpu_count" else ""
    if len(shown) <= most:
        return listed(shown) + unit
    return f"{', '.join(shown[:most])}{unit} and {len(shown) - most:,} more"


def _rows(curve: pl.DataFrame, legend: dict[str, str], limits: Mapping[str, str]) -> list[dict]:
    rows = []
    for (stratum,), part in curve.group_by("stratum", maintain_order=True):
        if part["survival"].first() < 1:
            # Down from everybody at 0 s, so that failures at 0 s can be seen.
            rows.append({"s": legend[stratum], "x": on_log_time(0), "v": 1})
        rows += step_rows(part, legend[stratum], "survival", 1, TOOLTIPS, limits)
    return rows


def _chart(rows: list[dict], names: list[str], stratum_by: str, study: Study) -> alt.LayerChart:
    palette = ORDER_COLOURS if stratum_by == "gpu_count" else CATEGORY_COLOURS
    # Few strata take colours from all of an ordered palette, so that neighbours stay apart.
    step = (len(palette) - 1) / max(1, len(names) - 1) if stratum_by == "gpu_count" else 1
    colours = [palette[round(number * step)] for number in range(len(names))]
    legend = {"title": capital(in_words(stratum_by)), "orient": "bottom", "columns": 3}
    legend |= {"symbolType": "stroke", "symbolOpacity": 1}
    colour = coloured("s", dict(zip(names, colours, strict=True)), ordered=True, **legend)
    x = log_time([row["x"] for row in rows], "Run time (logarithmic)")
    share = alt.Scale(domain=[0, 1])
    base = chart_of("steps").encode(x=x, color=colour)
    axis = percent_axis("Without failure")
    return fitted(step_curves(base, share, axis, in_words(stratum_by), "without failure", study.units), study, 380)


def mttf_by(given: Mapping[str, pl.DataFrame], study: Study, stratum_by: str) -> Figure:
    what = f"Mean time to failure by {in_words(stratum_by)}"
    mttf = given["mttf"].filter(event="failure")
    mine = mttf.filter(pl.col("n") > 0, stratum_by=stratum_by)
    strata = _by_stratum(mine.filter(pl.col("ci_low_s") > 0))
    if not strata:
        return nothing_to_draw(what, f"no {study.unit} with a known {in_words(stratum_by)} has run for a known time")
    if one_for_all(mttf, stratum_by):
        return nothing_to_draw(what, f"all at risk have one {in_words(stratum_by)}")
    kept = {row["stratum"] for row in sorted(strata, key=lambda row: -row["n"])[:MOST_ROWS_OF_MTTF]}
    drawn = [row for row in strata if row["stratum"] in kept]
    names = labels([row["stratum"] for row in drawn])
    rows = [_row(row, names[row["stratum"]]) for row in drawn]
    overall = mttf.filter(pl.col("mttf_s").is_not_null(), stratum_by="all")["mttf_s"].head(1).to_list()
    n, failures = sum(row["n"] for row in drawn), sum(row["events"] for row in drawn)
    by = by_what(shown(mine.filter(pl.col("events") > 0), "_s"))
    caption = f"n = {plural(n, study.life)}, {plural(failures, 'failure')}. {by}"
    if any(row["events"] == 0 for row in drawn):
        caption += " Triangle: no failure, so a 95% lower bound only."
    if len(strata) > len(drawn):
        caption += f" The {MOST_ROWS_OF_MTTF} strata with the most at risk; {len(strata) - len(drawn):,} left out."
    if without := mine["stratum"].n_unique() - len(strata):
        caption += f" {plural(without, 'stratum')} without exposure left out."
    everything = mttf.filter(stratum_by="all")["n"].max() or 0
    if overall and (unknown := everything - mine.filter(confidence=0.95)["n"].sum()):
        caption += f" The whole trace includes {plural(unknown, study.life)} without a known {in_words(stratum_by)}."
    return figure(
        _mttf_rows(rows, overall, stratum_by),
        {"strata": rows} | ({"whole": [{"mean": overall[0] / HOUR_S}]} if overall else {}),
        study,
        title=what,
        subtitle="Time at risk per failure; thick: 90%, thin: 95% CI" + ("; dashed: all" if overall else ""),
        caption=caption,
        alt_text=f"{what}: points with intervals on a logarithmic axis in hours, {plural(len(drawn), 'stratum')}.",
    )


def _by_stratum(mine: pl.DataFrame) -> list[dict]:
    """One row a stratum with both intervals, in hours."""
    in_hours = [pl.col("low", "high") / HOUR_S, (pl.col("mttf_s") / HOUR_S).alias("mttf")]
    wide, narrow = (shown(mine.filter(confidence=of), "_s").with_columns(in_hours) for of in (0.95, 0.9))
    return wide.join(narrow, on="stratum", suffix="_90", maintain_order="left").to_dicts()


def _row(row: dict, name: str) -> dict:
    drawn = {"stratum": name, "note": plural(row["events"], "failure")}
    drawn |= picked(row, "n", failures="events", low95="low")
    if row["events"] == 0:
        return drawn
    return drawn | picked(row, "mttf", "independent", high95="high", low90="low_90", high90="high_90")


def _mttf_rows(rows: list[dict], overall: list[float], stratum_by: str) -> alt.LayerChart:
    """One row below the other, so that long names can be read."""
    ends = [row[name] for row in rows for name in ("low95", "high95") if name in row]
    domain = log_domain([*ends, *(mean / HOUR_S for mean in overall)], 1.5, 1.5)
    axis = log_axis(domain, "Mean time to failure (hours, logarithmic)")
    at = partial(alt.X, scale=log_scale(domain), axis=axis)
    stratum = alt.Y("stratum:N", sort=[row["stratum"] for row in rows], title=capital(in_words(stratum_by)))
    tooltip = [
        *tips("stratum"),
        *tips(form=",", n="lives"),
        *tips("failures", form=","),
        *tips(form=",.1f", mttf="mean time to failure (h)", low90="90% from (h)", high90="90% to (h)"),
        *tips(form=",.1f", low95="95% from (h)", high95="95% to (h)"),
    ]
    base = chart_of("strata").encode(tooltip=tooltip, y=stratum)
    layers = draw_estimates(base.transform_filter("isValid(datum.mttf)"), at, size=60, color=ACCENT)
    if any("mttf" not in row for row in rows):
        layers += draw_lower_bounds(base.transform_filter("!isValid(datum.mttf)"), at("low95:Q"), size=80)
    if overall:
        line = chart_of("whole").mark_rule(strokeDash=[4, 3], color=FAINT)
        layers.insert(0, line.encode(x=at("mean:Q"), tooltip=tips(form=",.1f", mean="whole trace (h)")))
    layers.append(side_notes(base, 448, 10.5))
    return alt.layer(*layers).properties(width=440, height=alt.Step(30 if len(rows) <= MOST_WIDE else 20))


class _Charts(dict):
    """A component trace has strata of its own: mttf_by_*."""

    def __missing__(self, name: str) -> Callable[[Mapping[str, pl.DataFrame], Study], Figure]:
        draw, _, stratum_by = name.partition("_by_")
        return partial({"survival": survival_by, "mttf": mttf_by}[draw], stratum_by=stratum_by)


CHARTS = _Charts(still_running=still_running)
