"""How do jobs end, and after what run time?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import NO_CLUSTERS, clustered_columns, wilson_columns
from ttf.engine.contract import REASON, count, number, parquet, reason, seconds, share, table, whole_seconds, words

_OUTCOMES = {
    "outcome": words("Outcome", "success, failure, cancelled, unknown (ended without a result), running or waiting."),
    "jobs": count("Jobs", "Jobs of this outcome.", unit="jobs"),
    "jobs_share": share("Share", "Share of all jobs.", blank=REASON),
    "gpu_hours": number("GPU-hours", "Sum of GPUs requested times observed run time.", unit="h"),
    "gpu_hours_share": share("Share", "Share of the GPU-hours of all jobs.", blank=REASON),
    "runtime_mean_s": seconds("Mean run time", "Mean over n jobs; for running jobs, the time so far.", blank=REASON),
    "runtime_median_s": seconds("Median", "Median run time of n jobs.", blank=REASON),
    "runtime_p90_s": seconds("90th percentile", "90th percentile of the run times of n jobs.", blank=REASON),
    "n": count("n", "Jobs of this outcome with a known run time.", unit="jobs"),
    "at_time_limit": count("At time limit", "Jobs ended by a time limit.", blank=REASON, unit="jobs"),
    "reason": reason(),
}
_NO_MEDIAN = "the row is not of success or failure, or the interval is not known"
OUTCOMES = table(
    "outcomes",
    "One row per outcome of all jobs; success and failure always have a row.",
    **{name: column for name, column in _OUTCOMES.items() if name != "reason"},
    runtime_median_low_s=whole_seconds("Median from", "Lower bound of the 95% CI of the median, by ranks.", _NO_MEDIAN),
    runtime_median_high_s=whole_seconds("to", "Upper bound of the interval.", _NO_MEDIAN),
    runtime_median_low_clustered_s=seconds("from, clustered", "Lower bound of the clustered interval.", _NO_MEDIAN),
    runtime_median_high_clustered_s=seconds("to, clustered", "Upper bound of the interval.", _NO_MEDIAN),
    cluster_by=words("Clustered by", "Kind of clusters, such as user and week.", _NO_MEDIAN),
    clusters=number("Effective clusters", "Effective number of clusters.", _NO_MEDIAN),
)
_NONE_ENDED, _NO_LIMITS = "no job ended", "no status says that a time limit ended a job, or none did"
_NOT_ONE = "no user, group or request profile has more than half of the failures"
_NO_UNKNOWN = "every end has a recorded result"
_SHARE = {
    "failure_share": share("Failed", "Failures divided by ended jobs.", _NONE_ENDED, n="ended"),
    "failure_share_low": share("95% from", "Lower bound of Wilson's interval.", _NONE_ENDED, n="ended"),
    "failure_share_high": share("95% to", "Upper bound of the interval.", _NONE_ENDED, n="ended"),
    "cluster_by": words("Clustered by", "Kind of clusters, such as user and week.", NO_CLUSTERS),
    "clusters": number("Effective clusters", "Effective number of clusters.", NO_CLUSTERS),
    "failure_share_low_clustered": share(
        "from, clustered", "Lower bound of the clustered interval.", NO_CLUSTERS, n="ended"
    ),
    "failure_share_high_clustered": share("to, clustered", "Upper bound of the interval.", NO_CLUSTERS, n="ended"),
}
ENDED_JOBS = table(
    "ended_jobs",
    "One row for all jobs: how many ended, and how many of these failed.",
    jobs=count("Jobs", "All jobs.", unit="jobs"),
    ended=count("Ended", "Jobs that ended in success or failure.", unit="jobs"),
    open=count("Open", "Running or waiting.", unit="jobs"),
    ended_share=share("Ended", "Share of all jobs.", "there is no job", n="jobs"),
    unresolved_share=share(
        "Unresolved", "Share of jobs that neither ended nor were cancelled.", "there is no job", n="jobs"
    ),
    **_SHARE,
    ended_or_unknown=count("Ended or unknown", "Ended jobs, including those with no result recorded.", unit="jobs"),
    failure_share_at_least=share(
        "At least", "Failure share if unknown jobs succeeded.", _NO_UNKNOWN, n="ended_or_unknown"
    ),
    failure_share_at_most=share("at most", "Failure share if unknown jobs failed.", _NO_UNKNOWN, n="ended_or_unknown"),
    failures=count("Failures", "Jobs that failed.", unit="jobs", n="ended"),
    timeouts=count("Time limits", "Failures caused by a time limit.", _NO_LIMITS, "jobs", n="failures"),
    timeout_share=share("Time limits", "Share of the failures.", _NO_LIMITS, n="failures"),
    failures_without_timeout=count("Other failures", "Failures for other reasons.", _NO_LIMITS, "jobs", n="ended"),
    failure_share_without_timeout=share(
        "Failed otherwise", "Other failures divided by ended jobs.", _NO_LIMITS, n="ended"
    ),
    concentrated_by=words("Concentrated by", "User or other cluster with more than half of the failures.", _NOT_ONE),
    concentrated_failures=count(
        "Concentrated failures", "Failures of this user or cluster.", _NOT_ONE, "failures", n="failures"
    ),
    concentrated_share=share(
        "Share of the failures", "Share of all failures from this user or cluster.", _NOT_ONE, n="failures"
    ),
    ended_without=count("Ended without it", "Ended jobs without this user or cluster.", _NOT_ONE, "jobs"),
    failure_share_without=share("Failed without it", "Failure share of all other jobs.", _NOT_ONE, n="ended_without"),
)
ENDED_BY_NODE = table(
    "ended_by_node",
    "One row per size, at most the GPUs of a common node or more: how many jobs ended, and how many failed.",
    size=words("Size", "up_to_8_gpus or above_8_gpus."),
    ended=count("Ended", "Jobs that ended in success or failure.", unit="jobs"),
    **_SHARE,
)
_NO_QUEUE, _NO_TIMES = "no wait is known", "the trace gives no times"
_ONE_SOURCE = "the format has one source of times"
JOBS_SUMMARY = table(
    "jobs_summary",
    "One row: all jobs as recorded, their users and nodes, and the period of the trace.",
    jobs=count("Jobs", "All jobs.", unit="jobs"),
    gpu_jobs=count("With GPUs", "Jobs that requested a GPU.", unit="jobs", n="jobs"),
    jobs_without_gpu=count("Without GPUs", "Jobs that requested no GPU.", unit="jobs", n="jobs"),
    users=count("Users", "Users who submitted jobs.", "the trace names none", "users", n="jobs_of_users"),
    jobs_of_users=count("Jobs of users", "Jobs whose user is known.", unit="jobs"),
    nodes=count("Nodes", "Nodes that the trace lists.", "the trace lists none", "nodes"),
    gpus=count("GPUs", "GPUs of the cluster's nodes.", "the trace lists none", "GPUs", n="nodes"),
    from_s=whole_seconds("From", "First submission, on the clock of the trace.", _NO_TIMES),
    to_s=whole_seconds("To", "End of the trace.", _NO_TIMES),
    span_s=whole_seconds("Span", "Time from the first submission to the end of the trace.", _NO_TIMES, n="jobs"),
    days=count("Days", "Observed days, rounded up.", _NO_TIMES, "days"),
    runtime_from_task=count(
        "Run time of the task", "Jobs whose run time comes from the task table.", _ONE_SOURCE, "jobs", n="jobs"
    ),
    runtime_from_siblings=count(
        "Run time of siblings",
        "Jobs whose run time extends to the end of other instances.",
        _ONE_SOURCE,
        "jobs",
        n="jobs",
    ),
    negative_queue=count("Negative waits", "Jobs that start before they are submitted.", _ONE_SOURCE, "jobs", n="jobs"),
    negative_run=count("Negative run times", "Jobs that end before they start.", _ONE_SOURCE, "jobs", n="jobs"),
    retried=count("Retried", "Jobs with more than one attempt.", _ONE_SOURCE, "jobs", n="jobs"),
    timed=count("Timed", "Jobs with a known run time.", unit="jobs"),
    timeouts=count("Time limits", "Failures at a time limit with a known run time.", unit="failures", n="timed"),
    running_time_share=share(
        "Running", "Share of the observed run time that belongs to running jobs.", "no time is known", n="timed"
    ),
    unknown_time_share=share(
        "Unknown result", "Share of run time in jobs with unknown result.", "no time is known", n="timed"
    ),
    waits=count("Waits", "Jobs with a known wait.", unit="jobs"),
    queue_median_s=seconds("Median wait", "Median wait.", _NO_QUEUE, n="waits"),
    queue_p90_s=seconds("90th percentile", "90th percentile, linear between ranks.", _NO_QUEUE, n="waits"),
    equal_times=count("Equal times", "Jobs that start when they are submitted.", unit="jobs"),
    no_queue=words("No waits", "Why there is no wait.", "waits are known, or no start is", n="equal_times"),
)
OUTCOMES_GPU = table("outcomes_gpu", "One row per outcome of the jobs that requested a GPU.", **_OUTCOMES)
OUTCOMES_BY_GPUS = table(
    "outcomes_by_gpus",
    "One row per size (1, 2, 3 to 4, 5 to 8 GPUs and so on; 0: none requested, or unknown): failures among ended jobs.",
    gpus_low=count("GPUs from", "Fewest GPUs of the job; a share of one counts as 1.", unit="GPUs"),
    gpus_high=count("GPUs to", "Most GPUs of the job.", unit="GPUs"),
    jobs=count("Jobs", "Jobs of this size.", unit="jobs"),
    ended=count("Ended", "Jobs that ended in success or failure.", unit="jobs"),
    failures=count("Failures", "Jobs that failed.", unit="jobs"),
    failure_share=share("Failed", "Failures divided by ended jobs.", blank=REASON),
    **wilson_columns(blank=REASON),
    **clustered_columns(share),
)
RUNTIME_QUANTILES = table(
    "runtime_quantiles",
    "One row per quantile (nearest rank) of the run times of an outcome: 201 for each outcome with any.",
    outcome=words("Outcome", "Outcome of the jobs."),
    n=count("n", "Jobs of the outcome with a known run time.", unit="jobs"),
    share=share("Share", "Share of jobs with at most this run time."),
    runtime_s=whole_seconds("Run time", "Run time at this quantile; running jobs count with the time so far."),
)
SUCCESS = parquet("success", "A job that succeeded.", "success.parquet", open=True)
FAILURE = parquet("failure", "A job that failed.", "failure.parquet", open=True)
UNRESOLVED = parquet("unresolved", "A job that is unknown, running or waiting.", "unresolved.parquet", open=True)
CANCELLED = parquet("cancelled", "A job that was cancelled.", "cancelled.parquet", open=True)

ANALYSIS = Analysis(
    question="How do jobs end, and after what run time?",
    theme="outcomes",
    rank=10,
    needs=["jobs", "nodes"],
    settings={"words": lambda trace: trace.words},
    tables=[
        *(OUTCOMES, OUTCOMES_GPU, OUTCOMES_BY_GPUS, ENDED_JOBS, ENDED_BY_NODE, JOBS_SUMMARY, RUNTIME_QUANTILES),
        *(SUCCESS, FAILURE, UNRESOLVED, CANCELLED),
    ],
    charts={
        "jobs_and_gpu_time": "outcomes",
        "failure_rate_by_gpus": ["outcomes_by_gpus", "outcomes"],
        "runtime_distribution": ["runtime_quantiles", "outcomes"],
    },
    main=("jobs_and_gpu_time",),
    sections=["outcomes", "run_times"],
    in_size_unit=True,
    memory_mb=460,
    mb_per_gb={"pai2020": 10},
)
