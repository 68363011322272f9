"""The failure rate of nodes over time, by cause."""

import polars as pl

from ttf.analyses.nodes.track_failure_rate import FAILURE_RATE_OVER_TIME, FAILURE_RATE_WINDOWS
from ttf.analyses.nodes.track_failure_rate.over_time import failure_rate_over_time, with_domains
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.inputs import Inputs

DURATIONS = ("basis", "event", "cause", "start_s", "duration_s", "gpu_count", "gpu_milli", "nodes", *CLUSTER_COLUMNS)


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    # The basis and the GPUs per node are those of node_failure_rate.
    rates = inputs["node_failure_rate"].select("basis", "node_gpus", "node_gpus_from", "failures", "ci_high", "reason")
    basis, node_gpus, node_gpus_from, failures, ci_high, reason = rates.row(0)
    durations, cause_column = inputs.scan("durations_infra", DURATIONS), "cause"
    if basis == "proxy" and "reasons" in inputs:
        # Only the words and codes read by the taxonomy attribute these failures to a cause.
        named_durations = inputs.scan("durations_infra", [*DURATIONS, "unit_id", "duration_id"])
        durations, cause_column = with_domains(named_durations, inputs.scan("reasons")), "domain"
    windows = failure_rate_over_time(durations, basis, node_gpus, node_gpus_from, cause_column)
    if failures and ci_high is None:  # the rate over all time is withheld
        row = windows.select("by", "confidence", "basis").row(0, named=True)
        windows = FAILURE_RATE_OVER_TIME.frame([row | {"reason": reason}])
    return {"failure_rate_over_time": windows, "failure_rate_windows": summarise_windows(windows)}


def summarise_windows(windows: pl.DataFrame) -> pl.DataFrame:
    """Return FAILURE_RATE_WINDOWS, one row: number and length of the windows, last rate. windows: those over time."""
    total_windows = windows.filter(pl.col("ci_high").is_not_null(), by="all")
    if not total_windows.height:
        return FAILURE_RATE_WINDOWS.frame([{"windows": 0, "reason": windows["reason"][0] or "no node was at work"}])
    row: dict[str, object] = {"windows": total_windows.height, "window_days": total_windows["window_days"][0]}
    row["failures_in_windows"] = int((total_windows["failures"] > 0).sum())
    row["by"] = windows.filter(pl.col("by") != "all")["by"].first()
    row |= {name: total_windows[name][0] or None for name in ("runs_before", "days_before")}
    last = total_windows.drop_nulls("failures_per_1000_node_days").row(-1, named=True)
    row |= {"last": last["failures_per_1000_node_days"], "last_failures": last["failures"]}
    return FAILURE_RATE_WINDOWS.frame([row])
