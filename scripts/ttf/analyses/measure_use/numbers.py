"""The numbers of GPU and host use."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """Mean, median and idle share of all GPU minutes and by outcome, what is measured of them, 16 GPUs, hosts."""
    source = "tables/gpu_use.csv"
    known = tables["gpu_use"].filter(pl.col("n") > 0)
    for row in known.filter(pl.col("servers").is_null() & (pl.col("job_gpus") == "all")).iter_rows(named=True):
        shares = ("mean_share", "p50_share", "zero_share", "coverage_share", "coverage_in_span_share")
        metrics.put_row(f"use.gpu.{row['outcome']}", row, dict.fromkeys(shares, "share"), source, row["n"])
        metrics.put(f"use.gpu.{row['outcome']}.jobs", row["jobs"], "jobs", source, row["n"])
    spread = known.filter(pl.col("servers").is_not_null() & pl.col("dedicated").is_null())
    for row in spread.iter_rows(named=True):
        metrics.put(f"use.gpu.servers.{row['servers']}.mean_share", row["mean_share"], "share", source, row["n"])
    source = "tables/host_use.csv"
    for row in tables["host_use"].filter(pl.col("n") > 0).iter_rows(named=True):
        shares = {"mean_share": "share", "p50_share": "share"}
        metrics.put_row(f"use.{row['resource']}.{row['machine_minutes']}", row, shares, source, row["n"])
