"""Do faults become more or less frequent, and when did their rate change?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, name, number, table, whole_seconds, words

_STRATUM = {
    "stratum_by": words("Strata", "all, group (of units) or level (of causes); of these the 20 with most faults."),
    "stratum": name("Stratum", "Name of the group or level.", by="stratum_by"),
}
_NOT_ALL_UNITS = "the row is not of all units"
GROWTH = table(
    "growth",
    "Trend of the faults of all units, a group or a level, by several tests, which can disagree. Time is the observed "
    "time of the row's units added up: it differs from calendar time where units join or leave.",
    **_STRATUM,
    n=count(
        "Faults", "Records that began while their unit was observed, without continuations and repeats.", unit="faults"
    ),
    beta=number("Growth β", "Crow-AMSAA β over cumulative observed time; above 1, faults grow more frequent.", REASON),
    ci_low=number("95% from", "Lower bound of the exact interval.", REASON),
    ci_high=number("95% to", "Upper bound.", REASON),
    laplace_u=number("Laplace U", "Mean time of faults minus half the observed time, in standard deviations.", REASON),
    laplace_p=number("Laplace p", "Two-sided p; it assumes a Poisson process, so bursts alone reject.", REASON),
    mil_hdbk_p=number("MIL-HDBK p", "Two-sided p of the military handbook test; it assumes a Poisson process.", REASON),
    lewis_robinson_p=number("Lewis-Robinson p", "Two-sided: Laplace's test corrected for bursts.", REASON),
    change_point_s=whole_seconds("Point of change", "Time of the largest distance from a constant rate.", REASON),
    change_point_p=number("Change p", "Kolmogorov's test of the largest distance from a constant rate.", REASON),
    change_point_p_corrected=number("Change p, corrected", "P-value of the test, corrected for bursts.", REASON),
    rate_ratio=number("Rate after / before", "Fault rate after the change divided by the rate before.", REASON),
    strata=count("Groups", "Groups with faults; each has its own rate and observed time.", REASON, "groups"),
    beta_within=number("Growth β within groups", "Crow-AMSAA β that all groups share.", REASON),
    beta_within_ci_low=number("95% from", "Lower bound by blocks of time, which allows for bursts and drift.", REASON),
    beta_within_ci_high=number("95% to", "Upper bound.", REASON),
    effective_blocks=number("Effective blocks", "Effective number of blocks of time (weeks or longer).", REASON),
    homogeneity_p=number("p, one β", "Test of one β for all groups.", "there is one group, or none can be tested"),
    trend_t=number("Trend t", "Mean time of a group's faults minus that without trend, in standard errors.", REASON),
    trend_p=number("Trend p", "Two-sided p-value of no trend, by blocks of time.", REASON),
    trend_p_adjusted=number(
        "Trend p, adjusted", "P-value adjusted over the groups or levels by Holm's method.", REASON
    ),
    trend_p_mature=number(
        "Trend p, mature", "Two-sided p-value of no trend after the first year of each unit.", "too little was observed"
    ),
    trend=words(
        "Trend",
        "none if the adjusted p is 0.05 or above; worse or better if the same holds of mature units; else unclear.",
        REASON,
    ),
    groups_tested=count("Groups tested", "Groups in which the trend can be tested.", _NOT_ALL_UNITS, "groups"),
    groups_better=count("Groups better", "Groups whose faults significantly decrease.", _NOT_ALL_UNITS, "groups"),
    groups_worse=count("Groups worse", "Groups whose faults significantly increase.", _NOT_ALL_UNITS, "groups"),
)
MCF = table(
    "mcf",
    "Mean number of faults per unit up to a time, at most 2,000 times per stratum.",
    **_STRATUM,
    time_s=whole_seconds("Time", "Time since observation of the first unit began."),
    at_risk=count("Observed", "Units observed at that time.", unit="units"),
    mcf=number("Mean faults", "Mean cumulative function: faults per unit up to that time.", unit="faults"),
    ci_low=number("95% from", "Lower bound of the robust interval, on the log scale.", REASON, "faults"),
    ci_high=number("95% to", "Upper bound.", REASON, "faults"),
)

ANALYSIS = Analysis(
    question="Do faults become more or less frequent, and when did their rate change?",
    theme="outages",
    rank=30,
    needs=["outages", "outage_records", "exposure"],
    settings={"block_days": "inference/block_days"},
    tables=[GROWTH, MCF],
    charts={"mcf": ("mcf", "growth")},
    sections=["growth"],
    memory_mb=600,
)
