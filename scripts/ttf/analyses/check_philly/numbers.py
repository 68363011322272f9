"""The numbers of what the Philly trace leaves open."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    """Whether the log's zone can be the one assumed, and how far the list of machines is wrong."""
    zones, machines = given["zone_evidence"], given["listed_machines"]
    source = "tables/zone_evidence.csv"
    if zones.height:
        jobs = int(zones["jobs"].sum())
        for name, column in (("pacific", "first_submit_after_s"), ("utc", "first_submit_after_if_utc_s")):
            metrics.put(f"zone.{name}_ruled_out", int((zones[column] < 0).sum()), "starts", source, zones.height)
        metrics.put("zone.starts", zones.height, "starts", source, jobs)
    source = "tables/listed_machines.csv"
    both = machines.drop_nulls(["listed_gpus", "found_gpus"])
    if both.height:
        n, agree = int(both["nodes"].sum()), both.filter(pl.col("listed_gpus") == pl.col("found_gpus"))
        metrics.put("machine_list.compared", n, "nodes", source)
        metrics.put("machine_list.agree", int(agree["nodes"].sum()), "nodes", source, n)
    for name in ("listed", "found"):
        known = machines.drop_nulls(f"{name}_gpus")
        gpus = int((known[f"{name}_gpus"] * known["nodes"]).sum())
        metrics.put(f"machine_list.{name}_gpus", gpus, "GPUs", source, int(known["nodes"].sum()))
    metrics.put("machine_list.listed", int(machines.drop_nulls("listed_gpus")["nodes"].sum()), "nodes", source)
