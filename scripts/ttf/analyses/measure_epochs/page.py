"""The table of epochs to the lowest loss."""

from collections.abc import Callable

import polars as pl

from ttf.analyses.measure_epochs import EPOCHS_SUMMARY
from ttf.report.tables import Interval, html_table
from ttf.report.trace import Trace


def tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """Per outcome how many jobs needed all epochs, and their time after they had come near the lowest loss."""
    summary = trace.table("epochs_summary").filter(pl.col("n") > 0)
    if not summary.height:
        return {}
    columns = {
        **dict.fromkeys(("outcome", "jobs_logged", "n", "needing_all")),
        "needing_all_share": Interval(low="ci_low", high="ci_high"),
        **dict.fromkeys(("timed_jobs", "after_near_share_mean", "after_near_gpu_time_share")),
    }
    return {"epochs": html_table(summary, columns, identifier("epochs"), contract=EPOCHS_SUMMARY)}
