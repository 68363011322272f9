"""Numbers of each trace of the comparison."""

from ttf.analyses.comparison.compare_traces import FAILURE_SHARE, MTTF, OUTCOMES, QUEUEING, RUN_TIMES, TRACES
from ttf.display.metrics import CI, CI_S, cells

_TRACE_KEY, _OUTCOME_KEY = "of.{trace}", "of.{trace}.{outcome}"
_BOUNDS = "failure_share_low=ci_low failure_share_high=ci_high"
_RATES = "failures_per_1000_gpu_days failures_per_1000_node_days"
_MTTF = f"mttf_events=events mttf_s mttf_low_s=ci_low_s mttf_high_s=ci_high_s {_RATES}"
NUMBERS = [
    cells(TRACES, _TRACE_KEY, "jobs gpu_jobs blank_request timeouts", n="jobs", gives="jobs"),
    cells(OUTCOMES, _OUTCOME_KEY, "jobs_share gpu_hours_share", n=""),
    cells(FAILURE_SHARE, _TRACE_KEY, f"ended failures failure_share {_BOUNDS}", n="ended", gpus="all"),
    cells(FAILURE_SHARE, f"{_TRACE_KEY}.failure_share", CI, n="ended", gpus="all"),
    cells(RUN_TIMES, _OUTCOME_KEY, "runtime_mean_s runtime_median_s runtime_p90_s"),
    cells(QUEUEING, _TRACE_KEY, "queue_mean_s queue_median_s queue_p90_s", gpus="all"),
    cells(MTTF, _TRACE_KEY, "mttf_durations=n mttf_without_end=without_end", n="", gpus="all", confidence=0.95),
    cells(MTTF, _TRACE_KEY, _MTTF, gpus="all", confidence=0.95),
    cells(MTTF, f"{_TRACE_KEY}.mttf", CI_S, gpus="all", confidence=0.95),
]
