"""How do the traces compare? Every cell is a cell of a table of the trace, so that it equals the trace's own page."""

from dataclasses import replace

from ttf.analyses.declaration import Analysis
from ttf.analyses.outcomes.split_outcomes import ENDED_JOBS, JOBS_SUMMARY, OUTCOMES_BY_GPUS
from ttf.analyses.outcomes.split_outcomes import OUTCOMES as OUTCOMES_OF_TRACE
from ttf.analyses.queue.describe_workload import PERCENTILES
from ttf.analyses.time_to_failure.fit_mttf import FAILURES_WITHOUT_END
from ttf.analyses.time_to_failure.fit_mttf import MTTF as MTTF_OF_TRACE
from ttf.engine.contract import REASON, Column, Table, count, reason, table, truth, words

# Sizes of jobs with rows of their own: a GPU, a common node, and its powers.
SIZES = (1, 8, 64, 512)
_TRACE = {
    "trace": words("Trace", "Name of the trace."),
    "synthetic": truth("Synthetic", "Whether the trace is made up."),
    "unit": words("Unit", "Name of a job, or of a component at risk."),
}
_GIVES = {"gives": words("Gives", "`jobs`, or `durations` of components.")}
_GPUS = {
    "gpus_low": count("GPUs from", "Fewest GPUs of the range.", blank="the row covers all"),
    "gpus_high": count("GPUs to", "Most GPUs of the range.", blank="the row covers all"),
}
# The cells of a row are blank if the trace does not have it.
_OUTCOME = {"outcome": words("Outcome", "Outcome of the jobs.")}


def _comparison_table(name: str, description: str, /, **columns: Column) -> Table:
    compared = table(f"compared_{name}", description, **columns, reason=reason())
    return replace(compared, path=f"{name}.csv", is_in_gpus=True)


def _copy_columns(source: Table, names: str, blank: str = REASON) -> dict[str, Column]:
    return {name: replace(source.columns[name], blank=blank, n="") for name in names.split()}


_TIMES = _copy_columns(PERCENTILES, "n mean_s p25_s p50_s p75_s p90_s p95_s")
_INTERVAL = "failure_share ci_low ci_high cluster_by clusters ci_low_clustered ci_high_clustered"
_MTTF = "n events exposure_s mttf_s confidence ci_low_s ci_high_s cluster_by clusters ci_low_clustered_s"
_RATES = "ci_high_clustered_s gpu_days failures_per_1000_gpu_days node_days failures_per_1000_node_days"
OUTCOMES = _comparison_table(
    "outcomes",
    "An outcome of a trace's jobs: their share, and the share of their GPU time, from outcomes.csv of the trace.",
    **_TRACE,
    **_OUTCOME,
    **_copy_columns(OUTCOMES_OF_TRACE, "jobs jobs_share gpu_hours gpu_hours_share n"),
)
RUN_TIMES = _comparison_table(
    "run_times",
    "Run time of a trace's jobs, by outcome, from percentiles.csv of the trace.",
    **_TRACE,
    **_OUTCOME,
    **_TIMES,
)
QUEUEING = _comparison_table(
    "queueing",
    "Wait of a trace's jobs, by number of GPUs, from percentiles.csv of the trace.",
    **_TRACE,
    gpus=words("GPUs", "GPUs of the job: 1, 2-4, 5-8, >8; all: any number."),
    **_TIMES,
)
FAILURE_SHARE = _comparison_table(
    "failure_share",
    "Failure share of a trace's jobs, of all and by size, from ended_jobs.csv and outcomes_by_gpus.csv of the trace.",
    **_TRACE,
    **_GPUS,
    **_copy_columns(OUTCOMES_BY_GPUS, f"ended failures {_INTERVAL}"),
)
MTTF = _comparison_table(
    "mttf",
    "Mean time to failure of a trace's jobs or components, of all and by size, from mttf.csv of the trace.",
    **_TRACE,
    **_GIVES,
    **_GPUS,
    **_copy_columns(MTTF_OF_TRACE, f"{_MTTF} {_RATES}"),
    **_copy_columns(FAILURES_WITHOUT_END, "without_end"),
)
_NO_JOBS = "the trace records components, no jobs"
TRACES = _comparison_table(
    "traces",
    "A trace of the study, with its number of jobs, from jobs_summary.csv and ended_jobs.csv of the trace.",
    **_TRACE,
    **_GIVES,
    **_copy_columns(JOBS_SUMMARY, "jobs gpu_jobs", _NO_JOBS),
    **_copy_columns(ENDED_JOBS, "ended failures timeouts", f"{_NO_JOBS}, or no time limit"),
)

# Tables of a trace that the comparison reads.
READ = (JOBS_SUMMARY, ENDED_JOBS, OUTCOMES_OF_TRACE, OUTCOMES_BY_GPUS, PERCENTILES, MTTF_OF_TRACE, FAILURES_WITHOUT_END)


def _list_traces_by_table(study) -> dict[str, list[str]]:
    return {source.name: [name for name in study.traces if study.find_file(name, source.name)] for source in READ}


ANALYSIS = Analysis(
    question="How do the traces compare?",
    theme="comparison",
    rank=10,
    uses=[source.name for source in READ],
    is_study_wide=True,
    settings={
        "about": lambda study: {name: trace.comparison_facts for name, trace in study.traces.items()},
        "traces_by_table": _list_traces_by_table,
    },
    tables=(TRACES, OUTCOMES, RUN_TIMES, QUEUEING, FAILURE_SHARE, MTTF),
    charts={
        "run_times": "compared_run_times",
        "failure_share": "compared_failure_share",
        "mttf": "compared_mttf",
    },
    memory_mb=250,
)
