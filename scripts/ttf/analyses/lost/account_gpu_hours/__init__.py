"""Where did every GPU hour of the trace go?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, name, number, share, table, words

# What becomes of a GPU hour, in the order of the account: used by attempts, then used by none.
PRODUCTIVE, FAILED, FAILED_UNRECORDED, TIME_LIMIT = "productive", "failed", "failed_unrecorded", "time_limit"
INFRA_KEPT, INFRA_LOST, CANCELLED, PREEMPTED = "infra_kept", "infra_lost", "cancelled", "preempted"
RESTART, RUNNING, UNKNOWN, ABOVE = "restart", "running", "unknown", "above_capacity"
DOWN, MAINTENANCE, NOT_WATCHED = "down", "maintenance", "not_watched"
FREE_WAITED, FREE = "free_waited", "free"
IDLE_WAITED, IDLE, NOT_IN_USE = "down_or_free_waited", "down_or_free", "not_in_use"
USED = (
    *(PRODUCTIVE, FAILED, FAILED_UNRECORDED, TIME_LIMIT, INFRA_KEPT, INFRA_LOST),
    *(CANCELLED, PREEMPTED, RESTART, RUNNING, UNKNOWN),
)
UNUSED = (DOWN, MAINTENANCE, NOT_WATCHED, FREE_WAITED, FREE, IDLE_WAITED, IDLE, NOT_IN_USE)

LEDGER = table(
    "ledger",
    "A category of GPU hours. The rows of a scope add up to its GPUs times its time, or to the time used.",
    scope_by=words("By", "all, account, partition or month; accounts and partitions hold used time only."),
    scope=name("Scope", "The account, the partition or the month; all.", blank="the trace names none", by="scope_by"),
    category=words("Category", "What became of the GPU hours."),
    attempts=count("Attempts", "Attempts with time in the category.", blank="the time is not that of attempts"),
    gpu_hours=number("GPU-hours", "Below 0: used above what is there, and taken off.", unit="GPU-hours"),
    share=share("Share", "Of all GPU hours of the scope.", blank=REASON),
    cost=number("Cost", "At the price of a GPU hour, in use or not.", blank=REASON, unit="currency"),
    currency=words("Currency", "Of the cost.", blank="none is set"),
    kwh=number("kWh", "At the power of a GPU in use, or idle.", blank=REASON, unit="kWh"),
    co2_kg=number("CO2, kg", "At the emissions of a kWh.", blank=REASON, unit="kg"),
    note=words("Note", "What is assumed, or cannot be told apart.", blank="nothing is to be known"),
)
_HOURS = "GPU-hours"
LEDGER_SUMMARY = table(
    "ledger_summary",
    "What the rows of all jobs in ledger.csv add up to.",
    used_gpu_hours=number("Used", "By attempts.", blank="no GPU time was used", unit=_HOURS),
    above_gpu_hours=number("Above", "Used above what is there.", blank="nothing was", unit=_HOURS),
    capacity_gpu_hours=number("Capacity", "Used or not.", blank="what was not used is not known", unit=_HOURS),
)

ANALYSIS = Analysis(
    question="Where did every GPU hour of the trace go?",
    theme="lost",
    rank=20,
    needs=["jobs", "lives_infra"],
    uses=["attempts", "placements", "nodes", "outages", "exposure", "occupancy_basis"],
    settings={
        "checkpoint_interval_s": "lost_work/checkpoint_interval_s",
        "restart_s": "ettr/restart_s",
        "owners": "lost_work/owners",
        "prices": "ledger",
    },
    tables=[LEDGER, LEDGER_SUMMARY],
    charts={"gpu_hours_account": "ledger"},
    sections=["ledger"],
    in_size_unit=True,
    memory_mb=450,
    mb_per_gb={"pai2020": 40, "philly": 260, "sacct": 3970},
)
