"""What does study 1 come to by its own recipe, and what with the questions asked well?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, table, text, truth, whole_seconds

STUDY1 = table(
    "study1",
    "TODO",
    question=text("Question", "TODO"),
    outcome=text("Outcome", "TODO"),
    feature=text("Feature", "TODO"),
    value=text("Value", "TODO", blank="TODO"),
    cutoff_s=whole_seconds("Cutoff", "TODO", blank="TODO"),
    study_set=text("Study set", "TODO"),
    study_measure=text("Study measure", "TODO"),
    study_estimate=number("Study estimate", "TODO", blank="TODO"),
    study_ci_low=number("Study ci low", "TODO", blank="TODO"),
    study_ci_high=number("Study ci high", "TODO", blank="TODO"),
    study_n=count("Study n", "TODO"),
    study_p=number("Study p", "TODO", blank="TODO"),
    asked_set=text("Asked set", "TODO"),
    asked_measure=text("Asked measure", "TODO"),
    asked_estimate=number("Asked estimate", "TODO", blank="TODO"),
    asked_ci_low=number("Asked ci low", "TODO", blank="TODO"),
    asked_ci_high=number("Asked ci high", "TODO", blank="TODO"),
    asked_n=count("Asked n", "TODO"),
    asked_p=number("Asked p", "TODO", blank="TODO"),
    asked_p_adjusted=number("Asked p adjusted", "TODO", blank="TODO"),
    split_value=text("Split value", "TODO", blank="TODO"),
    rate_ratio=number("Rate ratio", "TODO", blank="TODO"),
    rate_ci_low=number("Rate ci low", "TODO", blank="TODO"),
    rate_ci_high=number("Rate ci high", "TODO", blank="TODO"),
    rate_failures=count("Rate failures", "TODO", blank="TODO"),
    rate_p=number("Rate p", "TODO", blank="TODO"),
    rate_p_adjusted=number("Rate p adjusted", "TODO", blank="TODO"),
    rate_reject=truth("Rate reject", "TODO", blank="TODO"),
    verdict=text("Verdict", "TODO", blank="TODO"),
    change=text("Change", "TODO"),
    reason=reason(),
)

ANALYSIS = Analysis(
    question="What does study 1 come to by its own recipe, and what with the questions asked well?",
    theme="failure",
    rank=20,
    needs=["jobs", "correlations", "runtime_by_group", "mttf"],
    settings={"significance": "correlation/significance", "unit": lambda trace: trace.unit},
    tables=(STUDY1,),
    charts={"study1_asked_twice": "study1"},
    sections=["study1"],
    memory_mb=260,
    mb_per_gb={"pai2020": 10, "philly": 30},
)
