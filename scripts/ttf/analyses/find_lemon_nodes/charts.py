"""Nodes with excess failures: their failures against those expected of their fleet, the signals over the nodes."""

import math

import altair as alt
import polars as pl
from scipy.special import pdtr, pdtrc, pdtrik

from ttf.analyses.find_lemon_nodes.excess import typical_detectable
from ttf.charts.axes import log_domain, log_scale, log_ticks, percent_axis
from ttf.charts.encodings import coloured, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import capital, count, labels, percent, significant
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, FAINT, INK
from ttf.inputs import Inputs

MOST_LABELLED = 10
MOST_LEMONS = 60
# Nodes that are no lemons are drawn together where they nearly coincide.
MOST_DOTS = 300
# Steps of one signal's curve.
MOST_STEPS = 60
LEMON = "#D55E00"
_WIDTH, _HEIGHT = 620, 360

_SIGNALS = {
    "single_node_failures": "failures of single-node attempts",
    "single_node_failure_rate": "share of single-node attempts that failed",
    "multi_node_failures": "failures of multi-node attempts attributed to it",
    "shared_multi_node_failures": "failed multi-node attempts it was part of",
    "out_count": "outages",
    "rate_ratio": "failure rate over its fleet's",
}


def lemon_funnel(given: Inputs, study: Study) -> Figure:
    """Counted over expected failures of every node of lemon_nodes.csv, and the line above which chance does not reach.

    The line (a funnel plot's limit, Spiegelhalter 2005) is the smallest count whose Poisson tail at that expectation
    is at most the largest of the lemons, of their own tests and of such tails. Other nodes may differ a little from it.
    """
    nodes, false_discovery = given["lemon_nodes"], given.settings.false_discovery
    what = "Failures of nodes against their fleet"
    tested = nodes.filter(pl.col("p_value").is_not_null() & (pl.col("expected") > 0))
    if not tested.height:
        why = _unattributed(nodes) or "no node has failures to be compared with those of others"
        return nothing_to_draw(what, why)
    lemons = tested.filter("lemon")
    drawn_lemons, others = lemons.head(MOST_LEMONS), tested.filter(~pl.col("lemon"))
    names = labels(drawn_lemons["node"])
    rows = [_dot(row, names[row["node"]], lemon=True) for row in drawn_lemons.iter_rows(named=True)]
    rows += _together(others)
    # No node found stands below the line, though its own test is not of a Poisson count.
    tails = pdtrc(lemons["counted"].to_numpy() - 1, lemons["expected"].to_numpy())
    cut = max(lemons["p_value"].max(), tails.max()) if lemons.height else false_discovery / tested.height
    domain = log_domain(tested["expected"].to_list(), 1.5, 1.5)
    top = max(2.0, *(row["ratio"] for row in rows)) * 1.08
    limit = [row for row in _limit(domain, cut) if row["ratio"] <= top]
    _label([row for row in rows if row["lemon"]], domain, top)
    title = _title(lemons, tested)
    n = int(tested["counted"].sum())
    caption = (
        f"{count(tested.height, 'node')}, {count(n, 'failure')} counted; one-sided exact tests, Benjamini-Hochberg "
        f"at a false-discovery rate of {percent(false_discovery)}. Line: the Poisson limit at "
        f"p = {significant(cut, 2)}."
    )
    if ratio := _detectable(tested):
        caption += f" Found with 80 % power: a typical node with {ratio}."
    if untested := nodes.height - tested.height:
        caption += f" {count(untested, 'node')} without a test left out."
    if (more := lemons.height - MOST_LEMONS) > 0:
        caption += f" Orange: the {MOST_LEMONS} of lowest p; {more:,} more are in lemon_nodes.csv."
    if any(row["nodes"] > 1 for row in rows):
        caption += " Dots of nodes that nearly coincide are drawn as one, larger with more nodes."
    return figure(
        _funnel(rows, domain, top),
        {"nodes": rows, "limit": limit},
        study,
        title=title,
        subtitle="Failures over those expected from its fleet, by the number expected; orange: significant.",
        caption=caption,
        alt_text=f"A funnel plot of {count(tested.height, 'node')}. {title}.",
    )


def lemon_signals(given: Inputs, study: Study) -> Figure:
    """How each signal is spread over the nodes: the share at or below each value, as a share of the largest."""
    nodes, rows, drawn, title = given["lemon_nodes"], [], {}, None
    for place, (name, words) in enumerate(_SIGNALS.items()):
        values = nodes[name].drop_nulls().sort()
        if not values.len() or values[-1] == 0:
            continue
        largest = float(values[-1])
        steps = values.value_counts(sort=False).sort(name).with_columns(share=pl.col("count").cum_sum() / values.len())
        thin = steps.gather_every(max(1, math.ceil(steps.height / MOST_STEPS)))
        thin = pl.concat([thin, steps.tail(1)]).unique(maintain_order=True)
        rows.append({"signal": words, "value": 0.0, "share": float((values == 0).mean()), "n": values.len()})
        for row in thin.filter(pl.col(name) > 0).iter_rows(named=True):
            value = {"value": row[name] / largest, "share": row["share"], "as_written": float(row[name])}
            rows.append({"signal": words, "n": values.len()} | value)
        drawn[words] = CATEGORY_COLOURS[place]
        if title is None and not values.dtype.is_float():
            title = f"Half of all {words} fall on {percent(_holders_of_half(values) / values.len())} of the nodes"
    if not rows:
        return nothing_to_draw("Signals of nodes with excess failures", "no node has a failure")
    title = title or f"{capital(next(iter(drawn)))} by node"
    chart = (
        chart_of("signals")
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("value:Q", axis=percent_axis("Value, of the largest"), scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("share:Q", axis=percent_axis("Nodes at or below"), scale=alt.Scale(zero=True)),
            color=coloured("signal", drawn, title=None, orient="bottom", columns=2, labelLimit=320),
            tooltip=[
                *tips("signal"),
                *tips(form=".4~g", as_written="value"),
                *tips(form=".1%", share="nodes at or below"),
                *tips(form=",", n="nodes"),
            ],
        )
        .properties(width=_WIDTH, height=260)
    )
    return figure(
        chart,
        {"signals": rows},
        study,
        title=title,
        subtitle="Share of the nodes at or below each value of a signal; up early, flat late: few nodes stand out.",
        caption=f"{count(nodes.height, 'node')}; signals that the trace does not tell, or 0 for all, are left out.",
        alt_text=f"Cumulative distributions of {count(len(drawn), 'signal')}. {title}.",
    )


def _holders_of_half(values: pl.Series) -> int:
    """How many of the nodes, from the highest on, hold half of the sum."""
    running = values.sort(descending=True).cum_sum()
    return int((running * 2 < running[-1]).sum()) + 1


def _dot(row: dict, name: str, nodes: int = 1, lemon: bool = False) -> dict:
    q = "–" if row["q_value"] is None else f"{row['q_value']:.2g}"
    dot = {"node": name, "ratio": row["counted"] / row["expected"], "q": q, "nodes": nodes, "lemon": lemon}
    return dot | picked(row, "expected", "counted")


def _together(nodes: pl.DataFrame) -> list[dict]:
    """Nodes that are no lemons by number expected (in logarithmic bins) and failures counted, at most MOST_DOTS."""
    for bins, step in ((40, 1), (30, 2), (20, 5), (12, 20), (8, 100), (4, 10_000)):
        place = (pl.col("expected").log(10) * bins).round(0)
        binned = nodes.group_by(place=place, level=pl.col("counted") // step)
        binned = binned.agg(
            pl.col("expected").sort().mean(), pl.mean("counted"), nodes=pl.len(), q_value=pl.min("q_value")
        ).sort("place", "level")
        if binned.height <= MOST_DOTS:
            break
    return [_dot(row, count(row["nodes"], "node"), row["nodes"]) for row in binned.iter_rows(named=True)]


def _limit(domain: list[float], cut: float) -> list[dict]:
    """The smallest count with a Poisson tail of at most `cut`, over the number expected, along a logarithmic axis."""
    low, high = (math.log10(end) for end in domain)
    places = [10 ** (low + (high - low) * step / 120) for step in range(121)]
    return [{"expected": mean, "ratio": (poisson_quantile(1 - cut, mean) + 1) / mean} for mean in places]


def poisson_quantile(share: float, mean: float) -> int:
    """The smallest count that a Poisson variable does not exceed with probability `share`; without scipy.stats."""
    count = math.ceil(pdtrik(share, mean))
    # The count before, if rounding alone led past it.
    return count - 1 if count and pdtr(count - 1, mean) >= share else count


def _label(lemons: list[dict], domain: list[float], top: float) -> None:
    """Give a label to the first lemons, but to none whose label would lie on another's."""
    across = _WIDTH / math.log10(domain[1] / domain[0])
    taken: list[tuple[float, float]] = []
    for row in lemons:
        x, y = across * math.log10(row["expected"] / domain[0]), _HEIGHT * row["ratio"] / top
        if len(taken) < MOST_LABELLED and all(abs(y - b) > 12 or abs(x - a) > 150 for a, b in taken):
            row["label"] = row["node"]
            taken.append((x, y))


def _funnel(rows: list[dict], domain: list[float], top: float) -> alt.LayerChart:
    axis = alt.Axis(values=log_ticks(domain), format=",.6~g")
    x = alt.X("expected:Q", title="Failures expected (logarithmic)", scale=log_scale(domain), axis=axis)
    y = alt.Y("ratio:Q", title="Counted over expected", scale=alt.Scale(domain=[0, top], nice=False))
    base = chart_of("nodes").encode(x=x, y=y)
    dots = base.mark_circle(opacity=0.75).encode(
        size=alt.Size("nodes:Q", scale=alt.Scale(type="sqrt", range=[28, 260], zero=False), legend=None),
        color=alt.condition("datum.lemon", alt.value(LEMON), alt.value(ACCENT)),
        tooltip=[
            *tips("node"),
            *tips(form=",.4~g", counted="failures that count"),
            *tips("expected", form=",.3~g", ratio="counted over expected"),
            *tips(q="q-value"),
        ],
    )
    names = base.transform_filter("isValid(datum.label)")
    names = names.mark_text(align="left", dx=7, dy=-3, fontSize=10, color=INK, limit=140)
    line = chart_of("limit").mark_line(strokeDash=[5, 4], color=FAINT, strokeWidth=1.5).encode(x=x, y=y)
    one = chart_of("nodes").mark_rule(color=FAINT).encode(y=alt.datum(1))
    return (one + line + dots + names.encode(text="label:N")).properties(width=_WIDTH, height=_HEIGHT)


def _title(lemons: pl.DataFrame, tested: pl.DataFrame) -> str:
    """What was found; of failures of which most are attributed to no node, that first."""
    unattributed, of_nodes = _unattributed(tested), count(tested.height, "node")
    if unattributed:
        found = f"{lemons.height:,} of {of_nodes} with excess"
        return f"{unattributed}; {found if lemons.height else f'no excess on {of_nodes} by the rest'}"
    if not lemons.height:
        title = f"No node of {tested.height:,} has significantly more failures"
        ratio = _detectable(tested)
        return f"{title}; one with {ratio} would have been found" if ratio else title
    of_counted = lemons["counted"].sum() / lemons["expected"].sum()
    verb, whose = ("has", "its") if lemons.height == 1 else ("have", "their")
    return (
        f"{lemons.height:,} of {of_nodes} {verb} significantly more failures: "
        f"{significant(of_counted)} times what {whose} fleet would"
    )


def _unattributed(nodes: pl.DataFrame) -> str:
    """How many failures are attributed to no node, where they are most; else nothing."""
    for row in nodes.head(1).iter_rows(named=True):
        failures, attributed = row["window_failures"], row["attributed_failures"]
        if 2 * attributed < failures:
            return f"{failures - attributed:,} of {count(failures, 'failure')} could not be attributed to a node"
    return ""


def _detectable(tested: pl.DataFrame) -> str:
    ratio = typical_detectable(tested)
    if ratio is None:
        return ""
    what = "the failures expected" if tested["basis"][0] == "proxy" else "the fleet's rate"
    return f"{significant(ratio)} times {what}"


CHARTS = {"lemons": lemon_funnel, "lemon_signals": lemon_signals}
