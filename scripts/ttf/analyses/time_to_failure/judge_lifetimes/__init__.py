"""Does the hazard change with age, and where does a single MTTF mislead?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import COUNTED, STRATUM, clustered_columns, interval_columns
from ttf.engine.contract import REASON, count, number, seconds, share, table, truth, whole_seconds, words

# With fewer failures the interval of the Weibull shape covers less than 95%: tests/unit/test_coverage.py.
FEWEST_FAILURES = 100

# Verdict if the hazard decreases (or increases) over all units, but not significantly within groups.
MIXTURE = "a mixture of rates, or too little data"
_CLUSTERED = clustered_columns(number)

LIFETIME_VERDICT = table(
    "lifetime_verdict",
    "Whether the hazard of a stratum changes with age, and the error of a constant rate.",
    **STRATUM,
    **COUNTED,
    verdict=words("Over all", "Hazard by age if all units have one rate: falls, rises, stays or unclear.", REASON),
    shape=number("Weibull shape", "Weibull shape; below 1 the hazard decreases, above 1 it increases.", REASON),
    **interval_columns(number, "the shape's interval if durations are independent", REASON, "shape_"),
    cluster_by=_CLUSTERED["cluster_by"],
    clusters=_CLUSTERED["clusters"],
    shape_ci_low_clustered=_CLUSTERED["ci_low_clustered"],
    shape_ci_high_clustered=_CLUSTERED["ci_high_clustered"],
    p_value=number("p", "P-value of the likelihood ratio if durations are independent.", REASON),
    p_clustered=number("p, clustered", "P-value of a shape of 1, from the clustered standard error.", REASON),
    misleads=truth(
        "A single MTTF misleads", "Whether one MTTF misleads: p < 0.01, and a gap of 0.05 or a ratio of 2.", REASON
    ),
    misleads_clustered=truth(
        "A single MTTF misleads", "Whether one MTTF misleads, judged by the clustered p-value.", REASON
    ),
    verdict_within=words(
        "Within", f"Hazard by age within groups: falls, rises, stays, unclear, or “{MIXTURE}”.", REASON
    ),
    group_by=words("Groups by", "Kind of groups; each group has its own rate, and all have one shape.", REASON),
    groups=count("Groups", "Groups with two or more durations.", REASON, "groups"),
    shape_within=number("Shape within", "Weibull shape with gamma frailty of the groups' rates.", REASON),
    **interval_columns(number, "the clustered interval", REASON, "shape_within_"),
    largest_gap=share(
        "Largest gap", "Largest difference between survival at a constant rate and Kaplan-Meier.", REASON
    ),
    at_s=whole_seconds("at", "Age of the largest gap, among ages with 30 or more at risk.", REASON),
    km_survival=share("Kaplan-Meier", "Survival at the age of the largest gap.", REASON),
    exponential_survival=share("Exponential", "Survival under a constant rate at the age of the largest gap.", REASON),
    split_age_s=whole_seconds("Half by", "Age by which half of the time at risk has passed.", REASON),
    young_events=count("Failures, young", "Failures in the first half of the time at risk.", REASON, "failures"),
    old_events=count("Failures, old", "Failures in the second half of the time at risk.", REASON, "failures"),
    young_mttf_s=seconds("Mean, young", "Mean time to failure in the first half of the time at risk.", REASON),
    old_mttf_s=seconds("Mean, old", "Mean time to failure in the second half of the time at risk.", REASON),
    mttf_ratio=number("Ratio", "Mean time to failure of the second half divided by that of the first half.", REASON),
)
LIFETIME_VERDICTS = table(
    "lifetime_verdicts",
    "Number of strata by verdict, over all strata with one.",
    strata=count("Strata", "Strata except `all`.", unit="strata"),
    **{
        word: count(heading, f"Strata in which the hazard within groups {does}.", unit="strata", n="strata")
        for word, (heading, does) in {
            "falls": ("Falls", "decreases with age"),
            "stays": ("Stays", "does not change"),
            "rises": ("Rises", "increases with age"),
            "mixture": ("Mixture", "may be constant, with different rates"),
            "unclear": ("Unclear", "may decrease, increase or be constant"),
            "no_verdict_within": ("Not determined", "has no estimate"),
        }.items()
    },
    misleads=count("A single MTTF misleads", "Strata in which a single MTTF misleads.", unit="strata", n="strata"),
    no_misleads_clustered=count(
        "Not determined", "Strata with no verdict on a single MTTF.", unit="strata", n="strata"
    ),
)

ANALYSIS = Analysis(
    question="Does the hazard change with age, and where does a single MTTF mislead?",
    theme="time_to_failure",
    rank=20,
    needs=["survival_curves", "lifetime_models", "durations"],
    settings={"causes": lambda trace: trace.causes},
    tables=(LIFETIME_VERDICT, LIFETIME_VERDICTS),
    sections=["lifetimes"],
    in_size_unit=True,
    memory_mb=250,
    mb_per_gb={"pai2020": 60, "philly": 300, "sacct": 400},
)
