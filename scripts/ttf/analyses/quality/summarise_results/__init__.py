"""What do the results come to: what was read, what is lost and to what, what would help, what a mean may be?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import count, number, seconds, share, table, words

_NOT_OF_ROWS = "no row was read"
QUALITY_SUMMARY = table(
    "quality_summary",
    "All raw tables together: rows, findings and columns.",
    rows_read=count("Rows read", "Of all files.", unit="rows"),
    rows_kept=count("kept", "Rows that went on.", unit="rows", n="rows_read"),
    rows_quarantined=count("quarantined", "Rows that break a rule of the schema.", unit="rows", n="rows_read"),
    quarantined_share=share("Quarantined", "Of the rows read.", _NOT_OF_ROWS, n="rows_read"),
    anomalies=count("Findings", "About the raw tables.", unit="anomalies"),
    rows_concerned=count("Rows concerned", "Of all findings.", unit="rows"),
    suggestions=count("Suggestions", "Changes to the schema that are suggested.", unit="suggestions"),
    rows_suggested=count("Rows of suggestions", "That these would let in.", unit="rows"),
    tables=count("Tables", "Raw tables.", unit="tables"),
    columns=count("Columns", "Of the files.", unit="columns"),
    columns_stored=count("stored", "Those of them that are stored.", unit="columns", n="columns"),
    columns_blank=count("blank", "Those of these without a value.", unit="columns", n="columns_stored"),
)
MTTF_RANGE = table(
    "mttf_range",
    "Between what the mean time to failure lies, where missing or censored ends decide it; else no row.",
    n=count("n", "Jobs or units at risk, of known duration.", unit="lives"),
    low_s=seconds("At least", "The lowest of what the data allow."),
    high_s=seconds("at most", "The highest of it."),
    why=words("Why", "What is not known."),
)
FAILED_TIME = table(
    "failed_time",
    "GPU time of failed attempts by what ended them: limit (a time limit), infra or other.",
    part=words("Part", "limit, infra or other."),
    attempts=count("Attempts", "Failed attempts.", unit="attempts"),
    gpu_hours=number("GPU-hours", "Of those that it ended.", unit="GPU-hours", n="attempts"),
    share=share("Share", "Of those of all failed attempts.", n="attempts"),
)
_OTHER = "the action has no such number"
ACTIONS = table(
    "actions",
    "An action, and what it could save at most.",
    action=words("Action", "save_state, checkpoint, trial_on_one_gpu, no_retry, no_retry_of_deterministic or drain."),
    attempts=count("Attempts", "All of the trace.", unit="attempts"),
    gpu_hours=number("GPU-hours", "That it could save.", unit="GPU-hours", n="attempts"),
    share=share("Share", "Of those of all attempts.", "no attempt took GPU time", n="attempts"),
    above_gpus=count("Above GPUs", "Size of the attempts that it is for.", _OTHER, "GPUs"),
    failures=count("Failures", "Of these by infrastructure.", _OTHER, "failures", n="attempts"),
    ended=number("GPU-hours ended", "By these failures.", _OTHER, "GPU-hours", n="attempts"),
    lost=number("GPU-hours lost", "With checkpoints.", _OTHER, "GPU-hours", n="attempts"),
)

ANALYSIS = Analysis(
    question="What do the results come to?",
    theme="quality",
    rank=5,
    uses=[
        *("row_account", "anomalies", "statistics", "jobs_summary", "outcomes", "ended_jobs", "states"),
        *("mttf", "failures_without_end", "mttf_delayed_entry", "lost_work", "what_if", "lemon_summary"),
    ],
    tables=(QUALITY_SUMMARY, MTTF_RANGE, FAILED_TIME, ACTIONS),
    in_size_unit=True,
    memory_mb=150,
)
