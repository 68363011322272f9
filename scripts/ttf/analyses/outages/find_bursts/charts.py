"""The share of outages with another near in the same place, by window, beside what chance would make of it."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_scale, percent_axis, time_axis
from ttf.display.charts.encodings import coloured, picked, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, fitted, nothing_to_draw
from ttf.display.charts.theme import CATEGORY_COLOURS
from ttf.engine.words import listed, plural

OBSERVED, CHANCE = "observed", "by chance"
WHAT = "Unplanned outages with another near in time"
NAMES = {"unit": "the same unit", "node": "node", "rack": "rack", "group": "group", "fleet": "fleet"}


def bursts(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    table = given["bursts"]
    found = table.drop_nulls("share").filter(pl.col("share").max().over("within") > 0)
    if not found.height:
        return nothing_to_draw(WHAT, table["reason"].drop_nulls().first() or "none is near another")
    limits = {"low": "ci_low_clustered", "high": "ci_high_clustered"}
    rows = [
        {"place": NAMES[row["within"]], "kind": kind}
        | picked(row, window="window_s", share=column)
        | (picked(row, **limits) if kind == OBSERVED else dict.fromkeys(limits))
        for kind, column in ((OBSERVED, "share"), (CHANCE, "chance"))
        for row in found.iter_rows(named=True)
    ]
    places = [NAMES[within] for within in found["within"].unique(maintain_order=True)]
    windows = sorted({row["window"] for row in rows})
    title, scale = "Window to either side", log_scale([windows[0], windows[-1]])
    x = alt.X("window:Q", title=title, scale=scale, axis=time_axis(title, [60, 3600, 86_400, 864_000]))
    colours = dict(zip(places, CATEGORY_COLOURS, strict=False))
    base = chart_of("bursts").encode(x=x, color=coloured("place", colours, title=None, orient="bottom"))
    dashes = alt.StrokeDash("kind:N", scale=alt.Scale(domain=[OBSERVED, CHANCE], range=[[1, 0], [4, 3]]), legend=None)
    y = alt.Y("share:Q", axis=percent_axis(), scale=alt.Scale(domain=[0, 1]))
    tooltip = [*tips("place", "kind"), *tips(form=",", window="window (s)"), *tips(form=".1%", share="share")]
    lines = base.mark_line(strokeWidth=1.8, point={"size": 16}).encode(y=y, strokeDash=dashes, tooltip=tooltip)
    ends = base.transform_filter("isValid(datum.low)").mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
    return figure(
        fitted(lines + ends, study, 260),
        {"bursts": rows},
        study,
        title=WHAT,
        subtitle="In the same place, 95% CI; dashed: times exchanged, shifted or jittered, the highest",
        caption=f"n = {plural(found['n'].max(), 'outage')}. Where chance gives all, a window says nothing.",
        alt_text=f"{WHAT}: a line by window for {listed(places)}, and a dashed one for chance.",
    )


CHARTS = {"bursts": bursts}
