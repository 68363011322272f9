"""By which of its epochs did a job reach its lowest loss?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns, wilson_columns
from ttf.engine.contract import REASON, count, share, table, words

EPOCHS = table(
    "epochs",
    "Jobs of one outcome that have reached their lowest loss, or near it, by a share of their epochs.",
    outcome=words("Outcome", "success, cancelled or failure."),
    quantity=words("Loss", "lowest, or within_0.1_percent of the lowest."),
    epochs_share=share("Share of epochs", "Share of the epochs that the job ran."),
    jobs=count("Jobs", "Jobs that had reached the loss by then.", unit="jobs"),
    n=count("n", "Jobs with a finite loss in the loss log.", unit="jobs"),
    jobs_share=share("Share of jobs", "Jobs divided by n."),
    **wilson_columns(),
    **clustered_columns(share),
)
EPOCHS_SUMMARY = table(
    "epochs_summary",
    "Jobs of one outcome in the loss log: how many needed all epochs, and their time after the near epoch.",
    outcome=words("Outcome", "success, cancelled, failure, or not_in_trace: the id matches no job, or several."),
    jobs_logged=count("Jobs logged", "Jobs in the loss log.", unit="jobs"),
    n=count("with a loss", "Logged jobs with a finite loss.", unit="jobs"),
    epochs=count("Epochs", "Epochs of the logged jobs.", blank=REASON),
    needing_all=count("Lowest in the last epoch", "Jobs with the lowest loss in the last epoch.", REASON, unit="jobs"),
    needing_all_share=share("Share", "Share of jobs with the lowest loss in the last epoch.", blank=REASON),
    **wilson_columns(blank=REASON),
    **clustered_columns(share),
    timed_jobs=count(
        "Jobs timed",
        "Jobs with known time after the first epoch within 0.1% of the lowest loss.",
        blank=REASON,
        unit="jobs",
    ),
    after_near_share_mean=share(
        "Time on the last 0.1%, mean",
        "Share of run time after the first epoch within 0.1% of the lowest loss.",
        blank=REASON,
        n="timed_jobs",
    ),
    after_near_gpu_time_share=share(
        "of all their GPU time",
        "Share of GPU time after the first epoch within 0.1% of the lowest loss.",
        "no GPUs are known",
        n="timed_jobs",
    ),
)

ANALYSIS = Analysis(
    question="By which of its epochs did a job reach its lowest loss?",
    theme="replication",
    rank=20,
    needs=["losses", "jobs"],
    tables=(EPOCHS, EPOCHS_SUMMARY),
    charts={"epochs": ["epochs", "epochs_summary"]},
    sections=["epochs"],
    memory_mb=250,
)
