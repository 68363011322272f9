"""Check the time zone of the Philly log and its list of machines against the trace itself."""

import polars as pl

from ttf.analyses.quality.check_philly import PHILLY_SUMMARY
from ttf.formats.philly.derive import zone_evidence
from ttf.records.inputs import Inputs


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    zones, machines = zone_evidence(inputs.read("jobs")), count_machines(inputs.read("nodes"))
    return {
        "zone_evidence": zones,
        "listed_machines": machines,
        "philly_summary": PHILLY_SUMMARY.frame([summarise_starts(zones) | summarise_machines(machines)]),
    }


def count_machines(nodes: pl.DataFrame) -> pl.DataFrame:
    """Count machines by their GPUs in the list, and in the telemetry or the log. `nodes`: of the format."""
    gpu_counts = nodes.select(listed_gpus="listed_gpu_count", observed_gpus="gpu_count")
    counted = gpu_counts.group_by("listed_gpus", "observed_gpus").agg(nodes=pl.len().cast(pl.Int64))
    return counted.sort("listed_gpus", "observed_gpus", nulls_last=True)


def summarise_starts(zones: pl.DataFrame) -> dict:
    """Count jobs, starts and those that rule a time zone out: cells of PHILLY_SUMMARY. zones: ZONE_EVIDENCE."""
    if not zones.height:
        return {"jobs": 0}
    column_by_zone = {"pacific_ruled_out": "first_submit_after_s", "utc_ruled_out": "first_submit_after_if_utc_s"}
    ruled_out_starts = {name: (zones[column] < 0).sum() for name, column in column_by_zone.items()}
    return {"jobs": zones["jobs"].sum(), "starts": zones.height} | ruled_out_starts


def summarise_machines(machines: pl.DataFrame) -> dict:
    """Sum listed, observed and agreeing machines and GPUs: cells of PHILLY_SUMMARY. machines: LISTED_MACHINES."""
    row: dict = {}
    for name in ("listed", "observed"):
        counted = machines.drop_nulls(f"{name}_gpus")
        row |= {name: counted["nodes"].sum(), f"{name}_gpus": (counted[f"{name}_gpus"] * counted["nodes"]).sum()}
    compared_machines = machines.drop_nulls(["listed_gpus", "observed_gpus"])
    if compared_machines.height:
        agreeing = compared_machines.filter(pl.col("listed_gpus") == pl.col("observed_gpus"))
        row |= {"compared": compared_machines["nodes"].sum(), "agree": agreeing["nodes"].sum()}
    return row
