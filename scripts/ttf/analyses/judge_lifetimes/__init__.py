"""Does the failure rate fall, stay or rise with age, and where does a constant one mislead?"""

from ttf.analysis import Analysis
from ttf.columns import COUNTED, STRATUM, ends
from ttf.contract import REASON, count, number, reason, seconds, share, table, text, truth, whole_seconds

# Below so many failures the interval of the Weibull shape covers less than it says: tests/unit/test_coverage.py.
FEWEST_FAILURES = 100

LIFETIME_VERDICT = table(
    "lifetime_verdict",
    "A stratum: whether its failure rate changes with age, and what a constant one hides.",
    **STRATUM,
    **COUNTED,
    verdict=text("The rate", "falls, rises or stays with age, or unclear.", REASON),
    shape=number("Weibull shape", "Below 1 the failure rate falls with age, above 1 it rises.", REASON),
    **ends(number, "the shape's interval", REASON, "shape_"),
    lr_statistic=number("χ²", "Likelihood ratio of the Weibull and the exponential, one degree of freedom.", REASON),
    p_value=number("p", "Of the likelihood ratio.", REASON),
    misleads=truth("A constant one misleads", "p < 0.01, and a gap of 0.05 or a ratio of 2 either way.", REASON),
    largest_gap=share("Largest gap", "Survival of the exponential less Kaplan-Meier's, where furthest apart.", REASON),
    at_s=whole_seconds("at", "Age of the largest gap, of those with 30 lives or more at risk.", REASON),
    km_survival=share("Kaplan-Meier", "Survival at that age.", REASON),
    exponential_survival=share("Exponential", "Survival at that age under a constant rate.", REASON),
    split_age_s=whole_seconds("Half by", "Age by which half of the time at risk had passed.", REASON),
    young_events=count("Failures, young", "Up to that age.", REASON, "lives"),
    old_events=count("Failures, old", "After that age.", REASON, "lives"),
    young_mttf_s=seconds("Mean, young", "Mean time to failure up to that age.", REASON),
    old_mttf_s=seconds("Mean, old", "Mean time to failure after that age.", REASON),
    mttf_ratio=number("Ratio", "Mean, old, over mean, young.", REASON),
    reason=reason(),
)

ANALYSIS = Analysis(
    question="Does the failure rate fall, stay or rise with age, and where does a constant one mislead?",
    theme="survival",
    rank=20,
    needs=["survival_curves", "lifetime_models"],
    settings={"stratum_by": lambda trace: trace.strata[0]},
    tables=(LIFETIME_VERDICT,),
    charts={
        "probability_plots": ["lifetime_models", "survival_curves"],
        "probability_plots_by_stratum": ["lifetime_models", "survival_curves"],
    },
    sections=["lifetimes"],
    memory_mb=250,
    mb_per_gb={"pai2020": 10, "philly": 60},
)
