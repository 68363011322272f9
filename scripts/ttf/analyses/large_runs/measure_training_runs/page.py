"""Tables of training runs in the report."""

import polars as pl

from ttf.analyses.large_runs.measure_training_runs import (
    TRAINING_CAUSES,
    TRAINING_INTERRUPTIONS,
    TRAINING_RUNS,
    TRAINING_SLOWDOWNS,
)
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace

MOST_ROWS = 15


def tables(trace: Trace) -> dict[str, PageTable]:
    runs = trace.table("training_runs").sort("wall_s", descending=True, nulls_last=True, maintain_order=True)
    run_columns = (
        "run",
        "attempts",
        "interruptions",
        "wall_s",
        "goodput",
        "goodput_high",
        "ettr",
        "step_s",
        "lost_steps",
    )
    cause_columns = (
        *("cause", "interruptions", "crash_loops", "lost_steps", "lost_gpu_hours", "recovery_p50_s", "recovery_p90_s"),
    )
    columns = (
        "run",
        "cause",
        "node_event",
        "restart",
        "detection_s",
        "down_s",
        "queued_s",
        "restart_s",
        "recovery_s",
    )
    interruptions = trace.table("training_interruptions").sort("recovery_s", descending=True, nulls_last=True)
    changes = trace.table("training_slowdowns").sort(pl.col("change").abs(), descending=True)
    return {
        "training-runs": PageTable(runs.head(MOST_ROWS), run_columns, TRAINING_RUNS),
        "training-causes": PageTable(trace.table("training_causes").head(MOST_ROWS), cause_columns, TRAINING_CAUSES),
        "training-interruptions": PageTable(interruptions.head(MOST_ROWS), columns, TRAINING_INTERRUPTIONS),
        "training-slowdowns": PageTable(
            changes.head(MOST_ROWS), ("run", "attempt", "step", "before_s", "after_s", "change"), TRAINING_SLOWDOWNS
        ),
    }
