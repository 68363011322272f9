"""Page section on nodes with excess failures: its head, lines and tables."""

import polars as pl

from ttf.analyses.nodes.find_lemon_nodes import LEMON_EFFECT, LEMON_NODES
from ttf.display import statement_rules
from ttf.display.excess_nodes import node_keys
from ttf.display.report_tables import Interval, PageTable, format_boolean
from ttf.display.report_trace import Trace
from ttf.display.section_head import Head, Line
from ttf.display.trace_numbers import Numbers

MOST_NODES = 15
MOST_RANKED = 10


def tables(trace: Trace) -> dict[str, PageTable]:
    """Show significant nodes (or those of lowest p), nodes by shrunken rate, and the fleet without these nodes."""
    nodes, effect = trace.table("lemon_nodes"), trace.table("lemon_effect")
    tested = nodes.filter(pl.col("p_value").is_not_null() & (pl.col("counted") > 0))
    lemons = tested.filter("lemon")
    listed_nodes = (lemons if lemons.height else tested.head(5)).head(MOST_NODES)
    columns = dict.fromkeys(("node", "fleet", "single_node_failures", "single_node_failure_rate"))
    columns |= dict.fromkeys(("multi_node_failures", "out_count", "counted", "expected"))
    columns |= {"rate_ratio": Interval(low="ci_low", high="ci_high"), "q_spread": None}
    known_columns = {name: column for name, column in columns.items() if listed_nodes[name].count()}
    ranked = nodes.filter((pl.col("posterior_rate_ratio") > 1) & (pl.col("counted") > 0))
    ranked = ranked.sort("posterior_rate_ratio", "node", descending=[True, False]).head(MOST_RANKED)
    ranking_columns = ("node", "fleet", "counted", "expected", "posterior_rate_ratio", "posterior_above_3", "lemon")
    tables_by_name = {
        "lemons": PageTable(listed_nodes, known_columns, LEMON_NODES),
        "lemon-ranking": PageTable(ranked.with_columns(format_boolean("lemon")), ranking_columns, LEMON_NODES),
    }
    likely = nodes.filter(pl.col("likely_ratio") > 1)
    likely = likely.sort("likely_ratio", "node", descending=[True, False]).head(MOST_RANKED)
    if likely.height:
        suspect_columns = ("node", "fleet", "shared_multi_node_failures", "counted", "likely_failures", "likely_ratio")
        tables_by_name["lemon-suspects"] = PageTable(likely, suspect_columns, LEMON_NODES)
    if effect["mttf_ratio"].count():
        columns = dict.fromkeys(("picked_on", "measured_on", "lemons", "failures", "mttf_s", "failures_without"))
        columns["mttf_without_s"] = Interval(low="ci_low_clustered_without_s", high="ci_high_clustered_without_s")
        columns["mttf_ratio"] = None
        tables_by_name["lemon-effect"] = PageTable(effect, columns, LEMON_EFFECT)
    return tables_by_name


def head(trace: Trace, m: Numbers) -> Head | None:
    """Return the head: nodes lead the theme if the rate cannot be followed over time."""
    if not m.value("lemons.tested"):
        return None
    claim = "[lemons.lemons] of [lemons.tested] nodes have significantly more failures than expected"
    if statement_rules.r11_no_power(m):
        reason = statement_rules.no_power_reason(m, has_spread=False)
        claim = f"Cannot tell whether any of [lemons.tested] nodes fails more: {reason}"
    return Head(claim, ("lemons",), tuple(node_keys(trace, m)), details="nodes by rate, power of the test")


def lines(trace: Trace, m: Numbers) -> list[Line]:
    tested = m.value("lemons.tested", 0)
    if "lemons.nodes" not in m or (tested and m["lemons.lemons"]):
        return []
    title, table = "Nodes with excess failures", "tables/lemon_nodes.csv"
    if not tested:
        return [Line(title, "no node can be compared: [lemons.failures failure] attributed to nodes", table, False)]
    if statement_rules.r11_no_power(m):
        reason = statement_rules.no_power_reason(m, has_spread=False)
        return [Line(title, f"cannot tell: {reason}", table, checked=False)]
    ratio = "[lemons.detectable_ratio]"
    power = f"a typical node with {ratio} times the failures would be detected with 80% power"
    return [Line(title, f"0 of [lemons.tested]; {power}", table)]
