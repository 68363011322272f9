"""What the Philly trace leaves open, checked by the trace itself: the zone of its log, and its list of machines."""

import polars as pl

from ttf.formats.philly.derive import zone_evidence
from ttf.inputs import Inputs


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    return {"zone_evidence": zone_evidence(given.read("jobs")), "listed_machines": listed_machines(given.read("nodes"))}


def listed_machines(nodes: pl.DataFrame) -> pl.DataFrame:
    """How many machines have so many GPUs in the list and so many in the telemetry or the log; nodes: of the format."""
    pairs = nodes.select(listed_gpus="listed_gpu_count", found_gpus="gpu_count")
    counted = pairs.group_by("listed_gpus", "found_gpus").agg(nodes=pl.len().cast(pl.Int64))
    return counted.sort("listed_gpus", "found_gpus", nulls_last=True)
