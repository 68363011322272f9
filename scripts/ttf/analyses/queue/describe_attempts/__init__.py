"""How long do attempts wait, how often are jobs tried, and how long does an attempt run until it fails?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered, percentiles
from ttf.engine.contract import REASON, count, name, number, seconds, share, table, truth, whole_seconds, words

_BUCKET = words("GPUs", "GPUs of the job: all, or 1, 2-4, 5-8, >8.")
_NEGATIVE = count("Negative", "Delays below 0, excluded.", unit="attempts")
_UNKNOWN = count("Unknown", "Attempts of which the delay is not known.", unit="attempts")
_PARTS = {25: "A quarter", 50: "Half", 75: "Three quarters", 90: "Nine of ten", 95: "19 of 20"}
_TIMES = {
    "mean_s": seconds("Mean", "Of n.", blank=REASON),
    **percentiles(seconds, "_s", {p: f"{part} of n waited at most so long." for p, part in _PARTS.items()}, REASON),
}
DELAYS = table(
    "delays",
    "Queueing delay of a group of attempts: of the first from submission to start, of others since the last one's end.",
    group_by=words("By", "all or account; of accounts those with the most jobs."),
    group=name("Account", "The account, or all.", by="group_by"),
    gpu_bucket=_BUCKET,
    which=words("Attempts", "every, first or later."),
    zeros_kept=truth("Zeros kept", "Whether delays of 0 are among n."),
    n=count("n", "Known delays from 0 on.", unit="attempts"),
    zeros=count("Zeros", "Attempts with a delay of exactly 0.", unit="attempts"),
    negative=_NEGATIVE,
    unknown=_UNKNOWN,
    within_60_s_share=share("≤ 1 min", "Of n.", blank=REASON),
    within_600_s_share=share("≤ 10 min", "Of n.", blank=REASON),
    within_3600_s_share=share("≤ 60 min", "Of n.", blank=REASON),
    within_6000_s_share=share("≤ 100 min", "Of n.", blank=REASON),
    step_180_s_share=share("At 3 min", "Of n: delays of 170 to 200 s.", blank=REASON),
    beside_180_s_share=share("Around 3 min", "Of n: mean of 139 to 169 s and 201 to 231 s.", blank=REASON),
    **_TIMES,
)
DELAY_BY_NODES = table(
    "delay_by_nodes",
    "Queueing delay of the first attempts of jobs of 5 GPUs or more, by the nodes they got.",
    gpu_bucket=_BUCKET,
    nodes=count("Nodes", "Nodes of the attempt.", unit="nodes"),
    n=count("n", "Known delays from 0 on.", unit="attempts"),
    negative=_NEGATIVE,
    unknown=_UNKNOWN,
    **_TIMES,
    longest_s=whole_seconds("Longest", "Longest delay.", blank=REASON),
)
OUT_OF_ORDER = table(
    "out_of_order",
    "Jobs of a size that start before one submitted earlier, within their account or in the whole cluster.",
    scope=words("Among", "account or cluster."),
    gpu_bucket=_BUCKET,
    n=count("n", "Jobs with the times this takes, and in scope account an account.", unit="jobs"),
    out_of_order=count("Out of order", "Jobs that started while an earlier submitted one waited.", unit="jobs"),
    out_of_order_share=share("Started out of order", "Of n.", blank=REASON),
    overtaken=count("Overtaken", "Jobs that a later submitted one started before.", unit="jobs"),
    overtaken_share=share("Overtaken", "Of n.", blank=REASON),
    left_out=count("Excluded", "Jobs of the size that are not among n.", unit="jobs"),
)
RETRIES = table(
    "retries",
    "Jobs of a size that ended after at least one attempt: how often they were tried again.",
    group_by=words("By", "all, gpus (sizes) or gpu_count (each power of two)."),
    group=name("GPUs", "GPUs of the job, or all.", by="group_by"),
    n=count("n", "Jobs that ended after at least one attempt.", unit="jobs"),
    retries=count("Retries", "Attempts after the first, summed.", unit="attempts"),
    retries_mean=number("Retries, mean", "retries by n.", unit="retries"),
    retries_ci_low=number("from", "Lower end of the 95% CI, normal approximation.", blank=REASON),
    retries_ci_high=number("to", "Upper end.", blank=REASON),
    retries_ci_low_clustered=number("95% from, clustered", "Lower end, log scale.", blank=REASON),
    retries_ci_high_clustered=number("95% to, clustered", "Upper end of it.", blank=REASON),
    retried_share=share("Tried again", "Of n: jobs with a retry."),
    failures=count("Failures", "Jobs that failed.", unit="jobs"),
    unsuccessful_share=share("Unsuccessful", "failures of n; cancelled and unknown jobs are among n."),
    ci_low=share("from", "Lower end of Wilson's 95% CI."),
    ci_high=share("to", "Upper end."),
    **clustered(share),
)
_BASIS = words("Basis", "recorded, or proxy (any failure, cause unknown): an attempt followed by another has failed.")
RUNTIME_TO_FAILURE = table(
    "runtime_to_failure",
    "Failed attempts by GPUs of their job: how long they ran.",
    gpu_bucket=_BUCKET,
    basis=_BASIS,
    trials=count("Failed attempts", "Attempts that failed.", unit="attempts"),
    trials_share=share("Share", "Of all failed attempts.", blank=REASON),
    n=count("n", "Failed attempts with a known run time.", unit="attempts"),
    mean_s=seconds("Mean", "Of n.", blank=REASON),
    **percentiles(seconds, "_s", {p: f"{_PARTS[p]} of n failed within this time." for p in (50, 90, 95)}, REASON),
    rtf_total_s=whole_seconds("Time in all", "Run time of n, summed."),
    rtf_share=share("Share of the time", "Of the time of all failed attempts.", blank="they ran for 0 s in all"),
    gpu_hours=number("GPU-hours", "GPUs times run time of n, summed.", unit="h"),
    gpu_hours_share=share("Share", "Of the GPU-hours of all failed attempts.", blank="they took no GPU time"),
)
_NO_CLUSTERED = "there is no exact one either, or the column reason says why"
FAILED_ATTEMPTS = table(
    "failed_attempts",
    "Jobs or users with at least so many failed attempts.",
    group_by=words("Of", "failed_job (jobs that failed), job (with a failed attempt) or user."),
    basis=_BASIS,
    at_least=count("At least", "Failed attempts.", unit="attempts"),
    groups=count("Number", "Jobs or users with at least so many."),
    n=count("of", "Jobs or users with a failed attempt."),
    groups_share=share("Share", "groups of n.", blank=REASON),
    ci_low=share("from", "Lower end of Wilson's 95% CI.", blank="there are none, or all have at least one"),
    ci_high=share("to", "Upper end.", blank="there are none, or all have at least one"),
    **clustered(share, blank=_NO_CLUSTERED),
    trials=count("Failed attempts", "Of all n.", unit="attempts"),
    trials_mean=number("Mean", "trials by n.", blank=REASON, unit="attempts"),
    trials_share=share("Their share of the failed attempts", "Failed attempts of `groups`, of all.", blank=REASON),
)
OUTCOMES_WINDOW = table(
    "outcomes_window",
    "Jobs or attempts of an outcome, in the whole trace and, where one is given, in a window of submission.",
    window=words("Window", "all or window."),
    unit=words("Unit", "job or attempt."),
    outcome=words("Outcome", "Of the job, or of the attempt itself."),
    basis=_BASIS,
    n=count("Number", "Jobs or attempts of this outcome."),
    total=count("of", "All jobs or attempts in the window."),
    n_share=share("Share", "n of total.", blank=REASON),
    gpu_hours=number("GPU-hours", "GPUs times run time of the attempts.", unit="h"),
    gpu_hours_share=share("Share", "Of the GPU-hours in the window.", blank=REASON),
    without_end=count("Attempts without a time", "Without a known run time: no GPU time.", unit="attempts"),
    window_from_s=whole_seconds("From", "On the clock of the trace.", blank="the row is of the whole trace"),
    window_to_s=whole_seconds("Until", "Not included.", blank="the row is of the whole trace"),
)

ANALYSIS = Analysis(
    question="How long do attempts wait, how often are jobs tried, and how long does an attempt run until it fails?",
    theme="queue",
    rank=10,
    needs=["jobs", "attempts"],
    settings={"window": lambda trace: trace.window},
    tables=[DELAYS, DELAY_BY_NODES, OUT_OF_ORDER, RETRIES, RUNTIME_TO_FAILURE, FAILED_ATTEMPTS, OUTCOMES_WINDOW],
    charts={"delay_first_later": "delays", "runtime_to_failure": "runtime_to_failure"},
    sections=["queueing", "outcomes/outcomes_window", "time_to_failure/run_time_to_failure"],
    in_size_unit=True,
    memory_mb=250,
    mb_per_gb={"philly": 160, "sacct": 800},
)
