"""What do the results add up to: what was read, what failed and why, what would help, the range of the mean?"""

from ttf.analyses.declaration import Analysis, price_settings
from ttf.engine.contract import count, name, number, seconds, share, table, words

_NOT_OF_ROWS = "no row was read"
QUALITY_SUMMARY = table(
    "quality_summary",
    "One row for all raw tables: rows, findings and columns.",
    rows_read=count("Rows read", "Rows of all files.", unit="rows"),
    rows_accepted=count("kept", "Rows that were accepted.", unit="rows", n="rows_read"),
    rows_quarantined=count("quarantined", "Rows that break a rule of the schema.", unit="rows", n="rows_read"),
    quarantined_share=share("Quarantined", "Share of the rows read.", _NOT_OF_ROWS, n="rows_read"),
    anomalies=count("Findings", "Problems found in the raw tables.", unit="anomalies"),
    rows_concerned=count("Rows concerned", "Rows with a finding.", unit="rows"),
    suggestions=count("Suggestions", "Suggested changes to the schema.", unit="suggestions"),
    rows_suggested=count("Rows of suggestions", "Rows that the suggested changes would accept.", unit="rows"),
    tables=count("Tables", "Raw tables.", unit="tables"),
    columns=count("Columns", "Columns of the files.", unit="columns"),
    columns_stored=count("stored", "Columns that are stored.", unit="columns", n="columns"),
    columns_blank=count("blank", "Stored columns in which every cell is blank.", unit="columns", n="columns_stored"),
)
MTTF_RANGE = table(
    "mttf_range",
    "One row: the range of the mean time to failure, if missing or censored ends decide it; else no row.",
    n=count("n", "Jobs or units at risk with a known duration.", unit="durations"),
    low_s=seconds("At least", "Lowest mean time to failure that the data allow."),
    high_s=seconds("at most", "Highest mean time to failure that the data allow."),
    why=words("Why", "What the trace does not record, so only a range is known."),
)
_NO_PRICE = "ledger.price_per_gpu_hour is not set, or sizes are not in GPUs"
FAILED_TIME = table(
    "failed_time",
    "One row per cause of failure, and one of all: GPU time of the failed attempts.",
    part=words("Part", "limit (a time limit), infra, other or all."),
    attempts=count("Attempts", "Failed attempts.", unit="attempts"),
    gpu_hours=number("GPU-hours", "GPU time of failed attempts of this cause.", unit="GPU-hours", n="attempts"),
    share=share("Share", "Share of the GPU-hours of all failed attempts.", n="attempts"),
    cost=number("Cost", "Price of these GPU-hours.", _NO_PRICE, "currency", n="attempts"),
    currency=words("Currency", "Currency of this and all other costs.", blank="none is set"),
)
_NOT_APPLICABLE = "the action has no such number"
ACTIONS = table(
    "actions",
    "One row per action: the most that it could save.",
    action=words(
        "Action", "save_state, checkpoint, trial_on_one_gpu, no_retry, no_retry_of_deterministic, drain or group."
    ),
    attempts=count("Attempts", "All attempts of the trace.", unit="attempts"),
    gpu_hours=number("GPU-hours", "GPU-hours that the action could save.", unit="GPU-hours", n="attempts"),
    share=share("Share", "Share of the GPU-hours of all attempts.", "no attempt took GPU time", n="attempts"),
    cost=number("Cost", "Price of the GPU-hours.", _NO_PRICE, "currency", n="attempts"),
    above_gpus=count("Above GPUs", "The action applies to attempts above this size.", _NOT_APPLICABLE, "GPUs"),
    group_by=words("Group by", "account or gpu_type: kind of the group with excess failures.", _NOT_APPLICABLE),
    group=name("Group", "Account or GPU type with excess failures.", _NOT_APPLICABLE, by="group_by"),
    expected=number("Expected", "Failures of the group at the share of all others.", _NOT_APPLICABLE, "failures"),
    failures=count(
        "Failures",
        "Infrastructure failures above this size, or failed jobs of the group.",
        _NOT_APPLICABLE,
        "failures",
        n="attempts",
    ),
    ended=number(
        "GPU-hours ended", "GPU time of attempts that these failures ended.", _NOT_APPLICABLE, "GPU-hours", n="attempts"
    ),
    lost=number(
        "lost with checkpoints",
        "GPU time that would still be lost with checkpoints.",
        _NOT_APPLICABLE,
        "GPU-hours",
        n="attempts",
    ),
)
ANALYSIS = Analysis(
    question="What do the results add up to?",
    theme="quality",
    rank=5,
    uses=[
        *("row_account", "anomalies", "statistics", "jobs_summary", "outcomes", "ended_jobs", "states"),
        *("mttf", "mttf_delayed_entry", "lost_work", "what_if", "lemon_summary", "strata"),
    ],
    settings={"prices": price_settings},
    tables=(QUALITY_SUMMARY, MTTF_RANGE, FAILED_TIME, ACTIONS),
    in_size_unit=True,
    memory_mb=150,
)
