"""The numbers of each trace of the comparison."""

from ttf.analyses.comparison.compare_traces import FAILURE_SHARE, MTTF, OUTCOMES, QUEUEING, RUN_TIMES, TRACES
from ttf.display.metrics import CI, CI_S, cells

_TRACE, _OUTCOME, _ALL, _95 = "of.{trace}", "of.{trace}.{outcome}", {"gpus": "all"}, {"confidence": 0.95}
_ENDS = "failure_share_low=ci_low failure_share_high=ci_high"
_MTTF = "mttf_events=events mttf_s mttf_low_s=ci_low_s mttf_high_s=ci_high_s"
NUMBERS = [
    cells(TRACES, _TRACE, "jobs gpu_jobs blank_request timeouts", n="jobs", gives="jobs"),
    cells(OUTCOMES, _OUTCOME, "jobs_share gpu_hours_share", n=""),
    cells(FAILURE_SHARE, _TRACE, f"ended failures failure_share {_ENDS}", n="ended", **_ALL),
    cells(FAILURE_SHARE, f"{_TRACE}.failure_share", CI, n="ended", **_ALL),
    cells(RUN_TIMES, _OUTCOME, "runtime_mean_s runtime_median_s runtime_p90_s"),
    cells(QUEUEING, _TRACE, "queue_mean_s queue_median_s queue_p90_s", **_ALL),
    cells(MTTF, _TRACE, "mttf_lives=n mttf_without_end=without_end", n="", **_ALL, **_95),
    cells(MTTF, _TRACE, f"{_MTTF} failures_per_1000_gpu_days failures_per_1000_node_days", **_ALL, **_95),
    cells(MTTF, f"{_TRACE}.mttf", CI_S, **_ALL, **_95),
]
