"""By which of its epochs did a job come to its lowest loss?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, share, table, text

EPOCHS = table(
    "epochs",
    "TODO",
    outcome=text("Outcome", "TODO"),
    quantity=text("Quantity", "TODO"),
    epochs_share=share("Epochs share", "TODO"),
    jobs=count("Jobs", "TODO"),
    n=count("N", "TODO"),
    jobs_share=share("Jobs share", "TODO"),
    ci_low=number("Ci low", "TODO"),
    ci_high=number("Ci high", "TODO"),
)
EPOCHS_SUMMARY = table(
    "epochs_summary",
    "TODO",
    outcome=text("Outcome", "TODO"),
    jobs_logged=count("Jobs logged", "TODO"),
    n=count("N", "TODO"),
    epochs=count("Epochs", "TODO"),
    needing_all=count("Needing all", "TODO", blank="TODO"),
    needing_all_share=share("Needing all share", "TODO", blank="TODO"),
    ci_low=number("Ci low", "TODO", blank="TODO"),
    ci_high=number("Ci high", "TODO", blank="TODO"),
    timed_jobs=count("Timed jobs", "TODO", blank="TODO"),
    after_near_share_mean=share("After near share mean", "TODO", blank="TODO"),
    after_near_gpu_time_share=share("After near gpu time share", "TODO", blank="TODO"),
    reason=reason(),
)

ANALYSIS = Analysis(
    question="By which of its epochs did a job come to its lowest loss?",
    theme="failure",
    rank=60,
    needs=["losses", "jobs"],
    tables=(
        EPOCHS,
        EPOCHS_SUMMARY,
    ),
    charts={"epochs": ["epochs", "epochs_summary"]},
    sections=["epochs"],
    memory_mb=120,
)
