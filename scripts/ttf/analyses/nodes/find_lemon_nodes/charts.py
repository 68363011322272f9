"""Nodes with excess failures: their failures against those expected of their fleet."""

import bisect
import math

import altair as alt
import numpy as np
import polars as pl
from scipy.special import pdtrc

from ttf.display.charts.axes import log_domain, log_scale, log_ticks
from ttf.display.charts.encodings import pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import CANCELLED, FAILURE, FAINT, INK
from ttf.display.statement_rules import has_power
from ttf.engine.words import number, plural, share
from ttf.records.inputs import Inputs
from ttf.stats.nodes.excess_failures import OrdinaryRates, median_detectable_ratio

MOST_LABELLED = 10
MOST_LEMONS = 60
# Nodes that are not significant are drawn as one dot if they nearly coincide.
MOST_DOTS = 300
_WIDTH, _HEIGHT = 620, 360


def lemon_funnel(inputs: Inputs, study: Study) -> Figure:
    """Draw counted over expected failures of each node, and the limit of random variation.

    The limit (a funnel plot's, Spiegelhalter 2005) is the smallest count whose tail at that expectation, the larger of
    Poisson's and that of ordinary nodes, is at most the largest tail of the significant nodes. Other nodes may differ
    slightly from it.
    """
    nodes, false_discovery = inputs["lemon_nodes"], inputs.settings.false_discovery
    title = "Failures of each node, relative to its fleet"
    tested = nodes.filter(pl.col("p_value").is_not_null() & (pl.col("expected") > 0))
    if not tested.height:
        return empty_figure(
            title, _format_unattributed(nodes) or "no node has failures to be compared with those of others"
        )
    lemons = tested.filter("lemon")
    shown_lemons, other_nodes = lemons.head(MOST_LEMONS), tested.filter(~pl.col("lemon"))
    names = make_labels(shown_lemons["node"])
    rows = [_make_dot(row, names[row["node"]], lemon=True) for row in shown_lemons.iter_rows(named=True)]
    rows += _bin_nodes(other_nodes)
    # No significant node is below the line, although its test is not of a Poisson count.
    ordinary = _ordinary_rates(tested)
    tails = _tail(lemons["counted"].to_numpy(), lemons["expected"].to_numpy(), ordinary)
    cut = max(lemons["p_spread"].max(), tails.max()) if lemons.height else false_discovery / tested.height
    domain = log_domain(tested["expected"].to_list(), 1.5, 1.5)
    top = max(2.0, *(row["ratio"] for row in rows)) * 1.08
    limit = [row for row in _limit_line(domain, cut, ordinary) if row["ratio"] <= top]
    _add_labels([row for row in rows if row["lemon"]], domain, top)
    caption = f"n = {plural(tested.height, 'node')}, {plural(tested['counted'].sum(), 'failure')} counted."
    if ratio := _format_detectable(tested):
        caption += f" Detectable with 80% power: a typical node with {ratio}."
    if unattributed := _format_unattributed(nodes):
        caption += f" {unattributed}."
    if untested := nodes.height - tested.height:
        caption += f" {plural(untested, 'node')} without a test left out."
    if (n_more := lemons.height - MOST_LEMONS) > 0:
        caption += f" Marked: the {MOST_LEMONS} of lowest p; {n_more:,} more are in lemon_nodes.csv."
    summary = f"{lemons.height:,} of {plural(tested.height, 'node')} significant"
    if not lemons.height and not has_power(median_detectable_ratio(tested)):
        summary = f"cannot tell whether any of {plural(tested.height, 'node')} fails more than the others"
    return make_figure(
        fit_width(_draw_funnel(domain, top), study, _HEIGHT),
        {"nodes": rows, "limit": limit},
        study,
        title=title,
        subtitle=f"One-sided exact tests, false-discovery rate {share(false_discovery)}; rust: significant; "
        f"dashed: {'Poisson limit' if ordinary is None else 'limit of ordinary nodes'}",
        caption=caption,
        alt_text=f"{title}: a funnel plot of failures counted over expected, by failures expected; {summary}.",
    )


def _make_dot(row: dict, label: str, n_nodes: int = 1, lemon: bool = False) -> dict:
    q = "–" if row["q_spread"] is None else f"{row['q_spread']:.2g}"
    dot = {"node": label, "ratio": row["counted"] / row["expected"], "q": q, "nodes": n_nodes, "lemon": lemon}
    return dot | pick_columns(row, "expected", "counted")


def _bin_nodes(nodes: pl.DataFrame) -> list[dict]:
    """Bin nodes that are not significant by expected (logarithmic) and counted failures, into at most MOST_DOTS."""
    for bins, step in ((40, 1), (30, 2), (20, 5), (12, 20), (8, 100), (4, 10_000)):
        log_bin = (pl.col("expected").log(10) * bins).round(0)
        means = [pl.col("expected").sort().mean(), pl.mean("counted"), pl.min("q_spread"), pl.len().alias("nodes")]
        binned = nodes.group_by(log_bin=log_bin, level=pl.col("counted") // step).agg(means).sort("log_bin", "level")
        if binned.height <= MOST_DOTS:
            break
    return [_make_dot(row, plural(row["nodes"], "node"), row["nodes"]) for row in binned.iter_rows(named=True)]


def _ordinary_rates(tested: pl.DataFrame) -> OrdinaryRates | None:
    """Return the spread of ordinary nodes; None if the test assumes that they do not differ."""
    cv, expected, expected_all = tested.select("ordinary_cv", "ordinary_expected", "expected").row(0)
    return None if cv is None else OrdinaryRates(expected / expected_all, cv)


def _tail(count: np.ndarray, mean: np.ndarray | float, ordinary: OrdinaryRates | None) -> np.ndarray:
    """Return P(X >= count) by Poisson, or the larger of that and the tail of ordinary nodes."""
    poisson_tail = pdtrc(count - 1, mean)
    return poisson_tail if ordinary is None else np.maximum(poisson_tail, ordinary.tail(count, mean))


def _limit_line(domain: list[float], cut: float, ordinary: OrdinaryRates | None) -> list[dict]:
    """Return the smallest count with a tail of at most `cut`, over the expected count, along a logarithmic axis."""
    low, high = (math.log10(bound) for bound in domain)
    means = [10 ** (low + (high - low) * step / 120) for step in range(121)]
    return [{"expected": mean, "ratio": (highest_chance_count(cut, mean, ordinary) + 1) / mean} for mean in means]


def highest_chance_count(tail: float, mean: float, ordinary: OrdinaryRates | None = None) -> int:
    """Return the smallest count that a node's failures exceed with probability at most `tail`."""

    def is_rare(count: int) -> bool:
        return bool(_tail(np.array(count + 1), mean, ordinary) <= tail)

    bound = 1
    while not is_rare(bound):
        bound *= 2
    return bisect.bisect_left(range(bound), True, key=is_rare)


def _add_labels(lemons: list[dict], domain: list[float], top: float) -> None:
    """Label at most MOST_LABELLED dots with the name of their node, so that no two labels overlap."""
    x_scale = _WIDTH / math.log10(domain[1] / domain[0])
    positions: list[tuple[float, float]] = []
    for row in lemons:
        x, y = x_scale * math.log10(row["expected"] / domain[0]), _HEIGHT * row["ratio"] / top
        if len(positions) < MOST_LABELLED and all(abs(y - b) > 12 or abs(x - a) > 150 for a, b in positions):
            row["label"] = row["node"]
            positions.append((x, y))


def _draw_funnel(domain: list[float], top: float) -> alt.TopLevelMixin:
    axis = alt.Axis(values=log_ticks(domain), format=",.6~g")
    x = alt.X("expected:Q", title="Failures expected (logarithmic)", scale=log_scale(domain), axis=axis)
    y = alt.Y("ratio:Q", title="Counted over expected", scale=alt.Scale(domain=[0, top], nice=False))
    base = make_chart("nodes").encode(x=x, y=y)
    tooltip = [*tooltips("node"), *tooltips(form=",.4~g", counted="failures that count")]
    dots = base.mark_circle(opacity=0.75).encode(
        size=alt.Size("nodes:Q", scale=alt.Scale(type="sqrt", range=[28, 260], zero=False), legend=None),
        color=alt.condition("datum.lemon", alt.value(FAILURE), alt.value(CANCELLED)),
        tooltip=[*tooltip, *tooltips("expected", form=",.3~g", ratio="counted over expected"), *tooltips(q="q-value")],
    )
    names = base.transform_filter("isValid(datum.label)")
    names = names.mark_text(align="left", dx=7, dy=-3, fontSize=10, color=INK, limit=140)
    line = make_chart("limit").mark_line(strokeDash=[5, 4], color=FAINT, strokeWidth=1.5).encode(x=x, y=y)
    reference_line = make_chart("nodes").mark_rule(color=FAINT).encode(y=alt.datum(1))
    return alt.layer(reference_line, line, dots, names.encode(text="label:N"))


def _format_unattributed(nodes: pl.DataFrame) -> str:
    for row in nodes.head(1).iter_rows(named=True):
        failures, attributed = row["window_failures"], row["attributed_failures"]
        if 2 * attributed < failures:
            return f"{failures - attributed:,} of {plural(failures, 'failure')} could not be attributed to a node"
    return ""


def _format_detectable(tested: pl.DataFrame) -> str:
    ratio = median_detectable_ratio(tested)
    if ratio is None:
        return ""
    reference = "the failures expected" if tested["basis"][0] == "proxy" else "the fleet's rate"
    return f"{number(ratio)} times {reference}"


CHARTS = {"lemons": lemon_funnel}
