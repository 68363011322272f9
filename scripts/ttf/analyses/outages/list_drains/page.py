"""Lines and tables of the nodes to drain, and the backtest."""

import polars as pl

from ttf.analyses.outages.list_drains import DRAIN_BACKTEST, DRAIN_LIST
from ttf.display import statement_rules
from ttf.display.report_tables import CLUSTERED, Interval, PageTable
from ttf.display.report_trace import Trace
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers

MOST_NODES = 15
# Most nodes shown if none is listed.
MOST_UNLISTED = 5


def lines(trace: Trace, m: Numbers) -> list[Line]:
    title, table = "Nodes with excess outages", "tables/drain_list.csv"
    if "drains.nodes" not in m:
        return []
    if not m["drains.nodes"]:
        return [Line(title, "no node can be compared with others", table, checked=False)]
    if m["drains.listed"]:
        return []
    if statement_rules.r11_no_power(m, "drains"):
        return [Line(title, statement_rules.cannot_tell(m, "drains"), table, checked=False)]
    power = "a typical node with [drains.detectable_ratio:2] times the outages would be found with 80% power"
    return [Line(title, f"0 of [drains.nodes], of [drains.outages outage]; {power}", table)]


def tables(trace: Trace) -> dict[str, PageTable]:
    every_node = trace.table("drain_list")
    drains = every_node.drop_nulls("listed_by").head(MOST_NODES)
    drains = drains.with_columns(fleet=pl.coalesce("failure_fleet", "fleet"))
    names = ("node", "fleet", "listed_by", "basis", "failures", "failures_expected", "failures_q", "failure_causes")
    evidence = [name for name in (*names, "counted", "expected", "q_value", "causes") if drains[name].count()]
    nodes = every_node.drop_nulls("p_value").filter(pl.col("outages") > 0)
    listed = nodes.filter("listed")
    shown = listed.head(MOST_NODES) if listed.height else nodes.head(MOST_UNLISTED)
    columns = dict.fromkeys(("node", "fleet", "saved_gpu_hours", "saved_node_hours", "idle_gpu_hours"))
    columns |= dict.fromkeys(("outages", "again_24h", "expected", "jobs_lost", "causes"))
    columns |= {"rate_ratio": Interval(low="ci_low", high="ci_high"), "q_value": None}
    backtest = trace.table("drain_backtest").filter(pl.col("listed") > 0, window="all")
    week_columns = dict.fromkeys(("listed", "failed", "share", "others", "others_failed", "base_share"))
    return {
        "drain-evidence": PageTable(drains, evidence, DRAIN_LIST),
        "drain-list": PageTable(shown, {name: columns[name] for name in columns if shown[name].count()}, DRAIN_LIST),
        "drain-backtest": PageTable(backtest, week_columns | {"ratio": CLUSTERED}, DRAIN_BACKTEST),
    }
