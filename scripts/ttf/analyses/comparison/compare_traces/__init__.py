"""How do the traces compare, on jobs that requested a GPU?"""

from dataclasses import replace

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered
from ttf.engine.contract import REASON, count, number, reason, seconds, share, table, truth, whole_seconds, words

_TRACE = {
    "trace": words("Trace", "Name of the trace."),
    "synthetic": truth("Synthetic", "Whether the trace is made up."),
    "unit": words("Unit", "What a job, or a component at risk, is called."),
}
_GIVES = {"gives": words("Gives", "`jobs`, or `lives` of components.")}
_GPUS = {
    "gpus": words("GPUs", "GPUs of the job, whole ones rounded up; all: of any number."),
    "gpus_low": count("GPUs from", "Fewest GPUs of the range.", blank="the row is of all"),
    "gpus_high": count("GPUs to", "Most GPUs of the range.", blank="the row is of all, or there is no most"),
}
_JOBS = {"jobs": count("Jobs", "GPU jobs.", blank=REASON, unit="jobs")}
_OUTCOME = {"outcome": words("Outcome", "Outcome of the jobs.")}


def _compared(name, about, /, **columns):
    return replace(table(f"compared_{name}", about, **columns), path=f"{name}.csv")


def _distribution(prefix, what):
    """n, mean and quantiles of a time."""
    headings = {"p05": "5%", "p25": "25%", "median": "Median", "p75": "75%", "p90": "90%", "p95": "95%"}
    return {
        "n": count("n", f"Those of the jobs whose {what} is known.", blank=REASON),
        f"{prefix}_mean_s": seconds("Mean", f"Mean {what} of the jobs.", blank=REASON),
        **{
            f"{prefix}_{name}_s": whole_seconds(heading, f"Quantile of the {what}, by nearest rank.", blank=REASON)
            for name, heading in headings.items()
        },
        "reason": reason(),
    }


OUTCOMES = _compared(
    "outcomes",
    "A trace and an outcome: the share of its GPU jobs and of their GPU time.",
    **_TRACE,
    **_OUTCOME,
    **_JOBS,
    jobs_share=share("Share of GPU jobs", "Of the GPU jobs of the trace.", blank=REASON),
    n=count("n", "Those of the jobs whose GPU time is known.", blank=REASON),
    gpu_hours=number("GPU time", "GPUs requested times the time seen to run.", blank=REASON, unit="GPU-hours"),
    gpu_hours_share=share("Share of their GPU time", "Of that of the GPU jobs of the trace.", blank=REASON),
)
RUN_TIMES = _compared(
    "run_times",
    "A trace and an outcome: how long its GPU jobs ran.",
    **_TRACE,
    **_OUTCOME,
    **_JOBS,
    **_distribution("runtime", "run time"),
)
QUEUEING = _compared(
    "queueing",
    "A trace and a number of GPUs: how long its GPU jobs waited in the queue.",
    **_TRACE,
    **_GPUS,
    **_JOBS,
    **_distribution("queue", "queueing delay"),
)
FAILURE_SHARE = _compared(
    "failure_share",
    "A trace and a number of GPUs: the share of its GPU jobs that failed.",
    **_TRACE,
    **_GPUS,
    **_JOBS,
    ended=count("Ended", "Those that ended in success or failure.", blank=REASON, unit="jobs"),
    failures=count("Failures", "Those that failed.", blank=REASON, unit="jobs"),
    failure_share=share("Failure share", "Failures over ended.", blank=REASON),
    ci_low=share("Interval from", "Lower end of its 95% CI (Wilson).", blank=REASON),
    ci_high=share("Interval to", "Its upper end.", blank=REASON),
    **clustered(share),
)
MTTF = _compared(
    "mttf",
    "A trace, a number of GPUs and a confidence: the mean time to failure of its GPU jobs or components.",
    **_TRACE,
    **_GIVES,
    **_GPUS,
    n=count("At risk", "Jobs or components of known duration.", blank=REASON, unit="lives"),
    events=count("Failures", "Those that ended by a failure.", blank=REASON, unit="failures"),
    without_end=count("without an end", "Failures of unknown duration.", blank=REASON, unit="failures"),
    exposure_s=whole_seconds("Time at risk", "Sum of the durations.", blank=REASON),
    mttf_s=seconds("Mean time to failure", "Time at risk over failures.", blank=REASON),
    confidence=number("Confidence", "Of the interval."),
    ci_low_s=seconds("Interval from", "Lower end of the exact Poisson interval (Garwood).", blank=REASON),
    ci_high_s=seconds("Interval to", "Its upper end.", blank=REASON),
    **clustered(seconds, "_s"),
    gpu_days=number("GPU-days", "Time at risk times GPUs.", blank=REASON, unit="GPU-days"),
    failures_per_1000_gpu_days=number("per 1000 GPU-days", "Failures over gpu_days.", REASON, "per 1000 GPU-days"),
    node_days=number("Node-days", "Time at risk times nodes.", blank=REASON, unit="node-days"),
    failures_per_1000_node_days=number("per 1000 node-days", "Failures over node_days.", REASON, "per 1000 node-days"),
)
_OF_COMPONENTS = "the trace gives components, no jobs"
TRACES = _compared(
    "traces",
    "A trace of the study and how many jobs it has.",
    trace=_TRACE["trace"],
    unit=_TRACE["unit"],
    **_GIVES,
    synthetic=_TRACE["synthetic"],
    jobs=count("Jobs", "Jobs of the trace.", blank=_OF_COMPONENTS, unit="jobs"),
    gpu_jobs=count("Requested a GPU", "Jobs that requested a GPU.", blank=_OF_COMPONENTS, unit="jobs"),
    blank_request=count("Request blank", "Jobs of which the trace does not say.", blank=_OF_COMPONENTS, unit="jobs"),
    timeouts=count("At time limit", "Failures of GPU jobs that a time limit ended.", _OF_COMPONENTS, unit="jobs"),
)

ANALYSIS = Analysis(
    question="How do the traces compare, on jobs that requested a GPU?",
    theme="comparison",
    rank=10,
    needs=["lives"],
    uses=["jobs"],
    of_study=True,
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
