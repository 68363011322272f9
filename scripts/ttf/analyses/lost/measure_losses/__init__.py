"""What did failures cost, who had them, how do they repeat, and what would have saved some of it?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns, interval_columns, owner_columns, wilson_columns
from ttf.engine.contract import REASON, count, name, number, reason, share, table, truth, whole_seconds, words

_HOURS = "GPU-hours"
_LOSSES = {
    "runs": count("Attempts", "Attempts that started.", unit="attempts"),
    "gpu_hours": number("GPU-hours", "GPU time of the attempts of the row.", unit=_HOURS),
    "gpu_hours_share": share("Share of GPU-hours", "Share of the GPU time of all attempts.", blank=REASON),
    "failed_runs": count("Failed", "Attempts that failed.", unit="attempts"),
    "failed_without_time": count("without a time", "Attempts without a known run time.", unit="attempts"),
    "failed_gpu_hours": number("their GPU-hours", "Whole GPU time of failed attempts.", unit=_HOURS),
    "failed_gpu_hours_share": share("Share", "Share of the GPU time of all attempts, or of the month.", blank=REASON),
    "infra_basis": words("Basis", "How infrastructure failures are identified; proxy: any failure, cause unknown."),
    "infra_failures": count("Infrastructure failures", "Attempts that infrastructure ended.", unit="attempts"),
    "infra_without_time": count("without a time", "Attempts without a known run time.", unit="attempts"),
    "infra_gpu_hours": number(
        "GPU-hours of infrastructure failures", "GPU time of attempts that infrastructure ended.", unit=_HOURS
    ),
    "infra_gpu_hours_share": share("Share", "Share of the GPU time of all attempts, or of the month.", blank=REASON),
    "checkpoint_interval_s": whole_seconds(
        "Checkpoint interval", "Assumed checkpoint interval; half of it is assumed lost at a failure."
    ),
    "first_order_gpu_hours": number(
        "assumed lost", "GPU time since the last assumed checkpoint, at infrastructure failures.", unit=_HOURS
    ),
    "preemptions": count("Preempted", "Attempts that the scheduler preempted.", blank=REASON, unit="attempts"),
    "second_order_gpu_hours": number(
        "assumed lost, at most",
        "Upper bound of the GPU time since the last assumed checkpoint, at preemptions.",
        REASON,
        unit=_HOURS,
    ),
    "linked_preemptions": count(
        "Linked", "Preemptions shortly before a restart after an infrastructure failure.", blank=REASON, unit="attempts"
    ),
    "linked_gpu_hours": number(
        "of it linked", "GPU-hours assumed lost at linked preemptions.", blank=REASON, unit=_HOURS
    ),
    "first_and_linked_gpu_hours": number(
        "Both", "GPU-hours assumed lost at infrastructure failures and linked preemptions.", blank=REASON, unit=_HOURS
    ),
    "reason": reason(),
}
LOST_WORK = table(
    "lost_work",
    "Cost of failures in attempts of one size.",
    gpus_low=count("GPUs from", "Fewest GPUs of the attempt; a share of one counts as 1.", unit="GPUs"),
    gpus_high=count("GPUs to", "Most GPUs of the attempt.", unit="GPUs"),
    **_LOSSES,
)
# The GPUs of a common node.
SMALL_GPUS = 8
LOST_WORK_ALL = table(
    "lost_work_all",
    "Cost of failures in all attempts.",
    **{name: column for name, column in _LOSSES.items() if name != "reason"},
    first_order_gpu_hours_share=share("Share assumed lost", "first_order_gpu_hours over gpu_hours.", blank=REASON),
    failed_above_8_gpus_share=share(
        "Share of large ones",
        f"Share of the failed attempts' GPU time in attempts on more than {SMALL_GPUS} GPUs.",
        blank="no failed attempt has GPU time",
        n="failed_runs",
    ),
)
LOST_WORK_BY_MONTH = table(
    "lost_work_by_month",
    "Cost of failures in attempts that ended, or were last seen, in one month.",
    window=words("Month", "A calendar month (UTC), or 28 days counted from the trace's start.", blank=REASON),
    start_s=whole_seconds("From", "Start of the month.", blank=REASON),
    end_s=whole_seconds("To", "Start of the next month.", blank=REASON),
    complete=truth("Complete", "Whether the trace covers the whole month.", blank=REASON),
    **_LOSSES,
)
FAILURES_BY_OWNER = table(
    "failures_by_owner",
    "A user or an account with the most GPU time in failed attempts.",
    owner_by=words("By", "user or account."),
    owner=name("Owner", "Name in the trace.", by="owner_by"),
    ended=count("Ended", "Jobs that ended in success or failure.", unit="jobs"),
    failures=count("Failures", "Jobs that failed.", unit="jobs"),
    failure_share=share("Share", "Failures divided by ended jobs.", blank=REASON),
    **wilson_columns(blank=REASON),
    **clustered_columns(share),
    failed_runs=count(
        "Failed attempts", "Failed attempts, including those of jobs that later succeeded.", unit="attempts"
    ),
    failed_gpu_hours=number("GPU-hours of failed attempts", "GPU time of the failed attempts.", unit=_HOURS),
    failed_gpu_hours_share=share("Share of them", "Share of the GPU time of all failed attempts.", blank=REASON),
)
FAILURE_CONCENTRATION = table(
    "failure_concentration",
    "The top users, or accounts, by ended jobs or by failures, and their shares.",
    **owner_columns("ended (most ended jobs first) or failures (most failures first)."),
    ended=count("Ended", "Jobs of these users or accounts that ended in success or failure.", unit="jobs"),
    ended_share=share("Share of ended", "Share of the ended jobs of all users or accounts."),
    failures=count("Failures", "Failed jobs of these users or accounts.", unit="jobs"),
    failures_share=share("Share of failures", "Share of the failures of all users or accounts.", blank=REASON),
    failed_gpu_hours=number("GPU-hours of failed attempts", "GPU time of their failed attempts.", unit=_HOURS),
    failed_gpu_hours_share=share("Share of them", "Share of the GPU time of all failed attempts.", blank=REASON),
)
REPEATS = table(
    "repeats",
    "A measure of how failures repeat within groups of jobs.",
    group_by=words("Group", "user, recurrence_group, job (attempts of one job) or part (tries of one part of a job)."),
    measure=words("What", "What is estimated."),
    n=count("n", "Number of jobs, of groups (for times) or of attempts (for parts)."),
    groups=count("Groups", "Groups to which the jobs belong.", unit="groups"),
    events=count(
        "Events", "Jobs, groups or attempts in which the measured event occurred.", blank=REASON, unit="failures"
    ),
    unit=words("Unit", "Unit of the estimate: share, failures or s.", blank=REASON),
    estimate=number("Estimate", "Share, ratio or median time, in `unit`.", blank=REASON),
    **interval_columns(number, "the 95% CI, in `unit`, clustered by group", REASON),
    reason=reason("Why cells of the row are blank, or why the estimate has no interval."),
)
# Scenarios of what_if.csv.
TRIAL, NO_RETRY, NO_CERTAIN_RETRY = "trial_on_one_gpu", "no_retry", "no_retry_of_deterministic"
# By the category of the first failure: its cause can only lie in the user program, or also elsewhere.
NO_USER_RETRY, NO_SYSTEM_RETRY = "no_retry_of_user", "no_retry_of_system"
_NO_TRIAL, _TRIAL = "the scenario has no trial", "the scenario is a trial, or the column reason says why"
WHAT_IF = table(
    "what_if",
    "A change of practice: GPU time that it would have saved, and its cost.",
    scenario=words("What if", "trial_on_one_gpu, no_retry, or no_retry_of_ deterministic, user or system failures."),
    trial_s=whole_seconds("Trial run", "Length of the trial run on one GPU.", _NO_TRIAL),
    n=count("Jobs", "Jobs to which the change applies.", blank=REASON, unit="jobs"),
    affected=count("Affected", "Failed jobs that the change would have caught.", blank=REASON, unit="jobs"),
    saved_gpu_hours=number(
        "GPU-hours saved", "Upper bound of the GPU-hours that the change would save.", REASON, unit=_HOURS
    ),
    cost_gpu_hours=number("Cost of the trial runs", "GPU-hours that the change costs other jobs.", REASON, unit=_HOURS),
    net_gpu_hours=number("Net", "GPU-hours saved minus cost.", blank=REASON, unit=_HOURS),
    net_share=number("Net share", "Net saving as a share of the GPU time of all attempts.", blank=REASON, unit="share"),
    given_up=count(
        "Later successes",
        "Jobs that succeeded in a later attempt, which the change would prevent.",
        _TRIAL,
        unit="jobs",
    ),
    given_up_gpu_hours=number(
        "their GPU-hours", "GPU time of the later attempts that the change would prevent.", _TRIAL, unit=_HOURS
    ),
)
LOCALITY = table(
    "locality",
    "What if jobs held no more nodes than others of their size and GPU type: GPU time that it would have saved.",
    gpu_bucket=words("GPUs", "GPUs of the job: all, or 2-4, 5-8, >8."),
    n=count("Jobs", "Jobs of sizes and types that ran on the fewest nodes and on more.", blank=REASON, unit="jobs"),
    spread_n=count("On more nodes", "Jobs among n on more nodes than the fewest.", blank=REASON, unit="jobs"),
    saved_gpu_hours=number(
        "GPU-hours saved",
        "GPU time of those on more nodes, less that of their work on the fewest.",
        REASON,
        unit=_HOURS,
    ),
    saved_share=share("Saved", "Share of the GPU time of n.", blank=REASON),
)

ANALYSIS = Analysis(
    question="What did failures cost, who had them, how do they repeat, and what would have saved some of it?",
    theme="lost",
    rank=10,
    needs=["jobs", "durations_infra"],
    uses=["attempts", "reasons", "placements"],
    settings={"lost_work": "lost_work"},
    tables=(
        *(LOST_WORK, LOST_WORK_ALL, LOST_WORK_BY_MONTH, FAILURES_BY_OWNER, FAILURE_CONCENTRATION),
        *(REPEATS, WHAT_IF, LOCALITY),
    ),
    charts={"gpu_hours_by_size": "lost_work", "failure_concentration": "failure_concentration"},
    main=("gpu_hours_by_size",),
    sections=["lost_work"],
    in_size_unit=True,
    memory_mb=420,
    mb_per_gb={"pai2020": 10, "sacct": 350},
)
