"""How do the traces compare, on jobs that asked for a GPU?"""

from dataclasses import replace

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, seconds, share, table, text, truth, whole_seconds


def _compared(name, about, /, **columns):
    return replace(table(f"compared_{name}", about, **columns), path=f"{name}.csv")


OUTCOMES = _compared(
    "outcomes",
    "TODO",
    trace=text("Trace", "TODO"),
    synthetic=truth("Synthetic", "TODO"),
    unit=text("Unit", "TODO"),
    outcome=text("Outcome", "TODO"),
    jobs=count("Jobs", "TODO", blank="TODO"),
    jobs_share=share("Jobs share", "TODO", blank="TODO"),
    n=count("N", "TODO", blank="TODO"),
    gpu_hours=number("Gpu hours", "TODO", blank="TODO"),
    gpu_hours_share=share("Gpu hours share", "TODO", blank="TODO"),
    reason=reason(),
)
RUN_TIMES = _compared(
    "run_times",
    "TODO",
    trace=text("Trace", "TODO"),
    synthetic=truth("Synthetic", "TODO"),
    unit=text("Unit", "TODO"),
    outcome=text("Outcome", "TODO"),
    jobs=count("Jobs", "TODO", blank="TODO"),
    n=count("N", "TODO", blank="TODO"),
    runtime_mean_s=seconds("Runtime mean", "TODO", blank="TODO"),
    runtime_p05_s=whole_seconds("Runtime p05", "TODO", blank="TODO"),
    runtime_p25_s=whole_seconds("Runtime p25", "TODO", blank="TODO"),
    runtime_median_s=whole_seconds("Runtime median", "TODO", blank="TODO"),
    runtime_p75_s=whole_seconds("Runtime p75", "TODO", blank="TODO"),
    runtime_p90_s=whole_seconds("Runtime p90", "TODO", blank="TODO"),
    runtime_p95_s=whole_seconds("Runtime p95", "TODO", blank="TODO"),
    reason=reason(),
)
QUEUEING = _compared(
    "queueing",
    "TODO",
    trace=text("Trace", "TODO"),
    synthetic=truth("Synthetic", "TODO"),
    unit=text("Unit", "TODO"),
    gpus=text("Gpus", "TODO"),
    gpus_low=count("Gpus low", "TODO", blank="TODO"),
    gpus_high=count("Gpus high", "TODO", blank="TODO"),
    jobs=count("Jobs", "TODO"),
    n=count("N", "TODO"),
    queue_mean_s=seconds("Queue mean", "TODO", blank="TODO"),
    queue_p05_s=whole_seconds("Queue p05", "TODO", blank="TODO"),
    queue_p25_s=whole_seconds("Queue p25", "TODO", blank="TODO"),
    queue_median_s=whole_seconds("Queue median", "TODO", blank="TODO"),
    queue_p75_s=whole_seconds("Queue p75", "TODO", blank="TODO"),
    queue_p90_s=whole_seconds("Queue p90", "TODO", blank="TODO"),
    queue_p95_s=whole_seconds("Queue p95", "TODO", blank="TODO"),
    reason=reason(),
)
FAILURE_SHARE = _compared(
    "failure_share",
    "TODO",
    trace=text("Trace", "TODO"),
    synthetic=truth("Synthetic", "TODO"),
    unit=text("Unit", "TODO"),
    gpus=text("Gpus", "TODO"),
    gpus_low=count("Gpus low", "TODO", blank="TODO"),
    gpus_high=count("Gpus high", "TODO", blank="TODO"),
    jobs=count("Jobs", "TODO"),
    ended=count("Ended", "TODO"),
    failures=count("Failures", "TODO"),
    failure_share=share("Failure share", "TODO", blank="TODO"),
    ci_low=number("Ci low", "TODO", blank="TODO"),
    ci_high=number("Ci high", "TODO", blank="TODO"),
    reason=reason(),
)
MTTF = _compared(
    "mttf",
    "TODO",
    trace=text("Trace", "TODO"),
    synthetic=truth("Synthetic", "TODO"),
    unit=text("Unit", "TODO"),
    gives=text("Gives", "TODO"),
    gpus=text("Gpus", "TODO"),
    gpus_low=count("Gpus low", "TODO", blank="TODO"),
    gpus_high=count("Gpus high", "TODO", blank="TODO"),
    n=count("N", "TODO"),
    events=count("Events", "TODO", blank="TODO"),
    without_end=count("Without end", "TODO"),
    exposure_s=whole_seconds("Exposure", "TODO", blank="TODO"),
    mttf_s=seconds("Mttf", "TODO", blank="TODO"),
    confidence=number("Confidence", "TODO"),
    ci_low_s=seconds("Ci low", "TODO", blank="TODO"),
    ci_high_s=seconds("Ci high", "TODO", blank="TODO"),
    gpu_days=number("Gpu days", "TODO", blank="TODO"),
    failures_per_1000_gpu_days=number("Failures per 1000 gpu days", "TODO", blank="TODO"),
    node_days=number("Node days", "TODO", blank="TODO"),
    failures_per_1000_node_days=number("Failures per 1000 node days", "TODO", blank="TODO"),
    reason=reason(),
)
TRACES = _compared(
    "traces",
    "TODO",
    trace=text("Trace", "TODO"),
    unit=text("Unit", "TODO"),
    gives=text("Gives", "TODO"),
    synthetic=truth("Synthetic", "TODO"),
    jobs=count("Jobs", "TODO", blank="TODO"),
    gpu_jobs=count("GPU jobs", "TODO", blank="TODO"),
    blank_request=count("Request blank", "TODO", blank="TODO"),
    timeouts=count("At time limit", "TODO", blank="TODO"),
)

ANALYSIS = Analysis(
    question="How do the traces compare, on jobs that asked for a GPU?",
    theme="comparison",
    rank=10,
    needs=["lives"],
    uses=["jobs"],
    of_study=True,
    threads=2,
    settings={"about": lambda study: {name: trace.compared for name, trace in study.traces.items()}},
    tables=(TRACES, OUTCOMES, RUN_TIMES, QUEUEING, FAILURE_SHARE, MTTF),
    charts={
        "outcomes": "compared_outcomes",
        "run_times": "compared_run_times",
        "queueing": "compared_queueing",
        "failure_share": "compared_failure_share",
        "mttf": "compared_mttf",
    },
    memory_mb=270,
)
