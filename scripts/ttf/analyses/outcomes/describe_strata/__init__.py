"""How do the main numbers differ by account, partition, GPU type and size?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import BASIS, NO_CLUSTERS, clustered_columns, interval_columns, wilson_columns
from ttf.engine.contract import REASON, count, name, number, seconds, share, table, words

# Number of values of a column that have a row: those with the most jobs.
MAX_STRATA = 100
_NO_LIMIT = "no failure was at a time limit, or no job ended"
_NO_CAUSE = "no failed attempt used GPU time, or no cause is recorded"
_HOURS, _PER_1000 = "GPU-hours", "per 1000 node-days"


def _rate_column(heading: str, description: str, blank: str | None = None):
    return number(heading, description, blank, _PER_1000)


def _limit_columns(kind, suffix: str = "", prefix: str = "") -> dict:
    """Return the columns of both clustered limits. kind: makes a column, as `share`; prefix, suffix: of their names."""
    columns = clustered_columns(kind, suffix, NO_CLUSTERS)
    return {f"{prefix}{name}": column for name, column in columns.items() if name.startswith("ci")}


STRATA = table(
    "strata",
    f"Main numbers by stratum of jobs, for the {MAX_STRATA} strata of each column with the most jobs.",
    stratum_by=words("Strata", "all, account, partition, gpu_type or gpus: how the jobs are grouped."),
    stratum=name("Stratum", "Column value; for gpus a range (0: none or unknown).", by="stratum_by", sorted=True),
    jobs=count("Jobs", "Jobs of the stratum.", unit="jobs"),
    ended=count("Ended", "Jobs that ended in success or failure.", unit="jobs"),
    failures=count("Failures", "Jobs that failed.", unit="jobs"),
    timeouts=count("at time limit", "Failures that a time limit ended.", unit="jobs"),
    ended_share=share("Ended", "Share of the jobs.", n="jobs"),
    failure_share=share("Failed", "Failures divided by ended jobs.", blank=REASON),
    **wilson_columns(blank=REASON),
    **clustered_columns(share),
    failure_share_without_timeout=share("Failed otherwise", "Other failures divided by ended jobs.", _NO_LIMIT),
    gpu_hours=number("GPU-hours", "GPU time of all attempts.", unit=_HOURS),
    failed_without_time=count("without a time", "Failed attempts without a known run time.", unit="attempts"),
    failed_gpu_hours=number("their GPU-hours", "GPU time of failed attempts.", unit=_HOURS),
    failed_gpu_hours_share=share("Failed GPU time", "Share of the GPU time of the stratum.", blank=REASON),
    **{f"failed_gpu_{name}": column for name, column in clustered_columns(share, blank=NO_CLUSTERS).items()},
    infra_gpu_hours=number("by infrastructure", "GPU time of attempts that infrastructure ended.", unit=_HOURS),
    limit_share=share("Time limit", "Share of the failed GPU time at a time limit.", _NO_CAUSE),
    infra_share=share("Infrastructure", "Share of the failed GPU time.", _NO_CAUSE),
    other_share=share("Other", "Share of the failed GPU time.", _NO_CAUSE),
    basis=BASIS,
    infra_failures=count("Infrastructure failures", "Attempts with a GPU that infrastructure ended.", unit="attempts"),
    node_days=number("Node-days", "Whole nodes of attempts with a GPU times their durations.", unit="node-days"),
    failures_per_1000_node_days=_rate_column("Failures per 1000 node-days", "Failures divided by node-days.", REASON),
    days_per_failure=number("Days per failure", "Node-days per failure.", "no failure", "days"),
    **interval_columns(_rate_column, "Garwood's 95% CI; one-sided if there is no failure", REASON, "rate_"),
    **_limit_columns(_rate_column, prefix="rate_"),
    failures_with_runtime=count("n of run times", "Failed jobs with a known run time.", unit="jobs"),
    failure_median_s=seconds("Median failed job", "Median run time of failed jobs.", REASON),
    median_ci_low_s=seconds("95% from", "Lower bound, distribution-free.", "six failures or more are needed"),
    median_ci_high_s=seconds("95% to", "Upper bound of the interval.", "six failures or more are needed"),
    **_limit_columns(seconds, "_s", "median_"),
)

ANALYSIS = Analysis(
    question="How do the main numbers differ by account, partition, GPU type and size?",
    theme="outcomes",
    rank=60,
    needs=["jobs", "durations_infra", "node_failure_rate"],
    uses=["attempts"],
    applies=lambda trace: trace.gives == "jobs",
    tables=[STRATA],
    sections=["strata"],
    in_size_unit=True,
    memory_mb=290,
    mb_per_gb={"pai2020": 60, "philly": 180, "sacct": 2400},
)
