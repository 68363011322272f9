"""Does the failure rate fall, stay or rise with age, and where does a constant one mislead?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, seconds, table, text, truth, whole_seconds

LIFETIME_VERDICT = table(
    "lifetime_verdict",
    "TODO",
    event=text("Event", "TODO"),
    stratum_by=text("Stratum by", "TODO"),
    stratum=text("Stratum", "TODO"),
    n=count("N", "TODO"),
    events=count("Events", "TODO"),
    verdict=text("Verdict", "TODO", blank="TODO"),
    shape=number("Shape", "TODO", blank="TODO"),
    shape_ci_low=number("Shape ci low", "TODO", blank="TODO"),
    shape_ci_high=number("Shape ci high", "TODO", blank="TODO"),
    lr_statistic=number("Lr statistic", "TODO", blank="TODO"),
    p_value=number("P value", "TODO", blank="TODO"),
    misleads=truth("Misleads", "TODO", blank="TODO"),
    largest_gap=number("Largest gap", "TODO", blank="TODO"),
    at_s=whole_seconds("At", "TODO", blank="TODO"),
    km_survival=number("Km survival", "TODO", blank="TODO"),
    exponential_survival=number("Exponential survival", "TODO", blank="TODO"),
    split_age_s=whole_seconds("Split age", "TODO", blank="TODO"),
    young_events=count("Young events", "TODO", blank="TODO"),
    old_events=count("Old events", "TODO", blank="TODO"),
    young_mttf_s=seconds("Young mttf", "TODO", blank="TODO"),
    old_mttf_s=seconds("Old mttf", "TODO", blank="TODO"),
    mttf_ratio=number("Mttf ratio", "TODO", blank="TODO"),
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
