"""How do jobs end, and after what run time?"""

from ttf.analysis import Analysis
from ttf.columns import clustered, wilson
from ttf.contract import REASON, count, number, parquet, reason, seconds, share, table, whole_seconds, words

_OUTCOMES = {
    "outcome": words(
        "Outcome", "success, failure, cancelled, unknown (ended, no result recorded), running or waiting."
    ),
    "jobs": count("Jobs", "Jobs of this outcome.", unit="jobs"),
    "jobs_share": share("Share", "Of all jobs.", blank=REASON),
    "gpu_hours": number("GPU-hours", "GPUs requested times the time seen to run, summed.", unit="h"),
    "gpu_hours_share": share("Share", "Of the GPU-hours of all jobs.", blank=REASON),
    "runtime_mean_s": seconds("Mean run time", "Of n jobs; of running jobs the time so far.", blank=REASON),
    "runtime_median_s": seconds("Median", "Of the run times of n jobs.", blank=REASON),
    "runtime_p90_s": seconds("90th percentile", "Of the run times of n jobs, linear between ranks.", blank=REASON),
    "n": count("n", "Jobs of this outcome with a known run time.", unit="jobs"),
    "at_time_limit": count("At time limit", "Jobs that a time limit ended.", blank=REASON, unit="jobs"),
    "reason": reason(),
}
OUTCOMES = table("outcomes", "An outcome, of all jobs; success and failure always have a row.", **_OUTCOMES)
OUTCOMES_GPU = table("outcomes_gpu", "An outcome, of the jobs that requested a GPU.", **_OUTCOMES)
OUTCOMES_BY_GPUS = table(
    "outcomes_by_gpus",
    "Failures among the ended jobs of one size: 1, 2, 3 to 4, 5 to 8 GPUs and so on; 0: none requested, or unknown.",
    gpus_low=count("GPUs from", "Fewest GPUs of the job; a share of one counts as 1.", unit="GPUs"),
    gpus_high=count("GPUs to", "Most GPUs of the job.", unit="GPUs"),
    jobs=count("Jobs", "Jobs of this size.", unit="jobs"),
    ended=count("Ended", "Those that ended in success or failure.", unit="jobs"),
    failures=count("Failures", "Those that failed.", unit="jobs"),
    failure_share=share("Failed", "Failures over the jobs that ended.", blank=REASON),
    **wilson(blank=REASON),
    **clustered(share),
    reason=reason(),
)
RUNTIME_QUANTILES = table(
    "runtime_quantiles",
    "A quantile (nearest rank) of the run times of an outcome: 201 of each that has any.",
    outcome=words("Outcome", "Outcome of the jobs."),
    n=count("n", "Jobs of the outcome with a known run time.", unit="jobs"),
    share=share("Share", "Of n: jobs that ran at most so long."),
    runtime_s=whole_seconds("Run time", "The quantile; of running jobs the time so far counts."),
)
SUCCESS = parquet("success", "A job that succeeded.", "success.parquet", open=True)
FAILURE = parquet("failure", "A job that failed.", "failure.parquet", open=True)
UNRESOLVED = parquet(
    "unresolved", "A job without a result: unknown, running or waiting.", "unresolved.parquet", open=True
)
CANCELLED = parquet("cancelled", "A job that was cancelled.", "cancelled.parquet", open=True)

ANALYSIS = Analysis(
    question="How do jobs end, and after what run time?",
    theme="outcomes",
    rank=10,
    needs=["jobs"],
    settings={"words": lambda trace: trace.words},
    tables=[OUTCOMES, OUTCOMES_GPU, OUTCOMES_BY_GPUS, RUNTIME_QUANTILES, SUCCESS, FAILURE, UNRESOLVED, CANCELLED],
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
