"""Failures with an outage of one of their nodes near, against what chance would give."""

import altair as alt
import polars as pl

from ttf.analyses.match_outages.compute import NEAR
from ttf.charts.axes import percent_axis
from ttf.charts.encodings import coloured
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.intervals import by_what, shown
from ttf.charts.text import count, duration
from ttf.charts.theme import FAINT, INFRA
from ttf.inputs import Inputs
from ttf.runs import PROXY

_FOUND, _CHANCE = "found", "by chance"


def outage_matches(given: Inputs, study: Study) -> Figure:
    what = "Failures near outages of their nodes"
    known = given["outage_matches"].filter(pl.col("n") > 0, measure=NEAR, kind="unplanned")
    if not known.height:
        return nothing_to_draw(what, "no failure is on a watched node")
    drawn, rows = shown(known), []
    for row in drawn.iter_rows(named=True):
        window = f"{duration(row['before_s'])} before to {duration(row['after_s'])} after"
        rows.append({"window": window, "which": _FOUND, "share": row["share"], "low": row["low"], "high": row["high"]})
        rows.append({"window": window, "which": _CHANCE, "share": row["expected"]})
    failures = "failures of any cause" if known["basis"][0] == PROXY else "infrastructure failures"
    base = chart_of("shares").encode(y=alt.Y("window:N", sort=None, title="Outage begins"))
    x = alt.X("share:Q", axis=percent_axis("Failures with such an outage"), scale=alt.Scale(domain=[0, 1]))
    colours = {_FOUND: INFRA, _CHANCE: FAINT}
    points = base.mark_point(filled=True, size=60).encode(
        x=x, color=coloured("which", colours, title=None, orient="bottom")
    )
    bars = base.mark_rule(color=INFRA).encode(x="low:Q", x2="high:Q")
    return figure(
        (bars + points).properties(width=420, height=alt.Step(28)),
        {"shares": rows},
        study,
        title=what,
        subtitle=f"Share of {failures} with an unplanned outage of one of their nodes near the end, 95% CI",
        caption=f"n = {count(known['n'][0], 'failure')}. By chance: each node's outages shifted by a random time. "
        f"{by_what(drawn)}",
        alt_text="Points with intervals: the share found and that by chance, for five windows of time.",
    )


CHARTS = {"outage_matches": outage_matches}
