"""How do the traces compare, on jobs that requested a GPU?"""

from dataclasses import replace

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import (
    REASON,
    Column,
    Table,
    count,
    number,
    reason,
    seconds,
    share,
    table,
    truth,
    whole_seconds,
    words,
)

_TRACE = {
    "trace": words("Trace", "Name of the trace."),
    "synthetic": truth("Synthetic", "Whether the trace is made up."),
    "unit": words("Unit", "Name of a job, or of a component at risk."),
}
_GIVES = {"gives": words("Gives", "`jobs`, or `durations` of components.")}
_GPUS = {
    "gpus": words("GPUs", "GPUs of the job, rounded up to whole ones; all: any number."),
    "gpus_low": count("GPUs from", "Fewest GPUs of the range.", blank="the row covers all"),
    "gpus_high": count("GPUs to", "Most GPUs of the range.", blank="the row covers all, or there is no upper limit"),
}
_JOBS = {"jobs": count("Jobs", "GPU jobs.", blank=REASON, unit="jobs")}
_OUTCOME = {"outcome": words("Outcome", "Outcome of the jobs.")}


def _comparison_table(name: str, description: str, /, **columns: Column) -> Table:
    return replace(table(f"compared_{name}", description, **columns), path=f"{name}.csv")


def _distribution_columns(prefix: str, quantity: str) -> dict[str, Column]:
    headings = {"p05": "5%", "p25": "25%", "median": "Median", "p75": "75%", "p90": "90%", "p95": "95%"}
    return {
        "n": count("n", f"Jobs whose {quantity} is known.", blank=REASON),
        f"{prefix}_mean_s": seconds("Mean", f"Mean {quantity} of the jobs.", blank=REASON),
        **{
            f"{prefix}_{name}_s": whole_seconds(heading, f"Quantile of the {quantity}, by nearest rank.", blank=REASON)
            for name, heading in headings.items()
        },
        "reason": reason(),
    }


OUTCOMES = _comparison_table(
    "outcomes",
    "Share of a trace's GPU jobs, and of their GPU time, by outcome.",
    **_TRACE,
    **_OUTCOME,
    **_JOBS,
    jobs_share=share("Share of GPU jobs", "Share of the GPU jobs of the trace.", blank=REASON),
    n=count("n", "Jobs whose GPU time is known.", blank=REASON),
    gpu_hours=number("GPU time", "GPUs requested times the observed run time.", blank=REASON, unit="GPU-hours"),
    gpu_hours_share=share("Share of their GPU time", "Share of the GPU time of all GPU jobs.", blank=REASON),
)
RUN_TIMES = _comparison_table(
    "run_times",
    "Run time of a trace's GPU jobs, by outcome.",
    **_TRACE,
    **_OUTCOME,
    **_JOBS,
    **_distribution_columns("runtime", "run time"),
)
QUEUEING = _comparison_table(
    "queueing",
    "Queueing delay of a trace's GPU jobs, by number of GPUs.",
    **_TRACE,
    **_GPUS,
    **_JOBS,
    **_distribution_columns("queue", "queueing delay"),
)
FAILURE_SHARE = _comparison_table(
    "failure_share",
    "Failure share of a trace's GPU jobs, by number of GPUs.",
    **_TRACE,
    **_GPUS,
    **_JOBS,
    ended=count("Ended", "Jobs that ended in success or failure.", blank=REASON, unit="jobs"),
    failures=count("Failures", "Jobs that failed.", blank=REASON, unit="jobs"),
    failure_share=share("Failure share", "Failures divided by ended jobs.", blank=REASON),
    ci_low=share("Interval from", "Lower bound of the 95% CI (Wilson).", blank=REASON),
    ci_high=share("Interval to", "Upper bound.", blank=REASON),
    **clustered_columns(share),
)
MTTF = _comparison_table(
    "mttf",
    "Mean time to failure of a trace's GPU jobs or components, by number of GPUs and confidence.",
    **_TRACE,
    **_GIVES,
    **_GPUS,
    n=count("At risk", "Jobs or components of known duration.", blank=REASON, unit="durations"),
    events=count("Failures", "Jobs or components that failed.", blank=REASON, unit="failures"),
    without_end=count("without an end", "Failures of unknown duration.", blank=REASON, unit="failures"),
    exposure_s=whole_seconds("Time at risk", "Sum of the durations.", blank=REASON),
    mttf_s=seconds("Mean time to failure", "Time at risk divided by failures.", blank=REASON),
    confidence=number("Confidence", "Confidence of the interval."),
    ci_low_s=seconds("Interval from", "Lower bound of the exact Poisson interval (Garwood).", blank=REASON),
    ci_high_s=seconds("Interval to", "Upper bound.", blank=REASON),
    **clustered_columns(seconds, "_s"),
    gpu_days=number("GPU-days", "Time at risk times GPUs.", blank=REASON, unit="GPU-days"),
    failures_per_1000_gpu_days=number(
        "per 1000 GPU-days", "Failures divided by GPU-days.", REASON, "per 1000 GPU-days"
    ),
    node_days=number("Node-days", "Time at risk times nodes.", blank=REASON, unit="node-days"),
    failures_per_1000_node_days=number(
        "per 1000 node-days", "Failures divided by node-days.", REASON, "per 1000 node-days"
    ),
)
_NO_JOBS = "the trace records components, no jobs"
TRACES = _comparison_table(
    "traces",
    "A trace of the study, with its number of jobs.",
    trace=_TRACE["trace"],
    unit=_TRACE["unit"],
    **_GIVES,
    synthetic=_TRACE["synthetic"],
    jobs=count("Jobs", "Jobs of the trace.", blank=_NO_JOBS, unit="jobs"),
    gpu_jobs=count("Requested a GPU", "Jobs that requested a GPU.", blank=_NO_JOBS, unit="jobs"),
    blank_request=count("Request blank", "Jobs without a recorded request.", blank=_NO_JOBS, unit="jobs"),
    timeouts=count("At time limit", "Failures of GPU jobs that a time limit ended.", _NO_JOBS, unit="jobs"),
)

ANALYSIS = Analysis(
    question="How do the traces compare, on jobs that requested a GPU?",
    theme="comparison",
    rank=10,
    needs=["durations"],
    uses=["jobs"],
    is_study_wide=True,
    threads=2,
    settings={"about": lambda study: {name: trace.compared for name, trace in study.traces.items()}},
    tables=(TRACES, OUTCOMES, RUN_TIMES, QUEUEING, FAILURE_SHARE, MTTF),
    charts={
        "run_times": "compared_run_times",
        "failure_share": "compared_failure_share",
        "mttf": "compared_mttf",
    },
    memory_mb=270,
)
