"""How do jobs end, and after what run time?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, parquet, reason, seconds, share, table, text, whole_seconds

OUTCOMES = table(
    "outcomes",
    "TODO",
    outcome=text("Outcome", "TODO"),
    jobs=count("Jobs", "TODO"),
    jobs_share=share("Jobs share", "TODO"),
    gpu_hours=number("Gpu hours", "TODO"),
    gpu_hours_share=share("Gpu hours share", "TODO"),
    runtime_mean_s=seconds("Runtime mean", "TODO", blank="TODO"),
    runtime_median_s=seconds("Runtime median", "TODO", blank="TODO"),
    runtime_p90_s=seconds("Runtime p90", "TODO", blank="TODO"),
    n=count("N", "TODO"),
    at_time_limit=count("At time limit", "TODO", blank="TODO"),
    reason=reason(),
)
OUTCOMES_GPU = table(
    "outcomes_gpu",
    "TODO",
    outcome=text("Outcome", "TODO"),
    jobs=count("Jobs", "TODO"),
    jobs_share=share("Jobs share", "TODO"),
    gpu_hours=number("Gpu hours", "TODO"),
    gpu_hours_share=share("Gpu hours share", "TODO"),
    runtime_mean_s=seconds("Runtime mean", "TODO", blank="TODO"),
    runtime_median_s=seconds("Runtime median", "TODO", blank="TODO"),
    runtime_p90_s=seconds("Runtime p90", "TODO", blank="TODO"),
    n=count("N", "TODO"),
    at_time_limit=count("At time limit", "TODO", blank="TODO"),
    reason=reason(),
)
RUNTIME_QUANTILES = table(
    "runtime_quantiles",
    "TODO",
    outcome=text("Outcome", "TODO"),
    n=count("N", "TODO"),
    share=share("Share", "TODO"),
    runtime_s=whole_seconds("Runtime", "TODO"),
)
SUCCESS = parquet("success", "TODO", "success.parquet", open=True)
FAILURE = parquet("failure", "TODO", "failure.parquet", open=True)
UNRESOLVED = parquet("unresolved", "TODO", "unresolved.parquet", open=True)
CANCELLED = parquet("cancelled", "TODO", "cancelled.parquet", open=True)

ANALYSIS = Analysis(
    question="How do jobs end, and after what run time?",
    theme="outcomes",
    rank=10,
    needs=["jobs"],
    settings={"words": lambda trace: trace.words},
    tables=(
        OUTCOMES,
        OUTCOMES_GPU,
        RUNTIME_QUANTILES,
        SUCCESS,
        FAILURE,
        UNRESOLVED,
        CANCELLED,
    ),
    charts={"outcome_shares": "outcomes", "runtime_distribution": ["runtime_quantiles", "outcomes"]},
    sections=["outcomes", "run_times/run_times"],
    memory_mb=460,
    mb_per_gb={"pai2020": 10},
)
