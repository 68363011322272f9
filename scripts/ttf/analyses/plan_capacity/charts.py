"""The spares that keep a run from ever being short, by its size and the way to reckon."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.charts.axes import log_axis, log_domain, log_scale
from ttf.charts.encodings import coloured, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, fitted, nothing_to_draw
from ttf.charts.text import percent
from ttf.charts.theme import CANCELLED, FAILURE, SUCCESS

NAMES = {"exponential": "exponential", "observed": "observed times", "weeks": "weeks resampled"}
COLOURS = dict(zip(NAMES.values(), (CANCELLED, SUCCESS, FAILURE), strict=True))
WHAT = "Spare nodes for a run that is never short"


def spares_needed(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    table = given["spares_needed"]
    found = table.filter(pl.col("hours") == pl.col("hours").max(), pl.col("target") == pl.col("target").max())
    found = found.drop_nulls("spares")
    if found["nodes"].n_unique() < 2:
        return nothing_to_draw(WHAT, table["reason"].drop_nulls().first() or "one size is no line")
    rows = [
        {"way": NAMES[way], "nodes": nodes, "spares": spares}
        for way, nodes, spares in found.select("way", "nodes", "spares").iter_rows()
    ]
    domain = log_domain(found["nodes"].to_list(), 1, 1)
    chart = (
        chart_of("runs")
        .mark_line(strokeWidth=2, point={"size": 24})
        .encode(
            x=alt.X("nodes:Q", scale=log_scale(domain), axis=log_axis(domain, "Nodes of the run", grid=False)),
            y=alt.Y("spares:Q", title="Spare nodes", axis=alt.Axis(tickMinStep=1)),
            color=coloured("way", COLOURS, title=None, orient="bottom"),
            tooltip=[*tips("way"), *tips("nodes", "spares", form=",")],
        )
    )
    days, target = found["hours"][0] // 24, percent(found["target"][0])
    return figure(
        fitted(chart, study, 220),
        {"runs": rows},
        study,
        title=f"{WHAT} in {days} days",
        subtitle=f"Fewest spares with which {target} of the runs are never short",
        caption="Planned outages count too.",
        alt_text=f"{WHAT}: a line over sizes of runs for each way to reckon.",
    )


CHARTS = {"spares_needed": spares_needed}
