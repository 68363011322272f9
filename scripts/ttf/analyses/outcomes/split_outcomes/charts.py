"""Charts of outcomes: shares of jobs and GPU time, failure rate by size, run times."""

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_time_channel, log_time_position, percent_axis
from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, draw_intervals
from ttf.display.charts.theme import (
    CANCELLED,
    FAILURE,
    FAINT,
    INK,
    ON_DARK_BAR,
    ON_LIGHT,
    OPEN,
    OPEN_LINE,
    OUTCOME_COLOURS,
    SUCCESS,
    THIRD,
)
from ttf.display.metrics import FEWEST_ENDED
from ttf.engine import words
from ttf.engine.words import capitalise, clustering_words, gpus_label, join_list, plural
from ttf.records.inputs import Inputs
from ttf.records.jobs import OUTCOMES

_OPEN = "running or waiting"
_NAMES = {"unknown": "no result recorded", "running": _OPEN, "waiting": _OPEN}
_FILLS = {
    "success": (SUCCESS, ON_LIGHT),
    "failure": (FAILURE, ON_DARK_BAR),
    "cancelled": (CANCELLED, ON_LIGHT),
    "no result recorded": (THIRD, ON_LIGHT),
    _OPEN: (OPEN, INK),
}


# Line colours: open jobs need one that is visible.
_CURVES = OUTCOME_COLOURS | {"running": OPEN_LINE, "cancelled": INK}


def jobs_and_gpu_time(inputs: Inputs, study: Study) -> Figure:
    """Draw a bar of the jobs and one of their GPU time, each divided by outcome."""
    title = f"{capitalise(study.units)} and GPU time by outcome"
    outcomes = inputs["outcomes"].with_columns(pl.col("outcome").replace(_NAMES))
    outcomes = outcomes.group_by("outcome", maintain_order=True).agg(pl.col("jobs", "gpu_hours").sum())
    total, hours = outcomes["jobs"].sum(), outcomes["gpu_hours"].sum()
    if not total:
        return empty_figure(title, f"the trace has no {study.unit}")
    bars = {capitalise(study.units): "jobs"} | ({study.size.worded("GPU time"): "gpu_hours"} if hours else {})
    present = [name for name in _FILLS if name in set(outcomes.filter(pl.col("jobs") > 0)["outcome"])]
    # Smallest share whose label fits in its part of the bar.
    label_min_share = 0.13 if study.narrow else 0.06
    rows, descriptions = [], []
    for bar, column in bars.items():
        start, column_total, parts = 0.0, outcomes[column].sum(), dict(outcomes.select("outcome", column).iter_rows())
        for name in present:
            share = parts[name] / column_total
            label = words.share(share) if share >= label_min_share else ""
            rows.append({"bar": bar, "outcome": name, "from": start, "to": start + share, "label": label})
            if label and name in OUTCOMES:
                rows[-1]["key"] = f"outcomes.{name}.{column}_share"
            start += share
        shares = {name: parts[name] / column_total for name in present if parts[name]}
        descriptions.append(f"{bar}: {join_list([f'{name} {words.share(share)}' for name, share in shares.items()])}.")
    bar_axis = alt.Axis(domain=False, ticks=False, labelPadding=8, labelFontWeight="bold", labelColor=INK)
    base = make_chart("parts").encode(
        x=alt.X("from:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=None),
        x2="to:Q",
        y=alt.Y("bar:N", sort=list(bars), title=None, axis=bar_axis),
    )
    legend = alt.Legend(
        title=None,
        orient="bottom",
        symbolType="square",
        symbolStrokeWidth=1,
        labelFontSize=12,
        columns=2 if study.narrow else alt.Undefined,
    )
    strokes = [OPEN_LINE if name == _OPEN else _FILLS[name][0] for name in present]
    fills, inks = ({name: _FILLS[name][part] for name in present} for part in (0, 1))
    scale = alt.Scale(domain=present, range=list(fills.values()))
    blocks = base.mark_bar(height=34, strokeWidth=1, x2Offset=-1.5, cornerRadius=1).encode(
        fill=alt.Fill("outcome:N", scale=scale, legend=legend),
        stroke=alt.Stroke("outcome:N", scale=alt.Scale(domain=present, range=strokes)),
    )
    texts = base.mark_text(align="left", dx=8, fontSize=12, fontWeight="bold")
    texts = texts.encode(text="label:N", color=colour_by("outcome", inks))
    return make_figure(
        fit_width(alt.layer(blocks, texts).resolve_scale(color="independent"), study, 44 * len(bars) + 40),
        {"parts": rows},
        study,
        title=title if hours else f"{capitalise(study.units)} by outcome",
        subtitle=f"Share of {study.units}{' and of their GPU-hours' if hours else ''}",
        caption=f"n = {plural(total, study.unit)}",
        alt_text=f"Bars divided by outcome. {' '.join(descriptions)}",
    )


def failure_rate_by_gpus(inputs: Inputs, study: Study) -> Figure:
    """Draw the share of ended jobs that failed, with its interval, by GPUs requested; a line marks all jobs."""
    title = "Failure rate by GPUs requested"
    sizes = add_bounds(inputs["outcomes_by_gpus"].filter((pl.col("ended") >= FEWEST_ENDED) & (pl.col("gpus_high") > 0)))
    if sizes.height < 2:
        return empty_figure(title, f"fewer than two sizes have {FEWEST_ENDED} ended {study.units}")
    ended = dict(inputs["outcomes"].select("outcome", "jobs").iter_rows())
    share = ended["failure"] / (ended["success"] + ended["failure"])
    rows = [
        {
            "gpus": gpus_label(row["gpus_low"], row["gpus_high"]),
            "label": words.share(row["failure_share"]),
            "all": share,
        }
        | pick_columns(row, "failure_share", "low", "high", "independent", "ended")
        for row in sizes.iter_rows(named=True)
    ]
    # On a phone, many sizes overlap: the axis then names every second one.
    labels = alt.Axis(title="GPUs requested", labelAngle=0, labelOverlap="greedy", labelSeparation=6, ticks=False)
    x = alt.X("gpus:N", sort=[row["gpus"] for row in rows], axis=labels, scale=alt.Scale(padding=0.6))
    limit = min(1, 1.12 * max(share, sizes["high"].max()))
    y = alt.Y("low:Q", scale=alt.Scale(domain=[0, limit]), axis=percent_axis(tickCount=4))
    base = make_chart("sizes").encode(x=x)
    rules = draw_intervals(base, y, color=FAILURE, strokeWidth=2)
    points = base.mark_point(color=FAILURE, filled=True, size=60, opacity=1).encode(y="failure_share:Q")
    overall_line = make_chart("all").mark_rule(color=FAINT, strokeDash=[4, 3]).encode(y="share:Q")
    # Placed right of the plot, where there are no points.
    note = make_chart("all").mark_text(align="left", dx=6, fontSize=12, color=INK, lineBreak="\n", baseline="middle")
    layers = [overall_line, note.encode(x=alt.value("width"), y="share:Q", text="label:N"), rules, points]
    if not study.narrow:
        # Keep labels off the line of all jobs.
        label_offset = alt.ExprRef("datum.failure_share < datum.all ? 8 : -8")
        texts = base.encode(y="failure_share:Q", text="label:N")
        layers.append(texts.mark_text(align="left", dx=7, dy=label_offset, fontSize=12, color=INK))
    n = plural(sizes["ended"].sum(), f"ended {study.unit}")
    overall = {"share": share, "label": f"all\n{words.share(share)}", "key": "outcomes.failure_share"}
    return make_figure(
        fit_width(alt.layer(*layers), study, 200),
        {"sizes": rows, "all": [overall]},
        study,
        title=title,
        subtitle=f"Share of ended {study.units} that failed, {describe_interval(sizes, study.units)}",
        caption=f"n = {n}, ≥ {FEWEST_ENDED} a size",
        alt_text="Points with intervals by GPUs. "
        + join_list([f"{row['gpus']}: {row['label']}" for row in rows])
        + f"; all {study.units} {words.share(share)}.",
    )


def describe_interval(sizes: pl.DataFrame, units: str) -> str:
    """Describe the kind of intervals in a few words."""
    cluster_names = sizes.filter(~pl.col("independent"))["cluster_by"].unique().sort().to_list()
    if not cluster_names:
        return f"95% CI if {units} fail independently"
    dashed = "; dashed: if independent" if sizes["independent"].any() else ""
    return f"95% CI clustered by {clustering_words(cluster_names)}{dashed}"


def runtime_distribution(inputs: Inputs, study: Study) -> Figure:
    """Draw the cumulative distribution of run time for each outcome."""
    quantiles, outcomes = inputs["runtime_quantiles"], inputs["outcomes"]
    if not quantiles.height:
        return empty_figure("Run times by outcome", f"no {study.unit} has a known run time")
    # Of equal run times keep the highest share, and the first row, where the curve starts; rows between them only
    # repeat its vertical line.
    step = pl.struct("outcome", "runtime_s")
    steps = quantiles.filter((pl.col("share") == 0) | (step != step.shift(-1)).fill_null(True))
    steps = steps.with_columns(pl.col("runtime_s").cast(pl.Float64))
    rows = [row | {"x": log_time_position(row["runtime_s"])} for row in steps.iter_rows(named=True)]
    colours = {name: colour for name, colour in _CURVES.items() if name in set(quantiles["outcome"])}
    axis = percent_axis(f"Share of {study.units} of the outcome")
    base = make_chart("quantiles").encode(
        x=log_time_channel([row["x"] for row in rows], "Run time (logarithmic)"),
        y=alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis),
        color=colour_by("outcome", colours, alt.Legend(title=None, orient="bottom", symbolType="stroke")),
    )
    tooltip = [*tooltips("outcome"), *tooltips(form=",", runtime_s="run time (s)")]
    tooltip += [*tooltips(form=".1%", share="share with at most this run time"), *tooltips(form=",", n="n")]
    lines = base.mark_line(interpolate="step-after", strokeWidth=2)
    points = base.mark_point(opacity=0, size=50).encode(tooltip=tooltip)
    n = dict(quantiles.select("outcome", "n").unique(maintain_order=True).iter_rows())
    totals = dict(outcomes.select("outcome", "jobs").iter_rows())
    suffixes = {name: "" if n[name] == totals.get(name, n[name]) else f" of {totals[name]:,}" for name in colours}
    caption = f"n = {join_list([f'{n[name]:,}{suffixes[name]} {name}' for name in colours])}. 0 s is drawn at 1 s."
    if "running" in colours:
        caption += f" A running {study.unit} counts with the time so far."
    return make_figure(
        fit_width(lines + points, study, 300),
        {"quantiles": rows},
        study,
        title="Run time by outcome",
        subtitle=f"Share of {study.units} of each outcome with at most this run time",
        caption=caption,
        alt_text=f"Cumulative curves of run time on a logarithmic axis, {join_list(list(colours))}.",
    )


CHARTS = {
    "jobs_and_gpu_time": jobs_and_gpu_time,
    "failure_rate_by_gpus": failure_rate_by_gpus,
    "runtime_distribution": runtime_distribution,
}
