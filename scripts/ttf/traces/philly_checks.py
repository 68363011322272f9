"""What the Philly trace leaves open, held against the trace itself: the zone of its log, and its list of machines."""

import polars as pl
from ttf.numbers.metrics import Metrics


def listed_machines(nodes: pl.DataFrame) -> pl.DataFrame:
    """How many machines have so many GPUs in the list and so many in the telemetry or the log.

    Columns: listed_gpus, found_gpus, nodes.

    nodes: of ttf.traces.philly.nodes. A blank: the machine is not in the list, or in neither telemetry nor log.
    """
    pairs = nodes.select(listed_gpus="listed_gpu_count", found_gpus="gpu_count")
    counted = pairs.group_by("listed_gpus", "found_gpus").agg(nodes=pl.len().cast(pl.Int64))
    return counted.sort("listed_gpus", "found_gpus", nulls_last=True)


def of_philly_checks(metrics: Metrics, zones: pl.DataFrame, machines: pl.DataFrame) -> None:
    """Whether the log's zone can be the one assumed, and how far the list of machines is wrong."""
    source = "tables/zone_evidence.csv"
    if zones.height:
        jobs = int(zones["jobs"].sum())
        for name, column in (("pacific", "first_submit_after_s"), ("utc", "first_submit_after_if_utc_s")):
            metrics.put(f"zone.{name}_ruled_out", int((zones[column] < 0).sum()), "starts", source, zones.height)
        metrics.put("zone.starts", zones.height, "starts", source, jobs)
    source = "tables/listed_machines.csv"
    both = machines.drop_nulls(["listed_gpus", "found_gpus"])
    if both.height:
        n = int(both["nodes"].sum())
        agree = both.filter(pl.col("listed_gpus") == pl.col("found_gpus"))
        metrics.put("machine_list.compared", n, "nodes", source)
        metrics.put("machine_list.agree", int(agree["nodes"].sum()), "nodes", source, n)
    for name in ("listed", "found"):
        known = machines.drop_nulls(f"{name}_gpus")
        gpus = int((known[f"{name}_gpus"] * known["nodes"]).sum())
        metrics.put(f"machine_list.{name}_gpus", gpus, "GPUs", source, int(known["nodes"].sum()))
    listed = machines.drop_nulls("listed_gpus")
    metrics.put("machine_list.listed", int(listed["nodes"].sum()), "nodes", source)
