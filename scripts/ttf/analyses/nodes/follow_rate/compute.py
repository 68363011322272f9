import polars as pl

from ttf.analyses.nodes.follow_rate import FAILURE_RATE_WINDOWS
from ttf.analyses.nodes.follow_rate.over_time import failure_rate_over_time, with_domains
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.inputs import Inputs

LIVES = ("basis", "event", "cause", "start_s", "duration_s", "gpu_count", "gpu_milli", "nodes", *CLUSTER_COLUMNS)


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    # What counts as a failure and what a node holds is said once.
    basis, *node_gpus = given["node_failure_rate"].select("basis", "node_gpus", "node_gpus_from").row(0)
    lives, cause_is = given.scan("lives_infra", LIVES), "cause"
    if basis == "proxy" and "reasons" in given:
        # Nothing attributes a failure to a cause but the words and codes that the taxonomy reads.
        named = given.scan("lives_infra", [*LIVES, "unit_id", "life_id"])
        lives, cause_is = with_domains(named, given.scan("reasons")), "domain"
    windows = failure_rate_over_time(lives, basis, *node_gpus, cause_is)
    return {"failure_rate_over_time": windows, "failure_rate_windows": summarise_windows(windows)}


def summarise_windows(windows: pl.DataFrame) -> pl.DataFrame:
    """The one row of FAILURE_RATE_WINDOWS; windows: FAILURE_RATE_OVER_TIME."""
    rated = windows.filter(pl.col("ci_high").is_not_null(), by="all")
    if not rated.height:
        reason = windows["reason"][0] or "no node was at work"
        return FAILURE_RATE_WINDOWS.frame([{"windows": 0, "reason": reason}])
    row = {"windows": rated.height, "failures_in_windows": int((rated["failures"] > 0).sum())}
    row |= {"window_days": rated["window_days"][0], "by": windows.filter(pl.col("by") != "all")["by"].first()}
    row |= {name: rated[name][0] or None for name in ("runs_before", "days_before")}
    last = rated.drop_nulls("failures_per_1000_node_days").row(-1, named=True)
    row |= {"last": last["failures_per_1000_node_days"], "last_failures": last["failures"]}
    return FAILURE_RATE_WINDOWS.frame([row])
