"""What goes with run time and failure?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, seconds, share, table, text, truth, whole_seconds

FAILURE_SHARE = table(
    "failure_share",
    "TODO",
    feature=text("Feature", "TODO"),
    value=text("Value", "TODO"),
    jobs=count("Jobs", "TODO"),
    ended=count("Ended", "TODO"),
    failures=count("Failures", "TODO"),
    failure_share=share("Failure share", "TODO", blank="TODO"),
    ci_low=number("Ci low", "TODO", blank="TODO"),
    ci_high=number("Ci high", "TODO", blank="TODO"),
    reason=reason(),
)
RUNTIME_BY_GROUP = table(
    "runtime_by_group",
    "TODO",
    outcome_set=text("Outcome set", "TODO"),
    feature=text("Feature", "TODO"),
    cutoff_s=whole_seconds("Cutoff", "TODO", blank="TODO"),
    value=text("Value", "TODO"),
    jobs=count("Jobs", "TODO"),
    runtime_mean_s=seconds("Runtime mean", "TODO"),
    runtime_median_s=seconds("Runtime median", "TODO"),
)
CORRELATIONS = table(
    "correlations",
    "TODO",
    outcome_set=text("Outcome set", "TODO"),
    feature=text("Feature", "TODO"),
    cutoff_s=whole_seconds("Cutoff", "TODO", blank="TODO"),
    unit=text("Unit", "TODO"),
    method=text("Method", "TODO"),
    n=count("N", "TODO"),
    estimate=number("Estimate", "TODO", blank="TODO"),
    ci_low=number("Ci low", "TODO", blank="TODO"),
    ci_high=number("Ci high", "TODO", blank="TODO"),
    p_value=number("P value", "TODO", blank="TODO"),
    p_adjusted=number("P adjusted", "TODO", blank="TODO"),
    reject=truth("Reject", "TODO", blank="TODO"),
    reason=reason(),
)

ANALYSIS = Analysis(
    question="What goes with run time and failure?",
    theme="failure",
    rank=10,
    needs=["jobs"],
    settings={"cutoffs_s": "correlation/cutoffs_s", "significance": "correlation/significance"},
    tables=(
        FAILURE_SHARE,
        RUNTIME_BY_GROUP,
        CORRELATIONS,
    ),
    charts={
        "runtime_by_gpu_type": "runtime_by_group",
        **{
            f"runtime_by_{name}{axis}": ["runtime_by_group", "correlations"]
            for name in ("gpu_request", "cpu_request", "memory_request", "size", "measured_use")
            for axis in ("", "_log")
        },
        "failure_share": ["failure_share", "outcomes"],
    },
    sections=["correlations"],
    memory_mb=200,
    mb_per_gb={"pai2020": 30, "sacct": 40},
)
