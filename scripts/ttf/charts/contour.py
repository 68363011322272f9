"""Contours of the expected effective training time over checkpoint interval and failure rate of a node."""

import altair as alt
import polars as pl

from ttf.charts.figure import Figure, Study, chart_of, figure, log_domain, log_ticks, nothing_to_draw, time_axis
from ttf.charts.text import duration, percent, significant
from ttf.charts.theme import FAINT, INK, ORDER_COLOURS
from ttf.stats.plans import Habits, NodeRate

_TICKS_S = (60, 300, 900, 3600, 14_400, 57_600)
_WIDTH, _HEIGHT = 285, 270


def contour_chart(contour: pl.DataFrame, rate: NodeRate, habit: Habits, study: Study) -> Figure:
    """ettr_contour.csv as a line for each ratio, a panel for each size.

    Dashed: the rate of the trace, where it may be projected to that size.
    """
    what = "Failure rate that a run can bear"
    known = contour.filter(pl.col("failures_per_1000_node_days").is_not_null())
    if not known.height:
        return nothing_to_draw(what, contour["reason"][0])
    unit = "GPUs" if known["gpus"].count() else "nodes"
    known = known.with_columns(size=pl.coalesce("gpus", "nodes"))
    levels = known["ettr"].unique().sort().to_list()
    names = [percent(level) for level in levels]
    rows = [
        {
            "size": row["size"],
            "level": names[levels.index(row["ettr"])],
            "interval": row["checkpoint_interval_s"],
            "every": duration(row["checkpoint_interval_s"]),
            "rate": row["failures_per_1000_node_days"],
        }
        for row in known.iter_rows(named=True)
    ]
    reached = {row["size"] for row in known.iter_rows(named=True) if rate.estimate and not rate.why_not(row["nodes"])}
    own = 1000 * rate.estimate if reached else None
    every_rate = [row["rate"] for row in rows] + ([own] if own else [])
    y_domain, x_domain = log_domain(every_rate, 1.5, 1.5), [50, 75_000]
    x = alt.X(
        "interval:Q",
        scale=alt.Scale(type="log", domain=x_domain, nice=False),
        axis=time_axis("Work between checkpoints (logarithmic)", _TICKS_S),
    )
    y_scale = alt.Scale(type="log", domain=y_domain, nice=False)
    colour = alt.Color(
        "level:N",
        sort=names,
        scale=alt.Scale(domain=names, range=list(ORDER_COLOURS[: len(names)])),
        legend=alt.Legend(title="Effective training time", orient="bottom"),
    )
    panels = []
    for place, size in enumerate(known["size"].unique().sort()):
        title = "Failures per 1000 node-days (logarithmic)" if place == 0 else None
        y = alt.Y("rate:Q", scale=y_scale, axis=alt.Axis(values=log_ticks(y_domain), format=",.6~g", title=title))
        lines = (
            chart_of("contours")
            .transform_filter(f"datum.size == {int(size)}")
            .mark_line(strokeWidth=2)
            .encode(
                x=x,
                y=y,
                color=colour,
                tooltip=[
                    alt.Tooltip("level:N", title="effective training time"),
                    alt.Tooltip("every:N", title="a checkpoint every"),
                    alt.Tooltip("rate:Q", title="failures per 1000 node-days, at most", format=",.3~g"),
                ],
            )
        )
        layers = [lines]
        if size in reached:
            base = alt.Chart(alt.NamedData(name="own"))
            layers.append(base.mark_rule(color=FAINT, strokeDash=[5, 4]).encode(y=alt.Y("rate:Q", scale=y_scale)))
            layers.append(
                base.mark_point(filled=True, color=INK, size=60, opacity=1).encode(
                    x=x, y=alt.Y("rate:Q", scale=y_scale)
                )
            )
        panels.append(alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=f"{size:,} {unit}"))
    title = _title(known, unit)
    habits = (
        f"A write of {duration(habit.write_s)}, a start-up of {duration(habit.restart_s)}, a wait of "
        f"{duration(habit.queue_s)} at each start, {duration(habit.productive_s)} of work."
    )
    dashed = (
        f"Dashed: the failure rate of a node in this trace ({significant(own)} per 1000 node-days); dot: at the "
        "configured interval."
        if own
        else "This trace gives no rate for runs as large."
    )
    datasets = {"contours": rows} | ({"own": [{"rate": own, "interval": float(habit.interval_s)}]} if own else {})
    return figure(
        alt.hconcat(*panels, spacing=24),
        datasets,
        study,
        title=title,
        subtitle=f"Lines: the highest failure rate that leaves so much of the time for work. {dashed}",
        caption=f"Model alone, by its exact mean. {habits} {dashed} A line ends where writing takes too much time.",
        alt_text=f"Contour lines over two logarithmic axes in {len(panels)} panels. {title}.",
    )


def _title(known: pl.DataFrame, unit: str) -> str:
    """What the largest size may fail at for the middle of the ratios, at the interval that bears most."""
    largest = known.filter(pl.col("size") == pl.col("size").max())
    wanted = 0.9 if (largest["ettr"] == 0.9).any() else largest["ettr"].max()
    best = largest.filter(ettr=wanted).sort("failures_per_1000_node_days", "checkpoint_interval_s").row(-1, named=True)
    return (
        f"{percent(wanted)} effective time on {best['size']:,} {unit} needs a node to fail at most "
        f"{significant(best['failures_per_1000_node_days'])} times in 1000 days"
    )
