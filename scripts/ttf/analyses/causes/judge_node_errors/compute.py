"""Judge the errors of the nodes' logs: rates, evidence, attributed failures, nodes with excess, lead times."""

import polars as pl

from ttf.analyses.causes.judge_node_errors import (
    ERROR_CODES,
    ERROR_LEAD_TIMES,
    ERROR_RATES_BY_MONTH,
    ERROR_SUMMARY,
    FAILURES_BY_COMPONENT,
)
from ttf.analyses.causes.judge_node_errors.error_nodes import compare_nodes
from ttf.analyses.causes.judge_node_errors.error_rates import ErrorRates
from ttf.analyses.causes.judge_node_errors.evidence import (
    BY_APPLICATION,
    DOES_NOT,
    PRECEDES,
    TOO_FEW,
    Evidence,
    weigh_evidence,
)
from ttf.analyses.causes.judge_node_errors.lead_times import measure_leads
from ttf.analyses.causes.judge_node_errors.log_records import LogRecords, read_log_records
from ttf.records.inputs import Inputs
from ttf.records.runs import GPU_HOUR
from ttf.stats.matched_risk import most_by_chance
from ttf.stats.shares import divide

APPLICATION, INFRASTRUCTURE, UNKNOWN = "Application", "infrastructure", "unknown"


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    outages = inputs.read("outages", ("node", "start_s", "planned", "counted")) if "outages" in inputs else None
    return judge_errors(read_log_records(inputs), outages, **vars(inputs.settings))


def judge_errors(
    records: LogRecords,
    outages: pl.DataFrame | None,
    window_s: int,
    lead_s: int,
    false_discovery: float,
    block_days: int,
    clock: str | None,
) -> dict[str, pl.DataFrame]:
    """Return all tables of the analysis. outages: rows of OUTAGES; None if the trace has none."""
    evidence, rates = weigh_evidence(records, window_s, block_days), ErrorRates(records, block_days, clock)
    codes = [_join_reasons(rates.describe_code(row["code"]), row) for row in evidence.codes]
    codes.sort(key=lambda row: (row["verdict"] != PRECEDES, -row["errors"], row["code"]))
    preceding = [row["code"] for row in codes if row["verdict"] == PRECEDES]
    hardware = [row["code"] for row in codes if not row["application"]]
    nodes = compare_nodes(records, [row["code"] for row in codes if _is_symptom(row)], false_discovery)
    leads = ERROR_LEAD_TIMES.frame([])
    if outages is not None:
        leads = measure_leads(records, outages, hardware, preceding, lead_s)
        alarms = {row["code"]: row for row in leads.filter(lead_s=lead_s).iter_rows(named=True)}
        for row in codes:
            alarm = alarms.get(row["code"], {})
            row |= {name: alarm.get(name) for name in ("outages", "announced", "false_alarms_per_week")}
            row["alarm"] = alarm.get("useful")
    summary = _summarise(records, evidence, preceding, nodes)
    return {
        "error_codes": ERROR_CODES.frame(codes),
        "error_summary": ERROR_SUMMARY.frame([summary | {"window_s": window_s, "lead_s": lead_s}]),
        "error_rates_by_month": ERROR_RATES_BY_MONTH.frame(rates.describe_months([row["code"] for row in codes])),
        "failures_by_component": split_by_component(records.attempts, evidence.attributions),
        "error_nodes": nodes,
        "error_lead_times": leads,
        "error_attributions": evidence.attributions,
    }


def _is_symptom(row: dict) -> bool:
    """Return whether a code may tell something about a node."""
    return not row["application"] and row["verdict"] != DOES_NOT


def _join_reasons(*rows: dict) -> dict:
    reason = "; ".join(dict.fromkeys(row["reason"] for row in rows if row.get("reason")))
    return {name: value for row in rows for name, value in row.items()} | {"reason": reason or None}


def _summarise(records: LogRecords, evidence: Evidence, codes: list[str], nodes: pl.DataFrame) -> dict:
    is_application = pl.col("application")
    attributed = evidence.attributions.filter(~is_application).height
    failures = records.history.runs.filter("is_failed")["run"].n_unique()
    used = [row["code"] for row in evidence.codes if row["explains"] and not row["application"]]
    expected = float(evidence.hits.filter(pl.col("code").is_in(used))["chance"].sum())
    return {
        "errors": records.errors.height,
        "codes": len(evidence.codes),
        "codes_preceding": len(codes),
        "codes_application": sum(row["verdict"] == BY_APPLICATION for row in evidence.codes),
        "codes_too_few": sum(row["verdict"] == TOO_FEW for row in evidence.codes),
        "nodes_watched": records.history.watch["unit"].n_unique(),
        "failures": failures,
        "attributed": attributed,
        "attributed_share": divide(attributed, failures),
        "application": evidence.attributions.filter(is_application).height,
        "expected_false": expected,
        "most_false": min(attributed, most_by_chance(expected)),
        "false_share": min(1.0, expected / attributed) if attributed else None,
        "clocks": records.clocks.status,
        "nodes_corrected": records.clocks.units,
        "clock_offset_s": records.clocks.offset_s,
        "nodes_with_excess": int(nodes["excess"].sum() or 0),
    }


def split_by_component(attempts: pl.DataFrame, attributions: pl.DataFrame) -> pl.DataFrame:
    """Return FAILURES_BY_COMPONENT: failed attempts by component, the most frequent first and `unknown` last."""
    component = pl.when("application").then(pl.lit(APPLICATION)).otherwise("component")
    causes = attributions.select("attempt_id", component=component)
    rows = attempts.filter("is_failed").join(causes, on="attempt_id", how="left")
    recorded = pl.when("is_infra").then(pl.lit(INFRASTRUCTURE)).otherwise(pl.lit(UNKNOWN))
    rows = rows.with_columns(before=recorded, after=pl.coalesce("component", recorded))
    cells = {"failures": pl.len().cast(pl.Int64), "gpu_time": pl.col("gpu_time").sum()}
    before, after = (rows.group_by(component=name).agg(**cells) for name in ("before", "after"))
    table = after.join(before, on="component", how="full", coalesce=True, suffix="_before").fill_null(0)
    table = table.with_columns(
        failures_before_share=pl.col("failures_before") / pl.col("failures_before").sum(),
        failures_share=pl.col("failures") / pl.col("failures").sum(),
        gpu_hours=pl.col("gpu_time") / GPU_HOUR,
        gpu_hours_before=pl.col("gpu_time_before") / GPU_HOUR,
    )
    # Groups have no order, and only sums of whole numbers do not depend on it.
    total = table["gpu_time"].sum()
    table = table.with_columns(gpu_hours_share=pl.col("gpu_time") / total if total else pl.lit(None))
    table = table.sort(pl.col("component") == UNKNOWN, -pl.col("failures"), "component")
    return FAILURES_BY_COMPONENT.conform(table)
