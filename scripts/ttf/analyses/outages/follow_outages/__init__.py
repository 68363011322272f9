"""Do faults become more or less frequent, and when did their rate change?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, name, number, table, whole_seconds, words

_STRATUM = {
    "stratum_by": words("Strata", "all, group (of units) or level (of causes); of either the 20 with most faults."),
    "stratum": name("Stratum", "The value that those of the row have of it.", by="stratum_by"),
}
_OF_ALL = "the row is not of all units"
GROWTH = table(
    "growth",
    "Faults of all units, some of them, or one level: whether they become more frequent, by tests that can disagree.",
    **_STRATUM,
    n=count("Faults", "Records that began while watched, but for those that go on or repeat another.", unit="faults"),
    beta=number("Growth β", "Of the Crow-AMSAA model in cumulative time watched: above 1 is getting worse.", REASON),
    ci_low=number("95% from", "Lower end of its exact interval.", REASON),
    ci_high=number("95% to", "Upper end of it.", REASON),
    laplace_u=number("Laplace U", "Mean time of the faults less half the time watched, in SDs.", REASON),
    laplace_p=number("Laplace p", "Two-sided; it supposes a Poisson process, and bursts alone reject it.", REASON),
    mil_hdbk_p=number("MIL-HDBK p", "Two-sided, of the military handbook test; it supposes the same.", REASON),
    lewis_robinson_p=number("Lewis-Robinson p", "Two-sided: Laplace's, corrected for bursts.", REASON),
    change_point_s=whole_seconds("Point of change", "Furthest from a constant rate, clock of the trace.", REASON),
    change_point_p=number("Change p", "Kolmogorov's, of the furthest distance from a constant rate.", REASON),
    change_point_p_corrected=number("Change p, corrected", "The same, corrected for bursts.", REASON),
    rate_ratio=number(
        "Rate after / before", "Faults over time watched after the point of change, over before.", REASON
    ),
    strata=count("Groups", "Those with faults, each with a rate and a time of its own.", REASON, "groups"),
    beta_within=number("Growth β within groups", "What groups have in common.", REASON),
    beta_within_ci_low=number("95% from", "Lower end of its interval by blocks of time, for bursts and drift.", REASON),
    beta_within_ci_high=number("95% to", "Upper end of it.", REASON),
    effective_blocks=number("Effective blocks", "Of time (weeks, or longer), behind that interval.", REASON),
    homogeneity_p=number("p, one β", "That no group has another growth.", "there is one group, or none can be tested"),
    trend_t=number("Trend t", "Mean time of the faults of a group against no trend, in SEs by blocks.", REASON),
    trend_p=number("Trend p", "Two-sided, by blocks.", REASON),
    trend_p_adjusted=number("Trend p, adjusted", "By Holm's method over the groups, or levels.", REASON),
    trend=words("Trend", "worse or better where the adjusted p is below 0.05, else none.", REASON),
    groups_tested=count("Groups tested", "Those with a trend, or none.", _OF_ALL, "groups"),
    groups_better=count("Groups better", "Those of them.", _OF_ALL, "groups"),
    groups_worse=count("Groups worse", "Those of them.", _OF_ALL, "groups"),
)
MCF = table(
    "mcf",
    "A time at which faults began, of at most 2,000 a stratum: how many a unit has had by then, on average.",
    **_STRATUM,
    time_s=whole_seconds("Time", "Since the first unit was watched."),
    at_risk=count("Watched", "Units watched then.", unit="units"),
    mcf=number("Mean faults", "Mean cumulative function: faults of a unit so far.", unit="faults"),
    ci_low=number("95% from", "Lower end of the robust interval, on the log scale.", REASON, "faults"),
    ci_high=number("95% to", "Upper end of it.", REASON, "faults"),
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
