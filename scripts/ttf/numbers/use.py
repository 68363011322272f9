"""The numbers of GPU and host use, and of epochs to the lowest loss."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics


def of_utilisation(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """Mean, median and idle share of all GPU minutes and by outcome, what is measured of them, 16 GPUs, hosts."""
    source = "tables/gpu_use.csv"
    known = tables["gpu_use"].filter(pl.col("n") > 0)
    for row in known.filter(pl.col("servers").is_null() & (pl.col("job_gpus") == "all")).iter_rows(named=True):
        for name in ("mean_share", "p50_share", "zero_share", "coverage_share", "coverage_in_span_share"):
            metrics.put(f"use.gpu.{row['outcome']}.{name}", row[name], "share", source, row["n"])
        metrics.put(f"use.gpu.{row['outcome']}.jobs", row["jobs"], "jobs", source, row["n"])
    spread = known.filter(pl.col("servers").is_not_null() & pl.col("dedicated").is_null())
    for row in spread.iter_rows(named=True):
        metrics.put(f"use.gpu.servers.{row['servers']}.mean_share", row["mean_share"], "share", source, row["n"])
    source = "tables/host_use.csv"
    for row in tables["host_use"].filter(pl.col("n") > 0).iter_rows(named=True):
        for name in ("mean_share", "p50_share"):
            key = f"use.{row['resource']}.{row['machine_minutes']}.{name}"
            metrics.put(key, row[name], "share", source, row["n"])


def of_epochs(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """Per outcome the share of jobs that needed all epochs, and what they spent on the last bit."""
    source = "tables/epochs_summary.csv"
    for row in tables["epochs_summary"].iter_rows(named=True):
        if row["outcome"] == "not_in_trace":
            metrics.put("epochs.not_in_trace", row["jobs_logged"], "jobs", source)
        elif row["n"]:
            key = f"epochs.{row['outcome']}"
            metrics.put(f"{key}.needing_all_share", row["needing_all_share"], "share", source, row["n"])
            for name in ("after_near_share_mean", "after_near_gpu_time_share"):
                metrics.put(f"{key}.{name}", row[name], "share", source, row["timed_jobs"])
    source = "tables/epochs.csv"
    near = (pl.col("quantity") == "within_0.1_percent") & (pl.col("epochs_share") == 0.4)
    for row in tables["epochs"].filter(near).iter_rows(named=True):
        metrics.put(f"epochs.{row['outcome']}.near_by_40_percent", row["jobs_share"], "share", source, row["n"])
