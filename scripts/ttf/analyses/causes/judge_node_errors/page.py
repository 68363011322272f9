"""Lines and tables of the errors in the logs of nodes."""

import polars as pl

from ttf.analyses.causes.judge_node_errors import (
    ERROR_CODES,
    ERROR_LEAD_TIMES,
    ERROR_NODES,
    ERROR_RATES_BY_MONTH,
    FAILURES_BY_COMPONENT,
)
from ttf.display.report_tables import CLUSTERED, WITH_INTERVAL, Column, Interval, PageTable
from ttf.display.report_trace import Trace
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers
from ttf.records.record_contracts import NODE_LOG_LINES

MOST_CODES, MOST_NODES, MOST_MONTHS = 20, 15, 24
_RATE = Interval(low="ci_low_clustered", high="ci_high_clustered")


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if not m["node_errors.errors"]:
        return [Line("Errors of nodes", "the logs have no error", "tables/error_summary.csv")]
    checks = []
    if not m["node_errors.codes_preceding"]:
        few = "; [node_errors.codes_too_few] too few to tell" if m["node_errors.codes_too_few"] else ""
        text = f"none of [node_errors.codes code] precedes failures{few}"
        checks.append(Line("Errors before failures", text, "tables/error_codes.csv"))
    if not m["node_errors.nodes_with_excess"]:
        text = "0 of [node_errors.nodes_watched node] with excess errors"
        checks.append(Line("Nodes with excess errors", text, "tables/error_nodes.csv"))
    return checks


def tables(trace: Trace) -> dict[str, PageTable]:
    codes, months = trace.table("error_codes"), trace.table("error_rates_by_month")
    rate: dict[str, Column] = {"errors": None, "errors_per_1000_gpu_days": _RATE}
    code_columns: dict[str, Column] = {"code": None, "component": None}
    code_columns |= rate
    code_columns |= dict.fromkeys(("attempts_hit", "failed", "failed_share", "expected"))
    code_columns |= {"ratio": WITH_INTERVAL, "p_adjusted": None, "verdict": None, "repeats_on": None}
    shown = codes.head(MOST_CODES)
    months = months.filter(pl.col("errors") > 0, pl.col("code").is_in(shown["code"].head(3).to_list()))
    month_columns: dict[str, Column] = {"month": None}
    month_columns |= rate
    nodes = trace.table("error_nodes")
    nodes = nodes.filter("excess") if nodes["excess"].any() else nodes.head(5)
    node_columns: dict[str, Column] = dict.fromkeys(("node", "fleet", "errors", "codes", "gpu", "counted", "expected"))
    node_columns |= {"rate_ratio": WITH_INTERVAL, "q_value": None}
    leads = trace.table("error_lead_times").filter(pl.col("outages") > 0, pl.col("alarms") > 0)
    lead_columns: dict[str, Column] = {"code": None, "lead_s": None, "outages": None, "announced": None}
    lead_columns |= {"share": CLUSTERED, "expected": None, "median_lead_s": None}
    lead_columns |= dict.fromkeys(("alarms", "false_alarms", "false_alarms_per_week"))
    components = dict.fromkeys(("component", "failures_before", "failures", "failures_share"))
    components |= dict.fromkeys(("gpu_hours_before", "gpu_hours", "gpu_hours_share"))
    # What was picked or of no interest needs no attention.
    lines = trace.table("node_log_lines").filter(~pl.col("code").is_in(["lines", "picked", "unmatched"]))
    return {
        "error-lines": PageTable(lines, ("sentence", "rows", "share", "first_lines"), NODE_LOG_LINES, longest=100),
        "error-codes": PageTable(shown, _select_filled(code_columns, shown), ERROR_CODES),
        "error-components": PageTable(trace.table("failures_by_component"), components, FAILURES_BY_COMPONENT),
        "error-months": PageTable(months.head(MOST_MONTHS), month_columns, ERROR_RATES_BY_MONTH, "code"),
        "error-nodes": PageTable(nodes.head(MOST_NODES), _select_filled(node_columns, nodes), ERROR_NODES),
        "error-leads": PageTable(leads, _select_filled(lead_columns, leads), ERROR_LEAD_TIMES),
    }


def _select_filled(columns: dict[str, Column], frame: pl.DataFrame) -> dict[str, Column]:
    return {name: column for name, column in columns.items() if frame[name].count()}
