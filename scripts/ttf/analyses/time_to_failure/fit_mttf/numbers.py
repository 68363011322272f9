"""Numbers for the page: survival, mean time to failure, lifetime models."""

import polars as pl

from ttf.analyses.time_to_failure.fit_mttf import (
    AGES,
    DURATIONS_SUMMARY,
    FAILURES_WITHOUT_END,
    FAR_GROUPS,
    LIFETIME_MODELS,
    MOST_LIMITS,
    MTTF,
    SURVIVAL_AT,
    SURVIVAL_STEPS,
    SURVIVAL_SUMMARY,
)
from ttf.display.metrics import CI, CI_S, CLUSTERS, cells

_MEDIAN = "median_s median_ci_low_s median_ci_high_s median_ci_low_clustered_s median_ci_high_clustered_s"
_RATES = "failures_per_1000_gpu_days node_days failures_per_1000_node_days"
_REPAIRS = "mean_s=repair_mean_s median_s=repair_median_s p90_s=repair_p90_s"
_LIMIT_STEP = pl.when("is_limit").then("drop")
_STEP = "time_s drop failures time_limits timeout_share is_limit"
_ALL_UNITS = (pl.col("stratum_by") == "all") & (pl.col("event") == "failure")

NUMBERS = [
    cells(DURATIONS_SUMMARY, "durations", "units durations failures exposure_s silence_s"),
    cells(DURATIONS_SUMMARY, "period", "from_s to_s days"),
    cells(DURATIONS_SUMMARY, "repair", _REPAIRS),
    cells(SURVIVAL_SUMMARY, "survival", f"n events {_MEDIAN} restricted_mean_s {CLUSTERS}", _ALL_UNITS),
    *(cells(SURVIVAL_AT, f"survival.{name}", f"survival {CI}", time_s=age_s) for name, (age_s, _) in AGES.items()),
    cells(SURVIVAL_STEPS, "survival.steps", _STEP, n="failures", sort="-drop", take=1),
    cells(
        SURVIVAL_STEPS,
        "survival.limits.{rank}",
        "time_s drop failures timeout_share",
        _LIMIT_STEP.rank("ordinal", descending=True) <= MOST_LIMITS,
        n="failures",
        sort="time_s",
    ),
    cells(MTTF, "mttf", f"n events exposure_s mttf_s {CI_S} {_RATES}", _ALL_UNITS, confidence=0.95),
    cells(FAR_GROUPS, "groups", "by=stratum_by", take=1),
    cells(FAR_GROUPS, "groups.{end}", "name=stratum n events years failed_share"),
    cells(
        FAILURES_WITHOUT_END,
        "without_end",
        "failures without_end share=share_without_end mttf_low_s mttf_high_s",
        n="failures",
        stratum_by="all",
    ),
    cells(LIFETIME_MODELS, "models", "best=model", _ALL_UNITS, best=True, converged=True),
]
