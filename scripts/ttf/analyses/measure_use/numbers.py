"""The numbers of GPU and host use."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """Mean, median and idle share of all GPU minutes and by outcome, what is measured of them, 16 GPUs, hosts."""
    source = "tables/gpu_use.csv"
    known = tables["gpu_use"].filter(pl.col("n") > 0)
    shares = ("mean_share", "p50_share", "zero_share", "coverage_share", "coverage_in_span_share")
    every = known.filter(pl.col("servers").is_null(), pl.col("job_gpus") == "all")
    metrics.put_rows("use.gpu.{outcome}", every, {"jobs": "jobs"} | dict.fromkeys(shares, "share"), source)
    spread = known.filter(pl.col("servers").is_not_null(), pl.col("dedicated").is_null())
    metrics.put_rows("use.gpu.servers.{servers}", spread, {"mean_share": "share"}, source)
    hosts, shares = tables["host_use"].filter(pl.col("n") > 0), {"mean_share": "share", "p50_share": "share"}
    metrics.put_rows("use.{resource}.{machine_minutes}", hosts, shares, "tables/host_use.csv")
