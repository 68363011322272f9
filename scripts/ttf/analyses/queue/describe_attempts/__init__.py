"""How long do attempts wait, how often are jobs tried, and how long does an attempt run until it fails?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns, percentile_columns, wilson_columns
from ttf.engine.contract import (
    REASON,
    Column,
    count,
    name,
    number,
    reason,
    seconds,
    share,
    table,
    truth,
    whole_seconds,
    words,
)

_BUCKET = words("GPUs", "GPUs of the job: all, or 1, 2-4, 5-8, >8.")
_NEGATIVE = count("Negative", "Attempts excluded because their queueing delay is negative.", unit="attempts")
_UNKNOWN = count("Unknown", "Attempts whose queueing delay is unknown.", unit="attempts")
_TIMES = {
    "mean_s": seconds("Mean", "Mean of n.", blank=REASON),
    **percentile_columns(
        seconds, "_s", {p: f"{p}th percentile of the queueing delay." for p in (25, 50, 75, 90, 95)}, REASON
    ),
}
DELAYS = table(
    "delays",
    "Queueing delay of a group of attempts, from submission, or for a retry from the end of the attempt before.",
    group_by=words("By", "all, or account (those with the most jobs)."),
    group=name("Account", "Name of the account, or all.", by="group_by"),
    gpu_bucket=_BUCKET,
    which=words("Attempts", "every, first or later."),
    zeros_kept=truth("Zeros kept", "Whether delays of 0 are among n."),
    n=count("n", "Known delays of 0 or more.", unit="attempts"),
    zeros=count("Zeros", "Attempts with a queueing delay of exactly 0.", unit="attempts"),
    negative=_NEGATIVE,
    unknown=_UNKNOWN,
    within_60_s_share=share("≤ 1 min", "Share of n.", blank=REASON),
    within_600_s_share=share("≤ 10 min", "Share of n.", blank=REASON),
    within_3600_s_share=share("≤ 60 min", "Share of n.", blank=REASON),
    within_6000_s_share=share("≤ 100 min", "Share of n.", blank=REASON),
    step_180_s_share=share("At 3 min", "Share of attempts with a queueing delay of 170 to 200 s.", blank=REASON),
    beside_180_s_share=share(
        "Around 3 min", "Mean of two shares: queueing delays of 139 to 169 s and of 201 to 231 s.", REASON
    ),
    **_TIMES,
)
DELAY_BY_NODES = table(
    "delay_by_nodes",
    "Queueing delay of first attempts of jobs of 5 GPUs or more, by allocated nodes.",
    gpu_bucket=_BUCKET,
    nodes=count("Nodes", "Nodes of the attempt.", unit="nodes"),
    n=count("n", "Known delays of 0 or more.", unit="attempts"),
    negative=_NEGATIVE,
    unknown=_UNKNOWN,
    **_TIMES,
    longest_s=whole_seconds("Longest", "Longest delay.", blank=REASON),
)
OUT_OF_ORDER = table(
    "out_of_order",
    "Jobs that start before one submitted earlier, by size, in their account or in the whole cluster.",
    scope=words("Among", "account or cluster."),
    gpu_bucket=_BUCKET,
    n=count("n", "Jobs with a submission and a start; for scope account, also an account.", unit="jobs"),
    out_of_order_share=share("Started out of order", "Share of n.", blank=REASON),
    overtaken_share=share("Overtaken", "Share of n.", blank=REASON),
)
RETRIES = table(
    "retries",
    "Retries of the jobs of a size that ended after at least one attempt.",
    group_by=words("By", "all, gpus (sizes) or gpu_count (each power of two)."),
    group=name("GPUs", "GPUs of the job, or all.", by="group_by"),
    n=count("n", "Jobs that ended after at least one attempt.", unit="jobs"),
    retries=count("Retries", "Attempts after the first, summed.", unit="attempts"),
    retries_mean=number("Retries, mean", "retries over n.", unit="retries"),
    retries_ci_low=number("from", "Lower bound of the 95% CI, normal approximation.", blank=REASON),
    retries_ci_high=number("to", "Upper bound.", blank=REASON),
    retries_ci_low_clustered=number("95% from, clustered", "Lower bound of the clustered CI, on a log scale.", REASON),
    retries_ci_high_clustered=number("95% to, clustered", "Upper bound of the interval.", blank=REASON),
    retried_share=share("Tried again", "Share of jobs with a retry."),
    failures=count("Failures", "Jobs that failed.", unit="jobs"),
    unsuccessful_share=share("Unsuccessful", "Share of n that failed; n includes cancelled and unknown jobs."),
    ci_low=share("from", "Lower bound of Wilson's 95% CI."),
    ci_high=share("to", "Upper bound."),
    **clustered_columns(share),
)
_BASIS = words("Basis", "recorded, or proxy: an attempt counts as failed if another one follows.")
RUNTIME_TO_FAILURE = table(
    "runtime_to_failure",
    "Run time of failed attempts, by GPUs of their job.",
    gpu_bucket=_BUCKET,
    basis=_BASIS,
    trials=count("Failed attempts", "Attempts that failed.", unit="attempts"),
    trials_share=share("Share", "Share of all failed attempts.", blank=REASON),
    n=count("n", "Failed attempts with a known run time.", unit="attempts"),
    mean_s=seconds("Mean", "Mean of n.", blank=REASON),
    **percentile_columns(seconds, "_s", {p: f"{p}th percentile of the run time." for p in (50, 90, 95)}, REASON),
    rtf_share=share("Share of the time", "Share of the run time of all failed attempts.", "the total time is 0 s"),
    gpu_hours=number("GPU-hours", "GPUs times run time, summed over n attempts.", unit="h"),
    gpu_hours_share=share("Share", "Share of the GPU-hours of all failed attempts.", blank="they used no GPU time"),
)
_NO_CLUSTERED = "there is no exact value either, or the column reason says why"
FAILED_ATTEMPTS = table(
    "failed_attempts",
    "Jobs or users with at least a number of failed attempts.",
    group_by=words("Group", "failed_job (jobs that failed), job (with a failed attempt) or user."),
    basis=_BASIS,
    at_least=count("At least", "Lowest number of failed attempts.", unit="attempts"),
    groups=count("Number", "Jobs or users with at least that number."),
    n=count("of", "Jobs or users with a failed attempt."),
    groups_share=share("Share", "groups over n.", blank=REASON),
    ci_low=share("from", "Lower bound of Wilson's 95% CI.", blank="there are none, or all have at least one"),
    ci_high=share("to", "Upper bound.", blank="there are none, or all have at least one"),
    **clustered_columns(share, blank=_NO_CLUSTERED),
    trials=count("Failed attempts", "Failed attempts of all n.", unit="attempts"),
    trials_mean=number("Mean", "trials over n.", blank=REASON, unit="attempts"),
    trials_share=share(
        "Their share of the failed attempts", "Share of all failed attempts that these jobs or users had.", REASON
    ),
)
OUTCOMES_WINDOW = table(
    "outcomes_window",
    "Jobs or attempts by outcome, in the whole trace and in the configured window of submission.",
    window=words("Window", "all or window."),
    unit=words("Unit", "job or attempt."),
    outcome=words("Outcome", "Outcome of the job, or of the attempt itself."),
    basis=_BASIS,
    n=count("Number", "Jobs or attempts of this outcome."),
    total=count("of", "All jobs or attempts in the window of submission."),
    n_share=share("Share", "n over total.", blank=REASON),
    gpu_hours=number("GPU-hours", "GPUs times run time of the attempts.", unit="h"),
    gpu_hours_share=share("Share", "Share of the GPU-hours of the window.", blank=REASON),
    without_end=count("Attempts without a time", "Jobs or attempts without a known run time.", unit="attempts"),
    window_from_s=whole_seconds("From", "Start of the window, on the trace's clock.", "the row covers the whole trace"),
    window_to_s=whole_seconds("Until", "End of the window, exclusive.", blank="the row covers the whole trace"),
)
_CAUSE = words("Cause", "Cause of the interruption: its code, else the state of the attempt; all for all of them.")
_INTERRUPTIONS = count("Interruptions", "Attempts ended by infrastructure, or followed by another of the same job.")


def _quantile_columns(percent: int, name: str) -> dict[str, Column]:
    """Return the columns of a quantile of Kaplan and Meier, and of its clustered interval."""
    bound = "bound of its clustered 95% CI."
    return {
        f"p{percent}_s": whole_seconds(name, f"Time within which {percent}% are over.", REASON),
        f"p{percent}_ci_low_clustered_s": whole_seconds("from", f"Lower {bound}", REASON),
        f"p{percent}_ci_high_clustered_s": whole_seconds("to", f"Upper {bound}", REASON),
    }


RESTARTS = table(
    "restarts",
    "A phase after the interruptions of a cause, until the next start of the job.",
    cause=_CAUSE,
    interruptions=_INTERRUPTIONS,
    phase=words(
        "Phase",
        "end to outage (of the failed node), outage to repair, end to eligible (to start again), eligible to start, "
        "or end to start (the next one).",
    ),
    n=count("n", "Interruptions with this phase; for the next start, those of jobs that go on."),
    events=count("Over", "Phases that were over when the trace ended; the others are censored."),
    **_quantile_columns(50, "Median"),
    **_quantile_columns(90, "90%"),
    **{name: column for name, column in clustered_columns(seconds).items() if "ci_" not in name},
    reason=reason(),
)
RETRY_SUCCESS = table(
    "retry_success",
    "A retry after the interruptions of a cause, by its number.",
    cause=_CAUSE,
    interruptions=_INTERRUPTIONS,
    retry=count("Retry", "Number of the retry in its job; 4: the fourth and later ones."),
    n=count("n", "Retries that ended.", unit="attempts"),
    successes=count("Successes", "Retries that ended in success.", unit="attempts"),
    success_share=share("Succeeded", "Share of n."),
    **wilson_columns(),
    **clustered_columns(share),
)

ANALYSIS = Analysis(
    question="How long do attempts wait, how often are jobs tried, and how long does an attempt run until it fails?",
    theme="queue",
    rank=10,
    needs=["jobs", "attempts", "durations_infra"],
    uses=["outages"],
    settings={"window": lambda trace: trace.window},
    tables=(
        *(DELAYS, DELAY_BY_NODES, OUT_OF_ORDER, RETRIES, RUNTIME_TO_FAILURE, FAILED_ATTEMPTS, OUTCOMES_WINDOW),
        *(RESTARTS, RETRY_SUCCESS),
    ),
    charts={"delay_first_later": "delays", "runtime_to_failure": "runtime_to_failure"},
    sections=["queueing", "outcomes/outcomes_window", "time_to_failure/run_time_to_failure", "large_runs/restarts"],
    in_size_unit=True,
    memory_mb=250,
    mb_per_gb={"philly": 160, "sacct": 800},
)
