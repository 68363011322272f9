"""The tables of nodes with excess failures in the report."""

from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import Interval, html_table
from ttf.report.trace import Trace

MOST_NODES = 15
MOST_RANKED = 10


def lemon_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """The lemons, or where there is none the nodes next to it; the nodes by shrunken rate; the fleet without lemons."""
    nodes, effect = trace.table("lemon_nodes"), trace.table("lemon_effect")
    tested = nodes.filter(pl.col("p_value").is_not_null() & (pl.col("counted") > 0))
    lemons = tested.filter("lemon")
    shown = (lemons if lemons.height else tested.head(5)).head(MOST_NODES)
    tables = {}
    if shown.height:
        columns = {
            "node": ("Node", None),
            "fleet": ("Fleet", None),
            "single_node_failures": ("Failures of single-node attempts", words.count),
            "single_node_failure_rate": ("share of attempts", words.share),
            "multi_node_failures": ("of multi-node attempts", words.count),
            "out_count": ("Outages", words.count),
            "counted": ("Counted", words.count),
            "expected": ("Expected", words.number),
            "rate_ratio": Interval("Ratio", words.number, "ci_low", "ci_high"),
            "q_value": ("q", words.number),
        }
        told = {name: about for name, about in columns.items() if shown[name].count()}
        tables["lemons"] = html_table(shown, told, identifier("lemons"))
    ranked = nodes.filter((pl.col("posterior_rate_ratio") > 1) & (pl.col("counted") > 0))
    ranked = ranked.sort("posterior_rate_ratio", "node", descending=[True, False]).head(MOST_RANKED)
    if ranked.height:
        columns = {
            "node": ("Node", None),
            "fleet": ("Fleet", None),
            "counted": ("Counted", words.count),
            "expected": ("Expected", words.number),
            "posterior_rate_ratio": ("Shrunken rate ratio", words.number),
            "posterior_above_3": ("Probability above 3", words.share),
            "significant": ("Significant", None),
        }
        told = ranked.with_columns(significant=pl.when("lemon").then(pl.lit("yes")).otherwise(pl.lit("no")))
        tables["lemon-ranking"] = html_table(told, columns, identifier("lemon-ranking"))
    if effect["mttf_ratio"].count():
        columns = {
            "picked_on": ("Picked on", None),
            "measured_on": ("measured on", None),
            "lemons": ("Nodes", words.count),
            "failures": ("Failures", words.count),
            "mttf_s": ("Node time per failure", words.duration),
            "failures_without": ("without these nodes", words.count),
            "mttf_without_s": Interval(
                "Node time per failure", words.duration, "ci_low_without_s", "ci_high_without_s"
            ),
            "mttf_ratio": ("Ratio", words.number),
        }
        tables["lemon-effect"] = html_table(effect, columns, identifier("lemon-effect"))
    return tables
