"""The nodes next to be drained: their shrunken rate ratios."""

import altair as alt
import polars as pl

from ttf.charts.encodings import coloured
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import count, labels
from ttf.charts.theme import CANCELLED, FAILURE
from ttf.inputs import Inputs

MOST_NODES = 20
_LISTED, _OTHER = "listed", "not significant"


def drain_list(given: Inputs, study: Study) -> Figure:
    what = "Nodes by rate of outages"
    compared = given["drain_list"].drop_nulls("ci_low")
    known = compared.filter(pl.col("outages") > 0).sort("rate_ratio", "node", descending=[True, False]).head(MOST_NODES)
    if not known.height:
        return nothing_to_draw(what, "outages differ between nodes no more than by chance")
    named, colours = labels(known["node"]), {_LISTED: FAILURE, _OTHER: CANCELLED}
    rows = [
        {"node": named[row["node"]], "ratio": row["rate_ratio"], "low": row["ci_low"], "high": row["ci_high"]}
        | {"kind": _LISTED if row["listed"] else _OTHER}
        for row in known.iter_rows(named=True)
    ]
    present = {kind: colour for kind, colour in colours.items() if any(row["kind"] == kind for row in rows)}
    base = chart_of("nodes").encode(
        y=alt.Y("node:N", sort=None, title=None), color=coloured("kind", present, title=None, orient="bottom")
    )
    x = alt.X("ratio:Q", axis=alt.Axis(title="Rate of outages over the fleet's, shrunken"), scale=alt.Scale(zero=True))
    points = base.mark_point(filled=True, size=50).encode(x=x)
    listed = count(compared["listed"].sum(), "node")
    return figure(
        (base.mark_rule().encode(x="low:Q", x2="high:Q") + points).properties(width=420, height=alt.Step(18)),
        {"nodes": rows},
        study,
        title=what,
        subtitle="Unplanned outages against the fleet's at the same time up, shrunken towards it; 95% CI",
        caption=f"n = {count(compared.height, 'node')}, the first {len(rows)} shown; {listed} listed.",
        alt_text=f"Points with intervals for {count(len(rows), 'node')}; {listed} listed.",
    )


CHARTS = {"drain_list": drain_list}
