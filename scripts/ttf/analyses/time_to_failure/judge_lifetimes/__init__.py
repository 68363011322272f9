"""Does the failure rate fall, stay or rise with age, and where does a constant one mislead?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import COUNTED, STRATUM, clustered, ends
from ttf.engine.contract import REASON, count, number, seconds, share, table, truth, whole_seconds, words

# Below so many failures the interval of the Weibull shape covers less than it says: tests/unit/test_coverage.py.
FEWEST_FAILURES = 100

# Of a rate that falls (or rises) over all lives, and is not seen to within groups.
MIXTURE = "a mixture, or too weak to tell"
_CLUSTERED = clustered(number)

LIFETIME_VERDICT = table(
    "lifetime_verdict",
    "A stratum: whether its failure rate changes with age, and what a constant one hides.",
    **STRATUM,
    **COUNTED,
    verdict=words(
        "Over all", "The hazard `falls`, `rises` or `stays` with age, or is unclear, if all at risk are alike.", REASON
    ),
    shape=number("Weibull shape", "Over all at risk: below 1 a decreasing hazard, above 1 an increasing one.", REASON),
    **ends(number, "the shape's interval if all at risk are independent", REASON, "shape_"),
    cluster_by=_CLUSTERED["cluster_by"],
    clusters=_CLUSTERED["clusters"],
    shape_ci_low_clustered=_CLUSTERED["ci_low_clustered"],
    shape_ci_high_clustered=_CLUSTERED["ci_high_clustered"],
    lr_statistic=number("χ²", "Likelihood ratio of the Weibull and the exponential, one degree of freedom.", REASON),
    p_value=number("p", "Of the likelihood ratio, if all at risk are independent.", REASON),
    p_clustered=number("p, clustered", "That the shape is 1, by its clustered standard error.", REASON),
    misleads=truth("A single MTTF misleads", "p < 0.01, and a gap of 0.05 or a ratio of 2 either way.", REASON),
    misleads_clustered=truth("A single MTTF misleads", "The same by the clustered p.", REASON),
    verdict_within=words("Within", f"falls, rises or stays with age within groups, {MIXTURE}, or unclear.", REASON),
    within=words("Groups by", "What repeats: those of one group have one rate, and all groups one shape.", REASON),
    groups=count("Groups", "Those of two at risk or more.", REASON, "groups"),
    shape_within=number("Shape within", "Weibull shape within groups whose rates differ by a gamma frailty.", REASON),
    **ends(number, "its clustered interval", REASON, "shape_within_"),
    frailty_variance=number("Frailty variance", "Of the groups' rates about a mean of 1.", REASON),
    largest_gap=share("Largest gap", "Survival of the exponential less Kaplan-Meier's, where furthest apart.", REASON),
    at_s=whole_seconds("at", "Age of the largest gap, of those with 30 or more at risk.", REASON),
    km_survival=share("Kaplan-Meier", "Survival at that age.", REASON),
    exponential_survival=share("Exponential", "Survival at that age under a constant rate.", REASON),
    split_age_s=whole_seconds("Half by", "Age by which half of the time at risk had passed.", REASON),
    young_events=count("Failures, young", "Up to that age.", REASON, "failures"),
    old_events=count("Failures, old", "After that age.", REASON, "failures"),
    young_mttf_s=seconds("Mean, young", "Mean time to failure up to that age.", REASON),
    old_mttf_s=seconds("Mean, old", "Mean time to failure after that age.", REASON),
    mttf_ratio=number("Ratio", "Mean, old, over mean, young.", REASON),
)
LIFETIME_VERDICTS = table(
    "lifetime_verdicts",
    "All strata of failures with a verdict: how many of them are judged how.",
    strata=count("Strata", "Those but `all`.", unit="strata"),
    **{
        word: count(heading, f"Strata whose hazard within groups {does}.", unit="strata", n="strata")
        for word, (heading, does) in {
            "falls": ("Falls", "decreases with age"),
            "stays": ("Stays", "shows no change"),
            "rises": ("Rises", "increases with age"),
            "mixture": ("Mixture", f"is that of {MIXTURE}"),
            "unclear": ("Unclear", "is open"),
            "no_verdict_within": ("Cannot be told", "cannot be told"),
        }.items()
    },
    misleads=count("A single MTTF misleads", "Strata in which it does.", unit="strata", n="strata"),
    no_misleads_clustered=count("Cannot be told", "Strata of which it cannot be told.", unit="strata", n="strata"),
)

ANALYSIS = Analysis(
    question="Does the hazard decrease, stay or increase with age, and where does a constant one mislead?",
    theme="time_to_failure",
    rank=20,
    needs=["survival_curves", "lifetime_models", "lives"],
    settings={"causes": lambda trace: trace.causes},
    tables=(LIFETIME_VERDICT, LIFETIME_VERDICTS),
    sections=["lifetimes"],
    in_size_unit=True,
    memory_mb=250,
    mb_per_gb={"pai2020": 60, "philly": 300, "sacct": 400},
)
