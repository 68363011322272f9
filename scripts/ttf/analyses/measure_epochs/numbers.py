"""The numbers of epochs to the lowest loss."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """Per outcome the share of jobs that needed all epochs, and what they spent on the last bit."""
    source = "tables/epochs_summary.csv"
    for row in tables["epochs_summary"].iter_rows(named=True):
        if row["outcome"] == "not_in_trace":
            metrics.put("epochs.not_in_trace", row["jobs_logged"], "jobs", source)
        elif row["n"]:
            key = f"epochs.{row['outcome']}"
            metrics.put(f"{key}.needing_all_share", row["needing_all_share"], "share", source, row["n"])
            shares = {"after_near_share_mean": "share", "after_near_gpu_time_share": "share"}
            metrics.put_row(key, row, shares, source, row["timed_jobs"])
    source = "tables/epochs.csv"
    near = (pl.col("quantity") == "within_0.1_percent") & (pl.col("epochs_share") == 0.4)
    for row in tables["epochs"].filter(near).iter_rows(named=True):
        metrics.put(f"epochs.{row['outcome']}.near_by_40_percent", row["jobs_share"], "share", source, row["n"])
