"""How long do lives last, and what is the mean time to failure?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, parquet, reason, seconds, share, table, text, truth, whole_seconds

SURVIVAL = table(
    "survival",
    "TODO",
    event=text("Event", "TODO"),
    stratum_by=text("Stratum by", "TODO"),
    stratum=text("Stratum", "TODO"),
    time_s=whole_seconds("Time", "TODO"),
    at_risk=count("At risk", "TODO"),
    events=count("Events", "TODO"),
    censored=count("Censored", "TODO"),
    survival=number("Survival", "TODO", blank="TODO"),
    ci_low=number("Ci low", "TODO", blank="TODO"),
    ci_high=number("Ci high", "TODO", blank="TODO"),
    reason=reason(),
)
SURVIVAL_SUMMARY = table(
    "survival_summary",
    "TODO",
    event=text("Event", "TODO"),
    stratum_by=text("Stratum by", "TODO"),
    stratum=text("Stratum", "TODO"),
    n=count("N", "TODO"),
    events=count("Events", "TODO"),
    median_s=whole_seconds("Median", "TODO", blank="TODO"),
    median_ci_low_s=whole_seconds("Median ci low", "TODO", blank="TODO"),
    median_ci_high_s=whole_seconds("Median ci high", "TODO", blank="TODO"),
    horizon_s=whole_seconds("Horizon", "TODO", blank="TODO"),
    restricted_mean_s=seconds("Restricted mean", "TODO", blank="TODO"),
    restricted_mean_se_s=seconds("Restricted mean se", "TODO", blank="TODO"),
    reason=reason(),
)
MTTF = table(
    "mttf",
    "TODO",
    event=text("Event", "TODO"),
    stratum_by=text("Stratum by", "TODO"),
    stratum=text("Stratum", "TODO"),
    n=count("N", "TODO"),
    events=count("Events", "TODO"),
    exposure_s=whole_seconds("Exposure", "TODO"),
    mttf_s=seconds("Mttf", "TODO", blank="TODO"),
    confidence=number("Confidence", "TODO"),
    ci_low_s=seconds("Ci low", "TODO", blank="TODO"),
    ci_high_s=seconds("Ci high", "TODO", blank="TODO"),
    gpu_days=number("Gpu days", "TODO", blank="TODO"),
    failures_per_1000_gpu_days=number("Failures per 1000 gpu days", "TODO", blank="TODO"),
    node_days=number("Node days", "TODO", blank="TODO"),
    failures_per_1000_node_days=number("Failures per 1000 node days", "TODO", blank="TODO"),
    reason=reason(),
)
FAILURES_WITHOUT_END = table(
    "failures_without_end",
    "TODO",
    stratum_by=text("Stratum by", "TODO"),
    stratum=text("Stratum", "TODO"),
    failures=count("Failures", "TODO"),
    without_end=count("Without end", "TODO"),
    share_without_end=share("Share without end", "TODO", blank="TODO"),
    mttf_s=seconds("Mttf", "TODO", blank="TODO"),
    mttf_low_s=seconds("Mttf low", "TODO", blank="TODO"),
    mttf_high_s=seconds("Mttf high", "TODO", blank="TODO"),
    reason=reason(),
)
LIFETIME_MODELS = table(
    "lifetime_models",
    "TODO",
    event=text("Event", "TODO"),
    stratum_by=text("Stratum by", "TODO"),
    stratum=text("Stratum", "TODO"),
    model=text("Model", "TODO"),
    n=count("N", "TODO"),
    events=count("Events", "TODO"),
    exposure_s=whole_seconds("Exposure", "TODO"),
    shape=number("Shape", "TODO", blank="TODO"),
    shape_se=number("Shape se", "TODO", blank="TODO"),
    scale_s=seconds("Scale", "TODO", blank="TODO"),
    scale_se_s=seconds("Scale se", "TODO", blank="TODO"),
    mu_log_s=seconds("Mu log", "TODO", blank="TODO"),
    mu_log_se=number("Mu log se", "TODO", blank="TODO"),
    sigma=number("Sigma", "TODO", blank="TODO"),
    sigma_se=number("Sigma se", "TODO", blank="TODO"),
    mean_s=seconds("Mean", "TODO", blank="TODO"),
    median_s=seconds("Median", "TODO", blank="TODO"),
    loglik=number("Loglik", "TODO", blank="TODO"),
    aic=number("Aic", "TODO", blank="TODO"),
    bic=number("Bic", "TODO", blank="TODO"),
    converged=truth("Converged", "TODO"),
    best=truth("Best", "TODO"),
    reason=reason(),
)
SURVIVAL_CURVES = parquet(
    "survival_curves",
    "TODO",
    "tables/survival.parquet",
    event=text("Event", "TODO", blank="TODO"),
    stratum_by=text("Stratum by", "TODO", blank="TODO"),
    stratum=text("Stratum", "TODO", blank="TODO"),
    time_s=whole_seconds("Time", "TODO", blank="TODO"),
    at_risk=count("At risk", "TODO", blank="TODO"),
    events=count("Events", "TODO", blank="TODO"),
    censored=count("Censored", "TODO", blank="TODO"),
    survival=number("Survival", "TODO", blank="TODO"),
    ci_low=number("Ci low", "TODO", blank="TODO"),
    ci_high=number("Ci high", "TODO", blank="TODO"),
    reason=reason(),
)


def charts(trace) -> dict:
    """Of jobs by GPU type and number of GPUs, of components by each of their strata."""
    strata = ["gpu_type", "gpu_count"] if trace.has_jobs else trace.strata
    return (
        {"survival": ["survival", "survival_summary"]}
        | {f"survival_by_{name}": ["survival", "survival_summary"] for name in strata}
        | {f"mttf_by_{name}": "mttf" for name in strata}
    )


ANALYSIS = Analysis(
    question="How long do lives last, and what is the mean time to failure?",
    theme="survival",
    rank=10,
    needs=["lives"],
    settings={
        "max_steps": "survival/max_steps",
        "strata": lambda trace: trace.strata,
        "causes": lambda trace: trace.causes,
    },
    tables=(
        SURVIVAL,
        SURVIVAL_SUMMARY,
        MTTF,
        FAILURES_WITHOUT_END,
        LIFETIME_MODELS,
        SURVIVAL_CURVES,
    ),
    charts=charts,
    sections=["survival"],
    memory_mb=310,
    mb_per_gb={"pai2020": 20, "philly": 210, "sacct": 4000},
)
