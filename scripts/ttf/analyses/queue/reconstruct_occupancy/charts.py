"""Charts of GPUs in use over time and of inferred reasons of waiting."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import LONGEST_PLAIN_WAIT_S
from ttf.analyses.queue.reconstruct_occupancy.occupancy import NOTHING_HELD
from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by, pick_columns
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.text import DAY_S, HOUR_S
from ttf.display.charts.theme import CANCELLED, FAILURE, FAINT, SUCCESS, THIRD
from ttf.engine.words import duration, plural
from ttf.records.inputs import Inputs

CAUSES = {"full": "too few GPUs were free", "fragmentation": "enough were free, but scattered"}
_UNRECOGNISED = "enough were free: other reasons"
_WIDTH = 560
# Shorter traces are drawn step by step.
FEWEST_DAYS = 10
# 1990: earlier times count from an origin of the trace's own, as in PAI, as there were no GPUs.
EARLIEST_S = 631_152_000


def gpus_in_use(inputs: Inputs, study: Study) -> Figure:
    """Draw the share of GPUs in use: mean of each day, or of each step if the trace is short or very long."""
    table = inputs["load_over_time"]
    if table.height < 2:
        reason = "all of it lies within one step" if table.height else NOTHING_HELD
        return empty_figure("GPUs in use over time", reason)
    first_s, end_s = table["start_s"][0], table["start_s"][-1] + table["time_s"][-1]
    step, by_day = table.select(pl.col("time_s").max()).item(), end_s - first_s >= FEWEST_DAYS * DAY_S
    is_dated = inputs.settings.clock is not None and first_s >= EARLIEST_S
    origin = 0 if is_dated else first_s
    if by_day and step < DAY_S:
        used, day = pl.col("gpus_in_use_mean") * pl.col("time_s"), (pl.col("start_s") - origin) // DAY_S
        table = table.group_by(day.alias("day"), maintain_order=True).agg(
            pl.col("start_s", "gpus").first(), pl.col("time_s").sum(), gpus_in_use_share=used.sum()
        )
        table = table.with_columns(pl.col("gpus_in_use_share") / pl.col("gpus") / pl.col("time_s"))
    unit_s, unit = (DAY_S, "Days") if by_day else (HOUR_S, "Hours")
    middle = pl.col("start_s") + pl.col("time_s") / 2
    if is_dated:
        # Vega counts milliseconds since 1970.
        x_value = middle * 1000
        time_format, ticks = "%-d %b" if by_day else "%-d %b %H:%M", 3 if study.narrow else 6
        axis = alt.Axis(title=None, format=time_format, tickCount=ticks, grid=False)
        x = alt.X("at:T", scale=alt.Scale(type="utc", nice=False), axis=axis)
    else:
        x_value = (middle - first_s) / unit_s
        axis = alt.Axis(title=f"{unit} since the first GPU was held", grid=False)
        x = alt.X("at:Q", scale=alt.Scale(nice=False), axis=axis)
    rows = table.select(at=x_value, share="gpus_in_use_share").to_dicts()
    y = alt.Y("share:Q", axis=percent_axis(values=[0, 0.25, 0.5, 0.75, 1]), scale=alt.Scale(domain=[0, 1]))
    area = make_chart("load").mark_area(color=SUCCESS, opacity=0.16).encode(x=x, y=y)
    line = make_chart("load").mark_line(color=SUCCESS, strokeWidth=1.8).encode(x=x, y=y)
    is_daily = by_day and step <= DAY_S
    gpus, steps = plural(table["gpus"][0], "GPU"), "" if is_daily else f", steps of {duration(step)}"
    return make_figure(
        fit_width(area + line, study, 190),
        {"load": rows},
        study,
        title="GPUs in use by day" if is_daily else "GPUs in use over time",
        subtitle=f"Mean share of {gpus}{steps}; reconstructed from placements",
        caption=f"n = {plural(inputs['occupancy_basis']['placements'][0], 'placement')}",
        alt_text=f"An area over time: the mean share of {gpus} in use.",
    )


def delay_causes(inputs: Inputs, study: Study) -> Figure:
    """Draw inferred reasons of waiting by GPUs of the job."""
    table, title = inputs["delay_causes"], f"Inferred reasons of waiting by {study.unit} size"
    classified = table.filter(pl.col("cause").is_not_null())
    if not classified.height:
        reason = table["reason"].drop_nulls()
        return empty_figure(title, reason[0] if reason.len() else "nothing waited")
    classified = classified.with_columns(state=pl.col("cause").replace_strict(CAUSES, default=_UNRECOGNISED))
    classified = classified.group_by("group", "state", "started", "n", maintain_order=True).agg(pl.col("jobs").sum())
    by_size, overall = (classified.filter((pl.col("group") == "all") == is_all) for is_all in (False, True))
    colours = dict(zip((*CAUSES.values(), _UNRECOGNISED), (FAILURE, THIRD, CANCELLED), strict=True))
    rows = [
        pick_columns(row, "group", "state") | {"share": row["jobs"] / row["n"], "note": f"n = {row['n']:,}"}
        for row in by_size.iter_rows(named=True)
    ]
    return make_figure(
        *_draw_stacked_bars(rows, "group", f"GPUs of the {study.unit}", f"Share of {study.units} that waited", colours),
        study,
        title=title,
        subtitle=f"From the GPUs free when a wait over {LONGEST_PLAIN_WAIT_S} s began",
        caption=f"n = {plural(overall['n'][0], study.unit)} that waited, of {overall['started'][0]:,} that started. "
        "The scheduler's own reasons are not recorded.",
        alt_text=f"Stacked bars of inferred reasons of waiting by {study.unit} size.",
    )


def _draw_stacked_bars(
    rows: list[dict], column: str, title: str, axis_title: str, colours: Mapping[str, str]
) -> tuple[alt.LayerChart, dict[str, list[dict]]]:
    """Return stacked bars of the share of each state, in the order of the colours, and their rows."""
    rows = [row | {"place": list(colours).index(row["state"])} for row in rows]
    order = list(dict.fromkeys(row[column] for row in rows))
    base = make_chart("shares").encode(y=alt.Y(f"{column}:N", title=title, sort=order))
    bars = base.mark_bar(height=16).encode(
        x=alt.X("share:Q", stack="zero", axis=percent_axis(axis_title, tickCount=5), scale=alt.Scale(domain=[0, 1])),
        color=colour_by("state", colours, alt.Legend(title=None, orient="top", columns=4, labelLimit=300)),
        order=alt.Order("place:Q"),
    )
    notes = base.mark_text(align="left", fontSize=10, baseline="middle", color=FAINT).encode(
        x=alt.value(_WIDTH - 52), text=alt.Text("note:N", aggregate="min")
    )
    return (bars + notes).properties(width=_WIDTH - 60, height=alt.Step(24)), {"shares": rows}


CHARTS = {"gpus_in_use": gpus_in_use, "delay_causes": delay_causes}
