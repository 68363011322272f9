"""Effective training time ratio of planned runs by size, and the failure rate that a run can bear."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_axis, log_domain, log_scale, percent_axis, time_axis
from ttf.display.charts.encodings import colour_by, pick_columns
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.theme import FAILURE, FAINT, INK, ORDER_COLOURS, SUCCESS, SUNKEN
from ttf.engine.size_unit import NODE
from ttf.engine.words import duration, number, plural, share
from ttf.records.inputs import Inputs
from ttf.stats.large_runs.plans import ESTIMATE, MEASURED, habits_from_assumptions, node_rate, rate_row

TITLE = "Effective training time ratio (ETTR) by job size"
SCHEDULED, WALL = "scheduled time only", "wall-clock time, with the queue"
COLOURS = {SCHEDULED: SUCCESS, WALL: FAILURE}
# Below this p the measured rate of a size differs significantly from the other sizes.
SIGNIFICANT = 0.05
# Below this ratio there is no room for text.
LOW_RATIO = 0.1
_TICKS_S = (60, 300, 900, 3600, 14_400, 57_600)
_WIDTH, _HEIGHT = 560, 270


def ettr_by_gpus(inputs: Inputs, study: Study) -> Figure:
    """Draw ETTR by size at the first checkpoint interval: of scheduled time and of wall-clock time.

    A line with a band from the bounds of the failure rate, if the rate of a node may be projected; else points for the
    sizes with a measured rate.
    """
    ettr, assumptions, rates = inputs["ettr"], inputs["ettr_assumptions"], inputs["node_failure_rate"]
    habit, rate = habits_from_assumptions(assumptions), rate_row(rates)
    target = assumptions.filter(assumption="size of the run")["amount"].item()
    plans = ettr.with_columns(inputs["ettr_outlook"]["scheduled_ettr"], size=pl.coalesce("gpus", "nodes"))
    plans = plans.drop_nulls("ettr_renewal").filter(checkpoint_interval_s=habit.interval_s)
    # A run on part of a node uses the whole node.
    plans = plans.filter(pl.col("size") >= (rate["node_gpus"] or 1))
    projected = plans.filter(rate=ESTIMATE[0]).height > 1
    rate_names = ESTIMATE if projected else MEASURED
    rows = _list_points(plans, rate_names)
    if len({row["size"] for row in rows}) < 2:
        reasons = ettr.filter(pl.col("ettr_renewal").is_null())["reason"]
        return empty_figure(TITLE, next(iter(reasons), None) or "one size only")
    unit = NODE if plans["gpus"].null_count() else study.size
    largest = rate["largest_run_nodes"] * (rate["node_gpus"] or 1)
    target_rows = [row for row in rows if row["size"] == target]
    texts = [_label_point(row, rate_names[0], target, unit, study, max(plans["size"])) for row in target_rows]
    measured = _measured_ratio(inputs, plans, target) if projected else None
    if measured is not None:
        label = f"{share(measured)} at its measured rate"
        text = {"size": target, "ratio": measured, "text": label, "series": WALL, "dy": -14, "align": "right"}
        texts.append(text | {"key": f"ettr.{MEASURED[0]}.ettr"})
    texts += _label_lines(rows, study) if projected else []
    shade = [{"low": largest, "high": max(plans["size"])}] if largest < max(plans["size"]) else []
    datasets = {"lines": rows, "target": target_rows, "texts": texts, "shade": shade}
    datasets["note"] = _shade_note(rows, largest) if shade else []
    habits = f"{duration(habit.productive_s)} of work, a checkpoint every {duration(habit.interval_s)}"
    band = "90% band" if projected else "rates measured by size, 90% CI"
    datasets["own"] = [] if measured is None else [{"size": target, "ratio": measured, "series": WALL}]
    return make_figure(
        fit_width(_draw_sizes(datasets, unit, projected), study, 230),
        datasets,
        study,
        title=TITLE.replace("job", "run") if plans["gpus"].null_count() else TITLE,
        subtitle=f"{habits}; {band}",
        caption=f"n = {plural(rate['failures'], 'failure')}",
        alt_text=f"Two lines of the effective training time ratio against the number of {unit}s: of scheduled time, "
        "and of wall-clock time with the queue.",
    )


def _list_points(plans: pl.DataFrame, rate_names: Sequence[str]) -> list[dict]:
    """Return a row for each size and line: the ETTR at the rate, and at the bounds of its interval as low and high."""
    rows = []
    for (size,), size_rows in plans.group_by("size", maintain_order=True):
        row_by_rate = {row["rate"]: row for row in size_rows.iter_rows(named=True)}
        for series, column in ((SCHEDULED, "scheduled_ettr"), (WALL, "ettr_renewal")):
            # The higher the failure rate, the lower the ratio.
            ratio, high, low = (row_by_rate.get(name, {}).get(column) for name in rate_names)
            if ratio is not None and series == WALL:
                low, high = (row_by_rate[rate_names[0]][f"ettr_ci_{bound}"] for bound in ("low", "high"))
            if ratio is not None:
                interval = {} if low is None or high is None else {"low": low, "high": high}
                rows.append({"size": size, "ratio": ratio, "series": series} | interval)
    return rows


def _measured_ratio(inputs: Inputs, plans: pl.DataFrame, target: float) -> float | None:
    """Return the ETTR at the measured rate of the target's size, if it differs significantly from other sizes."""
    rows = plans.filter(size=target, rate=MEASURED[0])
    bucket = inputs["mttf_by_gpus"].filter((pl.col("gpus_low") <= target) & (target <= pl.col("gpus_high")))
    differs = (bucket["p_clustered"].fill_null(1) < SIGNIFICANT).any() if "p_clustered" in bucket.columns else False
    return rows["ettr_renewal"].item() if differs and rows.height else None


def _label_point(row: Mapping, rate: str, target: float, unit: str, study: Study, largest: int) -> dict:
    """Return the label of a point of the target and its place. rate: name of its rate; largest: size on the axis."""
    is_scheduled = row["series"] == SCHEDULED
    text = share(row["ratio"]) + (f" at {plural(int(target), unit)}" if is_scheduled and not study.narrow else "")
    align, dy = "right" if target * 2 >= largest else "center", -12 if is_scheduled else 14
    if not is_scheduled and row["ratio"] < LOW_RATIO:
        align, dy = "beside", 0
    key = f"ettr.{rate}.{'scheduled_ettr' if is_scheduled else 'wall_clock_ettr'}"
    return pick_columns(row, "size", "ratio", "series") | {"text": text, "dy": dy, "align": align, "key": key}


def _label_lines(rows: list[dict], study: Study) -> list[dict]:
    """Return the name of each line: over its left end, or below it if the other line is near."""
    sizes = sorted({row["size"] for row in rows})
    upper, lower = ({row["size"]: row for row in rows if row["series"] == series} for series in COLOURS)
    # Sizes that a text at the left end covers.
    covered = [size for size in sizes if size <= sizes[0] * (sizes[-1] / sizes[0]) ** (0.5 if study.narrow else 0.4)]
    text = {"size": sizes[0], "align": "left"}
    labels = [text | {"ratio": upper[sizes[0]]["ratio"], "text": SCHEDULED, "series": SCHEDULED, "dy": -11}]
    is_apart = min(upper[size]["ratio"] for size in covered) - lower[sizes[0]]["ratio"] > 0.15
    lowest = min(lower[size].get("low", lower[size]["ratio"]) for size in covered)
    ratio = lower[sizes[0]]["ratio"] if is_apart else max(lowest, LOW_RATIO)
    wall_label = "with the queue" if study.narrow else WALL
    return [*labels, text | {"ratio": ratio, "text": wall_label, "series": WALL, "dy": -12 if is_apart else 14}]


def _shade_note(rows: list[dict], largest: int) -> list[dict]:
    """Return the note on the shaded sizes, at the largest gap between the lines."""
    shaded_rows = [row for row in rows if row["size"] >= largest]
    top, bottom = ([row["ratio"] for row in shaded_rows if row["series"] == series] or [0] for series in COLOURS)
    gaps = ((0, min(bottom)), (max(bottom), min(top)), (max(top), 1))
    gap, middle = max((high - low, (low + high) / 2) for low, high in gaps)
    note = "no job this large:\nprojection only"
    return [{"size": max(row["size"] for row in rows), "ratio": middle, "text": note}] if gap > 0.15 else []


def _draw_sizes(datasets: Mapping[str, list], unit: str, projected: bool) -> alt.LayerChart | alt.FacetChart:
    """Draw ETTR by run size: lines from the projected failure rate, else points from the rates measured by size."""
    sizes = sorted({row["size"] for row in datasets["lines"]})
    ticks = [size for size in sizes if size & (size - 1) == 0] or sizes
    axis = alt.Axis(values=ticks, format=",", title=f"{unit}s of the run", labelOverlap=True, grid=False)
    scale = alt.Scale(type="log", base=2, domain=[sizes[0], max(sizes[-1], 2 * sizes[0])], nice=False)
    x = alt.X("size:Q", scale=scale, axis=axis)
    y = alt.Y("ratio:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(values=[0, 0.25, 0.5, 0.75, 1]))
    # Lines are labelled directly, points by a legend.
    colour = colour_by("series", COLOURS, None if projected else alt.Legend(title=None, orient="top"))
    y_low = alt.Y("low:Q", scale=alt.Scale(domain=[0, 1]))
    layers = []
    if datasets["shade"]:
        shade = make_chart("shade").encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
        layers.append(shade.mark_rect(color=SUNKEN))
    lines = make_chart("lines").encode(x=x, color=colour)
    if projected:
        band = lines.mark_area(opacity=0.18).transform_filter("isValid(datum.low)")
        layers += [band.encode(y=y_low, y2="high:Q"), lines.mark_line(strokeWidth=2).encode(y=y)]
    else:
        rules = lines.mark_rule(strokeWidth=1.5).transform_filter("isValid(datum.low)")
        points = lines.mark_point(filled=True, size=60, opacity=1).encode(y=y)
        layers += [rules.encode(y=y_low, y2="high:Q"), points]
    marks: dict[str, dict[str, Any]] = {"own": {"filled": False, "size": 70, "strokeWidth": 2}}
    if projected:
        marks = {"target": {"filled": True, "size": 70, "opacity": 1}} | marks
    for name, mark in marks.items():
        if datasets[name]:
            layers.append(make_chart(name).mark_point(**mark).encode(x=x, y=y, color=colour))
    if datasets["note"]:
        note = make_chart("note").mark_text(align="right", dx=-4, color=FAINT, fontSize=12, lineBreak="\n")
        layers.append(note.encode(x=x, y=y, text="text:N"))
    for dy, align in sorted({(text["dy"], text["align"]) for text in datasets["texts"]}):
        is_position = f"datum.dy == {dy} && datum.align == '{align}'"
        # "beside": to the left of the point.
        side: Literal["left", "center", "right"] = "right" if align == "beside" else align
        dx = {"left": 6, "right": 8, "beside": -10}.get(align, 0)
        text = make_chart("texts").mark_text(align=side, dx=dx, dy=dy, fontSize=12, fontWeight="bold", color=INK)
        layers.append(text.transform_filter(is_position).encode(x=x, y=y, text="text:N"))
    return alt.layer(*layers)


def contour_chart(inputs: Inputs, study: Study) -> Figure:
    """Draw ettr_contour.csv for the size of the run: a line for each ETTR.

    Dashed: the rate of the trace, if it may be projected to that size.
    """
    contour, assumptions = inputs["ettr_contour"], inputs["ettr_assumptions"]
    rate, habit = node_rate(inputs["node_failure_rate"], inputs["mttf_by_gpus"]), habits_from_assumptions(assumptions)
    size = int(assumptions.filter(assumption="size of the run")["amount"].item())
    size_rows = contour.filter(pl.coalesce("gpus", "nodes") == size)
    solved = size_rows.drop_nulls("failures_per_1000_node_days")
    title = "Highest failure rate of a node that a run can bear"
    if not solved.height:
        return empty_figure(title, size_rows["reason"][0])
    unit = study.size if solved["gpus"].count() else NODE
    levels = solved["ettr"].unique().sort().to_list()
    names = [f"{level:.0%}" for level in levels]
    rows = [
        {"level": names[levels.index(row["ettr"])]}
        | pick_columns(row, interval="checkpoint_interval_s", rate="failures_per_1000_node_days")
        for row in solved.iter_rows(named=True)
    ]
    trace_rate = 1000 * rate.estimate if rate.estimate and not rate.why_not(solved["nodes"][0]) else None
    y_domain = log_domain([row["rate"] for row in rows] + ([trace_rate] if trace_rate else []), 1.5, 1.5)
    axis = time_axis("Work between two checkpoints", _TICKS_S, grid=False)
    x = alt.X("interval:Q", scale=log_scale([50, 75_000]), axis=axis)
    y_scale = log_scale(y_domain)
    y = alt.Y("rate:Q", scale=y_scale, axis=log_axis(y_domain, "Failures per 1,000 node-days"))
    colours = dict(zip(names, ORDER_COLOURS, strict=False))
    colour = colour_by("level", colours, alt.Legend(title="ETTR", orient="right"), ordered=True)
    layers = [make_chart("contours").mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)]
    datasets = {"contours": rows}
    trace_note = ""
    if trace_rate:
        datasets["own"] = [{"rate": trace_rate, "interval": habit.interval_s}]
        base = make_chart("own").encode(y=alt.Y("rate:Q", scale=y_scale))
        layers.append(base.mark_rule(color=FAINT, strokeDash=[5, 4]))
        layers.append(base.mark_point(filled=True, color=INK, size=60, opacity=1).encode(x=x))
        trace_note = f" Dashed: the rate of this trace, {number(trace_rate)}; dot: the planned checkpoint interval."
    return make_figure(
        alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT),
        datasets,
        study,
        title=title,
        subtitle=f"By wall-clock ETTR to keep and checkpoint interval, {plural(size, unit)}; exact renewal model",
        caption=f"From the model alone, without data of the trace.{trace_note}",
        alt_text=f"Contour lines over two logarithmic axes: {title.lower()}, of {plural(size, unit)}.",
    )


CHARTS = {"ettr_by_gpus": ettr_by_gpus, "ettr_contour": contour_chart}
