"""The numbers of the list of nodes to drain, and of whether such lists would have been right."""

import polars as pl

from ttf.analyses.find_lemon_nodes.excess import typical_detectable
from ttf.analyses.rank_drains.hostlist import SAFE
from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    nodes, source = given["drain_list"], "tables/drain_list.csv"
    compared = nodes.drop_nulls("p_value")
    if not compared.height:
        return
    listed = compared.filter("listed")
    metrics.put("drains.nodes", compared.height, "nodes", source, nodes.height)
    metrics.put("drains.listed", listed.height, "nodes", source, compared.height)
    metrics.put("drains.outages", int(compared["outages"].sum()), "outages", source, compared.height)
    metrics.put("drains.detectable_ratio", typical_detectable(compared), "1", source, compared.height)
    excluded = sum(SAFE.fullmatch(node) is not None for node in listed["node"])
    metrics.put("drains.excluded", excluded, "nodes", "drains/exclude.txt", listed.height)
    if listed.height:
        for name, unit in {
            "saved_gpu_hours": "GPU-hours",
            "saved_node_hours": "node-hours",
            "idle_gpu_hours": "GPU-hours",
        }.items():
            if listed[name].count():
                metrics.put(f"drains.{name}", float(listed[name].to_numpy().sum()), unit, source, listed.height)
        share = listed["outages"].sum() / max(compared["outages"].sum(), 1)
        metrics.put("drains.share_of_outages", share, "share", source, int(compared["outages"].sum()))
    source = "tables/drain_backtest.csv"
    for row in given["drain_backtest"].filter(pl.col("window") == "all", pl.col("listed") > 0).iter_rows(named=True):
        units = {"listed": "node-weeks", "failed": "node-weeks", "share": "share", "base_share": "share", "ratio": "1"}
        units |= {"ci_low_clustered": "1", "ci_high_clustered": "1", "cluster_by": "label", "clusters": "clusters"}
        metrics.put_row("drains.backtest", row, units, source, row["listed"])
