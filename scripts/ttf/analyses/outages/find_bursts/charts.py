"""Share of outages with another one near at the same location, by window, and the share expected by chance."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_scale, percent_axis, time_axis
from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.theme import CATEGORY_COLOURS
from ttf.engine.words import join_list, plural

OBSERVED, CHANCE = "observed", "by chance"
WHAT = "Unplanned outages with another near in time"
NAMES = {"unit": "the same unit", "node": "node", "rack": "rack", "group": "group", "fleet": "fleet"}


def bursts(inputs: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Draw the share of outages with another one near, by window and location, and the share expected by chance."""
    table = inputs["bursts"]
    shown_rows = table.drop_nulls("share").filter(pl.col("share").max().over("location") > 0)
    if not shown_rows.height:
        return empty_figure(WHAT, next(iter(table["reason"].drop_nulls()), "none is near another"))
    limits = {"low": "ci_low_clustered", "high": "ci_high_clustered"}
    rows = [
        {"place": NAMES[row["location"]], "kind": kind}
        | pick_columns(row, window="window_s", share=column)
        | (pick_columns(row, **limits) if kind == OBSERVED else dict.fromkeys(limits))
        for kind, column in ((OBSERVED, "share"), (CHANCE, "chance"))
        for row in shown_rows.iter_rows(named=True)
    ]
    locations = [NAMES[location] for location in shown_rows["location"].unique(maintain_order=True)]
    windows = shown_rows["window_s"].unique().sort()
    x_title, scale = "Window to either side", log_scale([windows[0], windows[-1]])
    x = alt.X("window:Q", title=x_title, scale=scale, axis=time_axis(x_title, [60, 3600, 86_400, 864_000]))
    colours = dict(zip(locations, CATEGORY_COLOURS, strict=False))
    colour = colour_by("place", colours, alt.Legend(title=None, orient="bottom"))
    base = make_chart("bursts").encode(x=x, color=colour)
    dashes = alt.StrokeDash("kind:N", scale=alt.Scale(domain=[OBSERVED, CHANCE], range=[[1, 0], [4, 3]]), legend=None)
    y = alt.Y("share:Q", axis=percent_axis(), scale=alt.Scale(domain=[0, 1]))
    tooltip = [
        *tooltips("place", "kind"),
        *tooltips(form=",", window="window (s)"),
        *tooltips(form=".1%", share="share"),
    ]
    lines = base.mark_line(strokeWidth=1.8, point={"size": 16}).encode(y=y, strokeDash=dashes, tooltip=tooltip)
    intervals = base.transform_filter("isValid(datum.low)").mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
    return make_figure(
        fit_width(lines + intervals, study, 260),
        {"bursts": rows},
        study,
        title=WHAT,
        subtitle="At the same location, 95% CI; dashed: expected by chance",
        caption=f"n = {plural(max(shown_rows['n']), 'outage')}. Where chance gives all, a window says nothing.",
        alt_text=f"{WHAT}: a line by window for {join_list(locations)}, and a dashed one for chance.",
    )


CHARTS = {"bursts": bursts}
