"""Do faults become more or less frequent?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, name, number, table, whole_seconds, words

_STRATUM = {
    "stratum_by": words("Strata", "all, group (of units) or level (of causes); of these the 20 with most faults."),
    "stratum": name("Stratum", "Name of the group or level.", by="stratum_by"),
}
_NOT_ALL_UNITS = "the row is not of all units"
GROWTH = table(
    "growth",
    "Trend of the faults of all units, a group or a level. Time is the observed time of the row's units added up: it "
    "differs from calendar time where units join or leave.",
    **_STRATUM,
    n=count(
        "Faults", "Records that began while their unit was observed, without continuations and repeats.", unit="faults"
    ),
    strata=count("Groups", "Groups with faults; each has its own rate and observed time.", REASON, "groups"),
    beta_within=number("Growth β within groups", "Crow-AMSAA β that all groups share.", REASON),
    beta_within_ci_low=number("95% from", "Lower bound by blocks of time, which allows for bursts and drift.", REASON),
    beta_within_ci_high=number("95% to", "Upper bound.", REASON),
    homogeneity_p=number("p, one β", "Test of one β for all groups.", "there is one group, or none can be tested"),
    trend_p=number("Trend p", "Two-sided p-value of no trend, by blocks of time.", REASON),
    trend_p_adjusted=number(
        "Trend p, adjusted", "P-value adjusted over the groups or levels by Holm's method.", REASON
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
    question="Do faults become more or less frequent?",
    theme="outages",
    rank=30,
    needs=["outages", "outage_records", "exposure"],
    settings={"block_days": "inference/block_days"},
    tables=[GROWTH, MCF],
    charts={"mcf": ("mcf", "growth")},
    sections=["growth"],
    memory_mb=600,
)
