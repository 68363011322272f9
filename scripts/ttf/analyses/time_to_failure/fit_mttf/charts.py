"""Kaplan-Meier curves of the time without failure, and mean times to failure with exact intervals."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.time_to_failure.fit_mttf import AGES
from ttf.display.charts.axes import (
    log_axis,
    log_domain,
    log_scale,
    log_time_channel,
    log_time_position,
    percent_axis,
    time_axis,
    time_domain,
)
from ttf.display.charts.encodings import bold_labels, colour_by, pick_columns, side_notes, tooltips
from ttf.display.charts.figure import (
    Figure,
    Study,
    empty_figure,
    fit_width,
    has_single_stratum,
    make_chart,
    make_figure,
)
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_estimates, draw_lower_bounds
from ttf.display.charts.steps import CLUSTERED, choose_bands, step_curves, step_rows
from ttf.display.charts.text import HOUR_S, make_labels
from ttf.display.charts.theme import CATEGORY_COLOURS, FAILURE, FAINT, INK, ORDER_COLOURS
from ttf.engine.columns import GAP
from ttf.engine.words import capitalise, duration, join_list, plural, share, stratification_name
from ttf.stats.durations.survival import thin_curves

MOST_STRATA, MOST_EXCLUDED = 6, 8  # drawn; named in the caption
MOST_STEPS = 160  # of one curve: a step every four pixels
MOST_ROWS = 600  # of all curves together
# Number of steps at time limits that are labelled, the largest.
MOST_LIMITS = 3
# The time axis begins where this share has failed.
VISIBLE_SHARE = 0.01
# Units that are in service rather than running.
COMPONENTS = ("node", "GPU", "drive")
AFTER_REPAIR = "Without failure since a repair"
TOOLTIPS = 50  # of one curve
# With more rows than this the rows are narrower.
MOST_WIDE = 10
MOST_ROWS_OF_MTTF = 20


def still_running(inputs: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Draw survival over all units by age, with the curve of a constant rate, labelled steps and ages."""
    all_units = {"event": "failure", "stratum_by": "all"}
    curve = inputs["survival"].filter(pl.col("survival").is_not_null(), **all_units)
    status = "in service" if study.unit in COMPONENTS else "still running"
    title = AFTER_REPAIR if study.subject == GAP else f"{capitalise(study.units)} {status} without failure"
    mttf = inputs["mttf"].filter(confidence=0.95, **all_units)
    if withheld := mttf.drop_nulls("mttf_low_s")["reason"].to_list():
        return empty_figure(title, withheld[0])
    if not curve.height or not mttf["events"].sum():
        return empty_figure(title, f"no {study.unit} failed at a known time")
    n, events, mean = mttf.select("n", "events", "mttf_s").row(0)
    if mean is None:
        return empty_figure(title, f"every {study.unit} ended as it began")
    limits, _ = choose_bands(curve, study.durations)
    # Keep both ends of large steps exact.
    is_step = pl.col("time_s").is_in(inputs["survival_steps"]["time_s"].implode())
    thinned = thin_curves(curve, MOST_STEPS // 2 if study.narrow else MOST_STEPS)
    shown_curve = pl.concat([thinned, curve.filter(is_step | is_step.shift(-1))]).unique("time_s").sort("time_s")
    rows = _curve_rows(shown_curve, {"all": "all"}, limits)
    first_visible = curve.select(pl.col("time_s").filter(pl.col("survival") < 1 - VISIBLE_SHARE).min()).item()
    domain = time_domain([log_time_position(first_visible or 0), max(row["x"] for row in rows)])
    age_points = _age_points(inputs["survival_at"], mean, domain[0])
    line_label = _line_label(mean, domain[1], rows[-1]["v"])
    # Extend the axis so that labels to the right of their points fit.
    domain[1] = max([domain[1], *(_find_axis_end(point, domain[0], study) for point in age_points if point["above"])])
    low, high = (math.log(bound) for bound in domain)
    ages = (math.exp(low + (high - low) * step_index / 80) for step_index in range(81))
    constant = [{"x": x, "v": math.exp(-x / mean)} for x in ages]
    steps = inputs["survival_steps"].filter("is_limit").sort("drop", descending=True).head(MOST_LIMITS).sort("time_s")
    limit_points = [
        {"x": row["time_s"], "v": row["survival"] + row["drop"] / 2}
        | {"label": f"{duration(row['time_s'])} limit", "key": f"survival.limits.{rank}.time_s"}
        for rank, row in enumerate(steps.iter_rows(named=True), start=1)
    ]
    cluster_names = shown_curve["cluster_by"].drop_nulls().unique().sort().to_list() if limits is CLUSTERED else []
    band = f"95% CI clustered by {' or '.join(cluster_names)}" if cluster_names else "95% CI if independent"
    point_words = ", ".join(point["label"] for point in age_points)
    alt_text = f"{title}: a falling step curve on a logarithmic time axis, {point_words}; dashed, a constant rate with "
    return make_figure(
        fit_width(_draw_running_layers(domain, study), study, 270),
        {"steps": rows, "constant": constant, "spots": age_points, "limits": limit_points, "name": [line_label]},
        study,
        title=title,
        subtitle=f"Kaplan–Meier estimate, {band}; {study.durations} that ended otherwise are censored",
        caption=f"n = {plural(n, study.subject)}, {plural(events, 'failure')}",
        alt_text=f"{alt_text}a mean time to failure of {duration(mean)}.",
    )


def _age_points(age_rows: pl.DataFrame, mean: float, low: float) -> list[dict]:
    """Return the estimate at the last two ages of the curve; `above`: the label goes above the point."""
    survival = dict(age_rows.filter(pl.col("time_s") > low).select("time_s", "survival").iter_rows())
    shown_ages = [(name, age_s, age) for name, (age_s, age) in AGES.items() if age_s in survival]
    return [
        {"x": age_s, "v": survival[age_s], "label": f"{share(survival[age_s])} at {age}"}
        | {"above": survival[age_s] > math.exp(-age_s / mean), "key": f"survival.{name}.survival"}
        for name, age_s, age in shown_ages[-2:]
        if survival[age_s] < 1 - VISIBLE_SHARE / 20
    ]


def _find_axis_end(point: dict, low: float, study: Study) -> float:
    """Return where the time axis must end for the label of a point to fit to its right; low: where it begins."""
    share = (7 * len(point["label"]) + 10) / (study.width - 50)
    return low * (point["x"] / low) ** (1 / (1 - share))


def _line_label(mean: float, axis_end: float, last_survival: float) -> dict:
    """Place the label of the dashed line: left of the end of its decline and below both curves."""
    x = min(2 * mean, axis_end)
    v = math.exp(-x / mean)
    label_v = v if v < 0.2 else max(min(v, last_survival) - 0.1, 0)
    return {"x": x, "v": label_v, "label": f"constant rate, MTTF {duration(mean)}", "key": "mttf.mttf_s"}


def _draw_running_layers(domain: list[float], study: Study) -> alt.TopLevelMixin:
    time = "Time in service" if study.unit in COMPONENTS else "Run time"
    time = "Time up" if study.subject == GAP else time
    x = alt.X("x:Q", scale=log_scale(domain), axis=time_axis(f"{time} (logarithmic)", grid=False))
    y = alt.Y("v:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(values=[0, 0.25, 0.5, 0.75, 1]))
    curve, constant, points, limits, line_label = (
        make_chart(data).encode(x=x, y=y) for data in ("steps", "constant", "spots", "limits", "name")
    )
    band = make_chart("steps").transform_filter("isValid(datum.l) && isValid(datum.h)")
    band = band.mark_area(interpolate="step-after", opacity=0.18, color=FAILURE, line=False, clip=True)
    return alt.layer(
        band.encode(x=x, y=alt.Y("l:Q"), y2="h:Q"),
        constant.mark_line(strokeDash=[5, 4], strokeWidth=1.5, color=INK),
        curve.mark_line(interpolate="step-after", strokeWidth=2, color=FAILURE, clip=True),
        points.mark_point(filled=True, size=70, opacity=1, color=FAILURE),
        bold_labels(points.transform_filter("datum.above"), "left", -12, 7),
        bold_labels(points.transform_filter("!datum.above"), "right", 12, -7),
        limits.mark_text(align="right", dx=-6, fontSize=12, color=FAINT).encode(text="label:N"),
        line_label.mark_text(align="right", dx=-8, fontSize=12, color=FAINT).encode(text="label:N"),
    )


def survival_by_stratum(inputs: Mapping[str, pl.DataFrame], study: Study, stratum_by: str) -> Figure:
    """Draw survival by age for the strata with the most units."""
    curves = inputs["survival"].filter(pl.col("survival").is_not_null(), event="failure", stratum_by=stratum_by)
    summary = inputs["survival_summary"].filter(event="failure")
    stratum_words = stratification_name(stratum_by)
    title = f"{capitalise(study.units)} without failure by {stratum_words}"
    strata = summary.filter(pl.col("n") > 0, stratum_by=stratum_by)
    if not strata.height:
        return empty_figure(title, f"no {study.unit} has a known {stratum_words} and duration")
    if not curves.height:
        return empty_figure(title, strata["reason"][0])
    strata = strata.filter(pl.col("stratum").is_in(curves["stratum"].implode()))
    if has_single_stratum(summary, stratum_by):
        return empty_figure(title, f"all {study.units} have one {stratum_words}")
    if not strata["events"].sum():
        return empty_figure(title, f"no {study.unit} failed at a known time")
    shown_strata = strata.sort("n", descending=True, maintain_order=True).head(MOST_STRATA)["stratum"]
    is_shown = pl.col("stratum").is_in(shown_strata.implode())
    shown_summary = strata.filter(is_shown)
    names = make_labels(shown_summary["stratum"].to_list())
    if stratum_by == "gpu_count":
        names = {gpus: plural(int(gpus), study.size) for gpus in names}
    shown_curves = curves.filter(is_shown)
    labelled_rows = shown_summary.iter_rows(named=True)
    legend = {row["stratum"]: f"{names[row['stratum']]} (n = {row['n']:,})" for row in labelled_rows}
    limits, bands_note = choose_bands(shown_curves, study.units)
    rows = _curve_rows(thin_curves(shown_curves, min(MOST_STEPS, MOST_ROWS // shown_summary.height)), legend, limits)
    n, failures = shown_summary["n"].sum(), shown_summary["events"].sum()
    caption = f"n = {plural(n, study.unit)}, {plural(failures, 'failure')}. {bands_note}"
    if (excluded := strata.filter(~is_shown)).height:
        caption += (
            f" Shown: the {MOST_STRATA} largest strata. Left out: {plural(excluded.height, 'stratum')} with "
            f"{plural(excluded['n'].sum(), study.unit)} "
            f"({_format_excluded(stratum_by, excluded['stratum'].to_list())})."
        )
    return make_figure(
        _draw_curves(rows, list(legend.values()), stratum_by, study),
        {"steps": rows},
        study,
        title=title,
        subtitle=f"Kaplan–Meier estimate with 95% CI; {study.units} that ended otherwise are censored",
        caption=caption,
        alt_text=f"{title}: {plural(shown_summary.height, 'falling step curve')} on a logarithmic time axis.",
    )


def _format_excluded(stratum_by: str, strata: Sequence[str]) -> str:
    names = [f"{int(s):,}" for s in strata] if stratum_by == "gpu_count" else list(make_labels(strata).values())
    unit = " GPUs" if stratum_by == "gpu_count" else ""
    if len(names) <= MOST_EXCLUDED:
        return join_list(names) + unit
    return f"{', '.join(names[:MOST_EXCLUDED])}{unit} and {len(names) - MOST_EXCLUDED:,} more"


def _curve_rows(curve: pl.DataFrame, legend: dict[str, str], limits: Mapping[str, str]) -> list[dict]:
    """Return chart rows of the curves, which start at 1; legend: label by stratum; limits: see `choose_bands`."""
    rows = []
    for (stratum,), stratum_curve in curve.group_by("stratum", maintain_order=True):
        if stratum_curve["survival"][0] < 1:
            # Start at 1 at 0 s, so that failures at 0 s are visible.
            rows.append({"s": legend[stratum], "x": log_time_position(0), "v": 1})
        rows += step_rows(stratum_curve, legend[stratum], "survival", 1, TOOLTIPS, limits)
    return rows


def _draw_curves(rows: list[dict], names: list[str], stratum_by: str, study: Study) -> alt.TopLevelMixin:
    palette = ORDER_COLOURS if stratum_by == "gpu_count" else CATEGORY_COLOURS
    # Spread few strata over the ordered palette, so that neighbours are distinguishable.
    step = (len(palette) - 1) / max(1, len(names) - 1) if stratum_by == "gpu_count" else 1
    colours = [palette[round(index * step)] for index in range(len(names))]
    title = capitalise(stratification_name(stratum_by))
    legend = alt.Legend(title=title, orient="bottom", columns=3, symbolType="stroke", symbolOpacity=1)
    colour = colour_by("s", dict(zip(names, colours, strict=True)), legend, ordered=True)
    x = log_time_channel([row["x"] for row in rows], "Run time (logarithmic)")
    base = make_chart("steps").encode(x=x, color=colour)
    scale, axis, curve = alt.Scale(domain=[0, 1]), percent_axis("Without failure"), stratification_name(stratum_by)
    return fit_width(step_curves(base, scale, axis, curve, "without failure", study.units), study, 380)


def mttf_by_stratum(inputs: Mapping[str, pl.DataFrame], study: Study, stratum_by: str) -> Figure:
    level = stratification_name(stratum_by)
    title, mttf = f"Mean time to failure by {level}", inputs["mttf"].filter(event="failure")
    stratum_mttf = mttf.filter(pl.col("n") > 0, stratum_by=stratum_by)
    strata = _stratum_rows_in_hours(stratum_mttf.filter(pl.col("ci_low_s") > 0))
    if not strata:
        return empty_figure(title, f"no {study.unit} with a known {level} has run for a known time")
    if has_single_stratum(mttf, stratum_by):
        return empty_figure(title, f"all at risk have one {level}")
    shown_strata = {row["stratum"] for row in sorted(strata, key=lambda row: -row["n"])[:MOST_ROWS_OF_MTTF]}
    shown_rows = [row for row in strata if row["stratum"] in shown_strata]
    names = make_labels([row["stratum"] for row in shown_rows])
    rows = [_stratum_chart_row(row, names[row["stratum"]]) for row in shown_rows]
    overall = mttf.filter(pl.col("mttf_s").is_not_null(), stratum_by="all")["mttf_s"].head(1).to_list()
    n, failures = sum(row["n"] for row in shown_rows), sum(row["events"] for row in shown_rows)
    note = clustering_note(add_bounds(stratum_mttf.filter(pl.col("events") > 0), "_s"))
    caption = f"n = {plural(n, study.subject)}, {plural(failures, 'failure')}. {note}"
    if any(row["events"] == 0 for row in shown_rows):
        caption += " Triangle: no failure, so a 95% lower bound only."
    if len(strata) > len(shown_rows):
        caption += f" The {MOST_ROWS_OF_MTTF} strata with the most at risk; {len(strata) - len(shown_rows):,} left out."
    if n_without := stratum_mttf["stratum"].n_unique() - len(strata):
        caption += f" {plural(n_without, 'stratum')} without exposure left out."
    n_all = mttf.filter(stratum_by="all").select(pl.col("n").max()).item() or 0
    if overall and (unknown := n_all - stratum_mttf.filter(confidence=0.95)["n"].sum()):
        caption += f" The whole trace includes {plural(unknown, study.subject)} without a known {level}."
    return make_figure(
        _draw_mttf_rows(rows, overall, stratum_by),
        {"strata": rows} | ({"whole": [{"mean": overall[0] / HOUR_S}]} if overall else {}),
        study,
        title=title,
        subtitle="Time at risk per failure; thick: 90%, thin: 95% CI" + ("; dashed: all" if overall else ""),
        caption=caption,
        alt_text=f"{title}: points with intervals on a logarithmic axis in hours, {plural(len(rows), 'stratum')}.",
    )


def _stratum_rows_in_hours(mttf: pl.DataFrame) -> list[dict]:
    """Return a row per stratum with its mean time to failure and 95% bounds in hours, and 90% ones (_90)."""
    hour_columns = [pl.col("low", "high") / HOUR_S, (pl.col("mttf_s") / HOUR_S).alias("mttf")]
    wide, narrow = (add_bounds(mttf.filter(confidence=level), "_s").with_columns(hour_columns) for level in (0.95, 0.9))
    return wide.join(narrow, on="stratum", suffix="_90", maintain_order="left").to_dicts()


def _stratum_chart_row(row: dict, label: str) -> dict:
    cells = {"stratum": label, "note": plural(row["events"], "failure")}
    cells |= pick_columns(row, "n", failures="events", low95="low")
    if row["events"] == 0:
        return cells
    return cells | pick_columns(row, "mttf", "independent", high95="high", low90="low_90", high90="high_90")


def _draw_mttf_rows(rows: list[dict], overall: list[float], stratum_by: str) -> alt.TopLevelMixin:
    limits = [row[name] for row in rows for name in ("low95", "high95") if name in row]
    domain = log_domain([*limits, *(mean / HOUR_S for mean in overall)], 1.5, 1.5)
    axis = log_axis(domain, "Mean time to failure (hours, logarithmic)")
    x_axis = partial(alt.X, scale=log_scale(domain), axis=axis)
    order, title = [row["stratum"] for row in rows], capitalise(stratification_name(stratum_by))
    tooltip = [
        *tooltips("stratum"),
        *tooltips(form=",", n="durations"),
        *tooltips("failures", form=","),
        *tooltips(form=",.1f", mttf="mean time to failure (h)", low90="90% from (h)", high90="90% to (h)"),
        *tooltips(form=",.1f", low95="95% from (h)", high95="95% to (h)"),
    ]
    base = make_chart("strata").encode(tooltip=tooltip, y=alt.Y("stratum:N", sort=order, title=title))
    layers = draw_estimates(base.transform_filter("isValid(datum.mttf)"), x_axis)
    if any("mttf" not in row for row in rows):
        layers += draw_lower_bounds(base.transform_filter("!isValid(datum.mttf)"), x_axis("low95:Q"))
    if overall:
        line = make_chart("whole").mark_rule(strokeDash=[4, 3], color=FAINT)
        layers.insert(0, line.encode(x=x_axis("mean:Q"), tooltip=tooltips(form=",.1f", mean="whole trace (h)")))
    layers.append(side_notes(base, 448, 10.5))
    return alt.layer(*layers).properties(width=440, height=alt.Step(30 if len(rows) <= MOST_WIDE else 20))


class _Charts(dict):
    """Chart functions by name; a component trace has its own strata: mttf_by_*."""

    def __missing__(self, name: str) -> Callable[[Mapping[str, pl.DataFrame], Study], Figure]:
        draw, _, stratum_by = name.partition("_by_")
        return partial({"survival": survival_by_stratum, "mttf": mttf_by_stratum}[draw], stratum_by=stratum_by)


CHARTS = _Charts(still_running=still_running)
