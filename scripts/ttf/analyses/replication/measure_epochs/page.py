"""The table of epochs to the lowest loss."""

import polars as pl

from ttf.analyses.replication.measure_epochs import EPOCHS_SUMMARY
from ttf.display.report_tables import CLUSTERED, PageTable
from ttf.display.report_trace import Trace


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return by outcome how many jobs needed all epochs, and their time after the near epoch."""
    summary = trace.table("epochs_summary").filter(pl.col("n") > 0)
    columns = {
        **dict.fromkeys(("outcome", "jobs_logged", "n", "needing_all")),
        "needing_all_share": CLUSTERED,
        **dict.fromkeys(("timed_jobs", "after_near_share_mean", "after_near_gpu_time_share")),
    }
    return {"epochs": PageTable(summary, columns, EPOCHS_SUMMARY)}
