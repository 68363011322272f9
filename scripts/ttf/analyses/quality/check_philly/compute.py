"""What the Philly trace leaves open, checked by the trace itself: the zone of its log, and its list of machines."""

import polars as pl

from ttf.analyses.quality.check_philly import PHILLY_SUMMARY
from ttf.formats.philly.derive import zone_evidence
from ttf.records.inputs import Inputs


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    zones, machines = zone_evidence(given.read("jobs")), listed_machines(given.read("nodes"))
    return {
        "zone_evidence": zones,
        "listed_machines": machines,
        "philly_summary": PHILLY_SUMMARY.frame([summarise_starts(zones) | summarise_machines(machines)]),
    }


def listed_machines(nodes: pl.DataFrame) -> pl.DataFrame:
    """How many machines have so many GPUs in the list and so many in the telemetry or the log; nodes: of the format."""
    pairs = nodes.select(listed_gpus="listed_gpu_count", found_gpus="gpu_count")
    counted = pairs.group_by("listed_gpus", "found_gpus").agg(nodes=pl.len().cast(pl.Int64))
    return counted.sort("listed_gpus", "found_gpus", nulls_last=True)


def summarise_starts(zones: pl.DataFrame) -> dict:
    """Cells of PHILLY_SUMMARY. zones: ZONE_EVIDENCE."""
    if not zones.height:
        return {"jobs": 0}
    columns = {"pacific_ruled_out": "first_submit_after_s", "utc_ruled_out": "first_submit_after_if_utc_s"}
    ruled_out = {name: (zones[column] < 0).sum() for name, column in columns.items()}
    return {"jobs": zones["jobs"].sum(), "starts": zones.height} | ruled_out


def summarise_machines(machines: pl.DataFrame) -> dict:
    """Cells of PHILLY_SUMMARY. machines: LISTED_MACHINES."""
    row = {}
    for name in ("listed", "found"):
        rows = machines.drop_nulls(f"{name}_gpus")
        row |= {name: rows["nodes"].sum(), f"{name}_gpus": (rows[f"{name}_gpus"] * rows["nodes"]).sum()}
    both = machines.drop_nulls(["listed_gpus", "found_gpus"])
    if both.height:
        agree = both.filter(pl.col("listed_gpus") == pl.col("found_gpus"))
        row |= {"compared": both["nodes"].sum(), "agree": agree["nodes"].sum()}
    return row
