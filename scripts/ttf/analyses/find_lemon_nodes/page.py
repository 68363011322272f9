"""The tables of nodes with excess failures in the report."""

import polars as pl

from ttf.analyses.find_lemon_nodes import LEMON_EFFECT, LEMON_NODES
from ttf.report.tables import Interval, Shown, yes_or_no
from ttf.report.trace import Trace

MOST_NODES = 15
MOST_RANKED = 10


def tables(trace: Trace) -> dict[str, Shown]:
    """The lemons, or where there is none the nodes next to it; the nodes by shrunken rate; the fleet without lemons."""
    nodes, effect = trace.table("lemon_nodes"), trace.table("lemon_effect")
    tested = nodes.filter(pl.col("p_value").is_not_null() & (pl.col("counted") > 0))
    lemons = tested.filter("lemon")
    shown = (lemons if lemons.height else tested.head(5)).head(MOST_NODES)
    columns = dict.fromkeys(("node", "fleet", "single_node_failures", "single_node_failure_rate"))
    columns |= dict.fromkeys(("multi_node_failures", "out_count", "counted", "expected"))
    columns |= {"rate_ratio": Interval(low="ci_low", high="ci_high"), "q_value": None}
    known = {name: column for name, column in columns.items() if shown[name].count()}
    ranked = nodes.filter((pl.col("posterior_rate_ratio") > 1) & (pl.col("counted") > 0))
    ranked = ranked.sort("posterior_rate_ratio", "node", descending=[True, False]).head(MOST_RANKED)
    of_ranked = ("node", "fleet", "counted", "expected", "posterior_rate_ratio", "posterior_above_3", "lemon")
    found = {
        "lemons": Shown(shown, known, LEMON_NODES),
        "lemon-ranking": Shown(ranked.with_columns(yes_or_no("lemon")), of_ranked, LEMON_NODES),
    }
    if effect["mttf_ratio"].count():
        columns = dict.fromkeys(("picked_on", "measured_on", "lemons", "failures", "mttf_s", "failures_without"))
        columns["mttf_without_s"] = Interval(low="ci_low_clustered_without_s", high="ci_high_clustered_without_s")
        columns["mttf_ratio"] = None
        found["lemon-effect"] = Shown(effect, columns, LEMON_EFFECT)
    return found
