"""Where does the time of training runs go, and what does an interruption cost?"""

from collections.abc import Callable

from ttf.analyses.declaration import Analysis
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
    text,
    whole_seconds,
    words,
)

_RUN = {"run": text("Run", "Run, by the name of its first log.")}
_ATTEMPT = {"attempt": count("Attempt", "Number of the attempt within the run, from 1 on.", "the whole run")}
_NO_STEPS = "the log tells no step, or no time of steps"
TRAINING_TIME = table(
    "training_time",
    "A class of the time of a training run, of one attempt or the whole run; the classes add up to the wall time.",
    **_RUN,
    **_ATTEMPT,
    time_class=words("Class", "queued, down, start_up, restore, productive, slow, stalled, checkpoint ... or unknown."),
    seconds=seconds("Time", "Time in this class.", REASON),
    share=share("Share", "Share of the wall time of the attempt or run.", REASON),
    reason=reason("Why the time is unknown."),
)
TRAINING_RUNS = table(
    "training_runs",
    "A training run: its goodput, and what it tells about checkpoints and restarts.",
    **_RUN,
    framework=words("Framework", "Profile that read the steps.", _NO_STEPS),
    attempts=count("Attempts", "Attempts in the logs.", unit="attempts"),
    interruptions=count("Interruptions", "Attempts that did not end as planned."),
    gpus=count("GPUs", "GPUs of the run.", "no job of the scheduler is known"),
    wall_s=seconds("Wall time", "From the first moment to the last.", REASON),
    steps=count("Steps", "Steps that no later attempt did again.", unit="steps"),
    lost_steps=count("Steps lost", "Steps that a later attempt did again.", unit="steps"),
    goodput=share("Goodput", "Productive time divided by the wall time.", REASON, n="attempts"),
    goodput_high=share("Goodput, at most", "Goodput if all unknown time was productive.", REASON, n="attempts"),
    effective=share("Effective", "Steps kept, at the reference time of a step, divided by the wall time.", REASON),
    ettr=share("ETTR", "Productive, slow, stalled and evaluation time divided by the wall time.", REASON, n="attempts"),
    step_s=seconds("Step", "Time of a step at the best lasting speed.", REASON),
    checkpoint_interval_s=seconds("Between saves", "Mean time of steps between saves.", "no two saves are known"),
    checkpoint_write_s=seconds("Save", "Mean time that a save blocks the steps.", "no save has a begin and an end"),
    restart_s=seconds("Restart", "Mean time of start-up and restore of an attempt.", "no attempt has a step"),
    optimal_interval_s=seconds(
        "Best interval", "Checkpoint interval by Young's formula from this run.", "saves or interruptions are unknown"
    ),
    reason=reason("Why cells are blank, or what the log cannot tell."),
)
TRAINING_INTERRUPTIONS = table(
    "training_interruptions",
    "An attempt of a training run that did not end as planned, and what followed.",
    **_RUN,
    attempt=count("Attempt", "Number of the attempt that was interrupted."),
    job=text("Job", "Job of the scheduler.", "it is not known"),
    cause=words(
        "Cause",
        "Code in the log of a node or of a health event, else state of the job, else first error after the last step.",
        "no line tells it",
    ),
    node=name("Node", "Node to which the end is attributed.", "none is known", name_kind="node"),
    node_event=text("Node event", "Cause of the outage of that node at the end of the attempt.", "there is none"),
    restart=words(
        "Restart",
        "within the job, requeue (of its job) or resubmission (another job), on the same or other nodes.",
        "no attempt follows, or no job of the scheduler is known",
    ),
    last_step=count("Last step", "Last step in the log.", "the attempt did no step"),
    resumed_step=count("Resumed from", "Step from which the next attempt went on; 0 from scratch.", "no step follows"),
    lost_steps=count("Steps lost", "Steps that a later attempt did again.", unit="steps"),
    lost_s=seconds("Lost", "Time of these steps."),
    lost_gpu_hours=number("GPU-hours", "The same in GPU-hours.", "the number of GPUs is not known", "GPU-hours"),
    detection_s=seconds("Detection", "From the last step to the end of the attempt."),
    hang_s=seconds("Hang", "Time for which it hung before its error, as the error says.", "no error says so"),
    down_s=seconds(
        "Down", "From its end to the next start, without the queue.", "no attempt follows, or no line tells its end"
    ),
    queued_s=seconds("Queue", "In the queue before the next start.", "no job of the scheduler is known"),
    restart_s=seconds("Restart", "Start-up and restore of the next attempt.", "no attempt follows"),
    recovery_s=seconds(
        "To new progress", "From the last step to the first step of a later attempt.", "no step follows"
    ),
)
TRAINING_CAUSES = table(
    "training_causes",
    "A cause of interruptions of training runs.",
    cause=words("Cause", "As in training_interruptions.csv; all for all of them."),
    interruptions=count("Interruptions", "Number of interruptions."),
    crash_loops=count("In crash loops", "Interruptions of attempts without a step after another interruption."),
    lost_steps=count("Steps lost", "Steps lost by them.", unit="steps"),
    lost_gpu_hours=number("GPU-hours", "GPU-hours of these steps.", "the number of GPUs is not known", "GPU-hours"),
    recovery_p50_s=seconds(
        "To new progress, median", "From the last step to new progress.", "no step follows", n="interruptions"
    ),
    recovery_p90_s=seconds("p90", "90th percentile of it.", "no step follows", n="interruptions"),
)
TRAINING_SLOWDOWNS = table(
    "training_slowdowns",
    "A step from which the time of a step changes for good within an attempt.",
    **_RUN,
    attempt=count("Attempt", "Number of the attempt."),
    step=count("From step", "First step with the new time.", unit="steps"),
    before_s=seconds("Before", "Median time of a step before."),
    after_s=seconds("After", "Median time of a step after."),
    change=share("Change", "Change of the time of a step."),
)
TRAINING_UNJOINED = table(
    "training_unjoined",
    "A log without an attempt of a job, or an attempt of the same users, on as many GPUs, without a log.",
    log=text("Log", "Name of the log.", "it is an attempt"),
    job=text("Job", "Job of the attempt.", "it is a log"),
    start_s=whole_seconds("Start", "Start of the attempt, in seconds since 1970.", "it is a log"),
    gpus=count("GPUs", "GPUs of the attempt.", "it is a log"),
)


def _jackknife_columns(kind: Callable[..., Column], estimate: str) -> dict[str, Column]:
    """Return the columns of a jackknife interval. kind: function for a column of shares or seconds."""
    return {
        f"{estimate}_ci_{end}_clustered": kind(
            f"95% {word}", f"{bound} bound of the jackknife interval.", REASON, n="runs"
        )
        for end, word, bound in (("low", "from", "Lower"), ("high", "to", "Upper"))
    }


TRAINING_SUMMARY = table(
    "training_summary",
    "All training runs together.",
    runs=count("Runs", "Runs with a known wall time.", unit="runs"),
    attempts=count("Attempts", "Attempts of these runs.", unit="attempts"),
    interruptions=count("Interruptions", "Attempts that did not end as planned."),
    goodput=share(
        "Goodput", "Productive time divided by the wall time, over all runs.", "no wall time is known", n="runs"
    ),
    goodput_high=share("At most", "The same if all unknown time was productive.", "no wall time is known", n="runs"),
    **_jackknife_columns(share, "goodput"),
    ettr=share(
        "ETTR",
        "Productive, slow, stalled and evaluation time divided by the wall time.",
        "no wall time is known",
        n="runs",
    ),
    largest_loss=words("Largest loss", "Class with the most time that is not productive.", "all time is productive"),
    largest_loss_share=share("Share", "Its share of the wall time.", "all time is productive", n="runs"),
    checkpoint_interval_s=seconds("Between saves", "Mean over saves of all runs.", "no two saves are known", n="runs"),
    **_jackknife_columns(seconds, "checkpoint_interval_s"),
    checkpoint_write_s=seconds("Save", "Mean over saves of all runs.", "no save has a begin and an end", n="runs"),
    **_jackknife_columns(seconds, "checkpoint_write_s"),
    restart_s=seconds("Restart", "Mean start-up and restore over attempts.", "no attempt has a step", n="attempts"),
    **_jackknife_columns(seconds, "restart_s"),
    clusters=count("Clusters", "Runs that the jackknife leaves out one by one, or cycles from restart to restart."),
    cluster_by=words("Clustered by", "run, or cycle; attempts without a step belong to the cycle before them."),
    queue_s=seconds(
        "Queue", "Mean wait before a later attempt.", "no job of the scheduler is known", n="interruptions"
    ),
    optimal_interval_s=seconds(
        "Best interval", "Checkpoint interval by Young's formula.", "saves or interruptions are unknown"
    ),
    jobs_without_log=count(
        "Jobs without a log", "Attempts of the same users that no log was joined with.", "there are no jobs"
    ),
    logs_without_job=count("Logs without a job", "Logs that no attempt was joined with.", "there are no jobs"),
    joined_by=words("Joined by", "job id, time and GPUs, or both.", "no log was joined"),
    reason=reason("Why values have no interval."),
)

ANALYSIS = Analysis(
    question="Where does the time of training runs go, and what does an interruption cost?",
    theme="large_runs",
    rank=5,
    needs=["training_events"],
    uses=["attempts", "jobs", "durations_infra", "outages"],
    tables=(
        *(TRAINING_TIME, TRAINING_RUNS, TRAINING_INTERRUPTIONS, TRAINING_CAUSES, TRAINING_SLOWDOWNS),
        *(TRAINING_UNJOINED, TRAINING_SUMMARY),
    ),
    charts={"training_time": ["training_time", "training_runs"]},
    main=["training_time"],
    sections=["training_runs"],
    memory_mb=600,
)
