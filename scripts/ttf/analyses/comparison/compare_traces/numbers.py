"""Numbers of each trace of the comparison."""

import polars as pl

from ttf.analyses.comparison.compare_traces import FAILURE_SHARE, MTTF, OUTCOMES, QUEUEING, RUN_TIMES, TRACES
from ttf.display.metrics import CI, CI_S, cells

_TRACE_KEY, _OUTCOME_KEY = "of.{trace}", "of.{trace}.{outcome}"
_BOUNDS = "failure_share_low=ci_low failure_share_high=ci_high"
_RATES = "failures_per_1000_gpu_days failures_per_1000_node_days"
_MTTF = f"mttf_events=events mttf_s mttf_low_s=ci_low_s mttf_high_s=ci_high_s {_RATES}"
_ALL = pl.col("gpus_high").is_null()
NUMBERS = [
    cells(TRACES, _TRACE_KEY, "jobs gpu_jobs timeouts", n="jobs", gives="jobs"),
    cells(OUTCOMES, _OUTCOME_KEY, "jobs_share gpu_hours_share", n=""),
    cells(FAILURE_SHARE, _TRACE_KEY, f"ended failures failure_share {_BOUNDS}", _ALL, n="ended"),
    cells(FAILURE_SHARE, f"{_TRACE_KEY}.failure_share", CI, _ALL, n="ended"),
    cells(RUN_TIMES, _OUTCOME_KEY, "runtime_mean_s=mean_s runtime_median_s=p50_s runtime_p90_s=p90_s"),
    cells(QUEUEING, _TRACE_KEY, "queue_mean_s=mean_s queue_median_s=p50_s queue_p90_s=p90_s", gpus="all"),
    cells(MTTF, _TRACE_KEY, "mttf_durations=n mttf_without_end=without_end", _ALL, n="", confidence=0.95),
    cells(MTTF, _TRACE_KEY, _MTTF, _ALL, confidence=0.95),
    cells(MTTF, f"{_TRACE_KEY}.mttf", CI_S, _ALL, confidence=0.95),
]
