"""The numbers of epochs to the lowest loss."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics, ends


def numbers(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """Per outcome the share of jobs that needed all epochs, and what they spent on the last bit."""
    source, summary, unknown = "tables/epochs_summary.csv", tables["epochs_summary"], "not_in_trace"
    metrics.put_rows("epochs", summary.filter(outcome=unknown), {unknown: ("jobs_logged", "jobs")}, source, None)
    known = summary.filter(pl.col("outcome") != unknown, pl.col("n") > 0)
    metrics.put_rows("epochs.{outcome}", known, {"needing_all_share": "share"}, source)
    metrics.put_rows("epochs.{outcome}", known, ends("share"), source)
    shares = {"after_near_share_mean": "share", "after_near_gpu_time_share": "share"}
    metrics.put_rows("epochs.{outcome}", known, shares, source, "timed_jobs")
    near = tables["epochs"].filter(quantity="within_0.1_percent", epochs_share=0.4)
    metrics.put_rows("epochs.{outcome}", near, {"near_by_40_percent": ("jobs_share", "share")}, "tables/epochs.csv")
