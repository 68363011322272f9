"""Numbers of outcomes, median run times, jobs, users and nodes."""

import polars as pl

from ttf.analyses.outcomes.split_outcomes import ENDED_BY_NODE, ENDED_JOBS, JOBS_SUMMARY, OUTCOMES, OUTCOMES_BY_GPUS
from ttf.display.metrics import CI, CLUSTERS, FEWEST_ENDED, cells

_MEDIANS = " ".join(f"runtime_median_{end}{kind}_s" for kind in ("", "_clustered") for end in ("low", "high"))
_ENDS = " ".join(f"failure_share_{end}{kind}" for kind in ("", "_clustered") for end in ("low", "high"))
_SHARE = f"failure_share {_ENDS} {CLUSTERS}"
_ENDED = "jobs ended open ended_share unresolved_share failure_share_at_least failure_share_at_most"
_LIMITS = "timeouts timeout_share failures_without_timeout failure_share_without_timeout"
_CONCENTRATION = "by=concentrated_by failures=concentrated_failures share=concentrated_share failure_share_without"
_JOBS = "jobs gpu_jobs jobs_without_gpu users nodes gpus span_s running_time_share unknown_time_share"
_SOURCES = "runtime_from_task runtime_from_siblings negative_queue negative_run retried"

NUMBERS = [
    cells(JOBS_SUMMARY, "data", f"{_JOBS} {_SOURCES}"),
    cells(JOBS_SUMMARY, "period", "from_s to_s days"),
    cells(JOBS_SUMMARY, "survival", "timeouts"),
    cells(JOBS_SUMMARY, "queue", "median=queue_median_s p90=queue_p90_s reason=no_queue"),
    cells(OUTCOMES, "outcomes.{outcome}", "jobs with_runtime=n jobs_share", n="jobs"),
    cells(OUTCOMES, "outcomes.{outcome}", f"gpu_hours gpu_hours_share runtime_median_s {_MEDIANS} {CLUSTERS}"),
    cells(ENDED_JOBS, "outcomes", f"{_ENDED} {_SHARE} {_LIMITS}"),
    cells(ENDED_JOBS, "outcomes.concentration", _CONCENTRATION),
    cells(ENDED_BY_NODE, "outcomes.{size}", f"ended {_SHARE}"),
    cells(
        OUTCOMES_BY_GPUS,
        "outcomes.no_gpu",
        f"ended failure_share {CI}",
        pl.col("ended") >= FEWEST_ENDED,
        n="ended",
        gpus_high=0,
    ),
]
