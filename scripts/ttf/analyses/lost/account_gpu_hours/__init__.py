"""Where did every GPU hour of the trace go?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, name, number, share, table, words

# Categories of GPU hours, in the order of the account: first those used by attempts, then unused ones.
PRODUCTIVE, FAILED, FAILED_UNRECORDED, TIME_LIMIT = "productive", "failed", "failed_unrecorded", "time_limit"
INFRA_KEPT, INFRA_LOST, CANCELLED, PREEMPTED = "infra_kept", "infra_lost", "cancelled", "preempted"
RESTART, RUNNING, UNKNOWN, ABOVE_CAPACITY = "restart", "running", "unknown", "above_capacity"
DOWN, MAINTENANCE, NOT_WATCHED = "down", "maintenance", "not_watched"
FREE_WAITED, FREE = "free_waited", "free"
IDLE_WAITED, IDLE, NOT_IN_USE = "down_or_free_waited", "down_or_free", "not_in_use"
USED = (
    *(PRODUCTIVE, FAILED, FAILED_UNRECORDED, TIME_LIMIT, INFRA_KEPT, INFRA_LOST),
    *(CANCELLED, PREEMPTED, RESTART, RUNNING, UNKNOWN),
)
UNUSED = (DOWN, MAINTENANCE, NOT_WATCHED, FREE_WAITED, FREE, IDLE_WAITED, IDLE, NOT_IN_USE)
# The scope of all owners but those with the most time.
OTHER_OWNERS = "other"

LEDGER = table(
    "ledger",
    "A category of GPU hours. The rows of a scope add up to its capacity, or to the time used.",
    scope_by=words("By", "all, account, partition or month; accounts and partitions hold used time only."),
    scope=name(
        "Scope", "Name of the account, partition or month, or all.", blank="the trace names none", by="scope_by"
    ),
    category=words("Category", "How the GPU hours were spent, or why they were not."),
    attempts=count("Attempts", "Attempts with time in the category.", blank="no attempt used this time"),
    gpu_hours=number(
        "GPU-hours", "GPU hours; negative where recorded use above capacity is subtracted.", unit="GPU-hours"
    ),
    share=share("Share", "Share of the GPU hours of the scope.", blank=REASON),
    cost=number("Cost", "Price of the GPU hours, used or not.", blank=REASON, unit="currency"),
    currency=words("Currency", "Currency of the cost.", blank="none is set"),
    kwh=number("kWh", "Electricity, by the power of a GPU in use or idle.", blank=REASON, unit="kWh"),
    co2_kg=number("CO2, kg", "Emissions of the electricity.", blank=REASON, unit="kg"),
    note=words("Note", "An assumption, or what the trace cannot distinguish.", blank="there is none"),
)
_HOURS = "GPU-hours"
LEDGER_SUMMARY = table(
    "ledger_summary",
    "Totals of ledger.csv over all jobs.",
    used_gpu_hours=number("Used", "GPU hours used by attempts.", blank="no GPU time was used", unit=_HOURS),
    above_gpu_hours=number("Above", "Recorded use above capacity.", blank="there was none", unit=_HOURS),
    capacity_gpu_hours=number("Capacity", "All GPU hours of the cluster.", "unused time is not known", unit=_HOURS),
)

ANALYSIS = Analysis(
    question="Where did every GPU hour of the trace go?",
    theme="lost",
    rank=20,
    needs=["jobs", "durations_infra"],
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
