"""How long until a failure, and what is the mean time to failure?"""

from ttf.analyses.declaration import Analysis, unit_block_days
from ttf.engine import columns
from ttf.engine.columns import COUNTED, STRATUM
from ttf.engine.contract import REASON, count, number, parquet, seconds, share, table, truth, whole_seconds, words

# A step of the survival curve is a time limit if more than this share of its failures are, and if at least
# FEWEST_FAILURES and this share of all jobs end by it; so many are reported.
MOSTLY, LEAST_LIMIT_SHARE, MOST_LIMITS = 0.5, 0.01, 3
# A drop of the survival curve by more than this at one second is a step.
STEP = 0.05
# Part of a metric key -> age (s) at which charts and sentences give the share without failure, and its words.
AGES = {"1min": (60, "1 min"), "1h": (3_600, "1 h"), "1d": (86_400, "1 day"), "1y": (31_536_000, "1 year")}
_NO_TIMES, _NO_REPAIRS = "the trace gives no times", "no time to repair is written"
_NO_GAP = "no such time"
_LOWEST_ROW = "the row is of the lowest rate"
_NO_PARAMETER = "the model has no such parameter, or could not be fitted"

SURVIVAL = table("survival", "A step of a survival curve; long curves are thinned.", **columns.CURVES)
SURVIVAL_CURVES = parquet("survival_curves", "A step, not thinned.", "tables/survival.parquet", **columns.CURVES)
SURVIVAL_AT = table(
    "survival_at",
    "The share of all units without failure at an age, from the curve before thinning.",
    "durations",
    time_s=whole_seconds("Age", "A minute, an hour, a day, a year, up to the end of the curve."),
    n=count("n", "Units at risk.", unit="durations"),
    **{name: columns.CURVES[name] for name in ("survival", "ci_low", "ci_high")},
    **columns.CLUSTERED,
)
SURVIVAL_SUMMARY = table("survival_summary", "Survival summary of a stratum.", **columns.SUMMARY)
SURVIVAL_STEPS = table(
    "survival_steps",
    "A second at which the survival curve of all units drops by more than 5 points, or its largest step.",
    "durations",
    time_s=whole_seconds("Time", "Age at which survival drops."),
    failures=count("Failures", "Failures at that age, to the second.", unit="durations"),
    time_limits=count("of them time limits", "Failures whose status names a time limit.", unit="durations"),
    timeout_share=share("Time limits", "Share of the failures at that age that are time limits.", n="failures"),
    drop=share("Step", "Drop of the survival curve at that age.", n="failures"),
    is_limit=truth("A limit", "Whether many units end there, most failures by a time limit (rule R10)."),
    survival=share("Without failure", "Survival after the step."),
)
DURATIONS_SUMMARY = table(
    "durations_summary",
    "All units at risk of a component trace, with times to repair if recorded.",
    units=count("Units", "Units that were at risk.", unit="units", n="durations"),
    durations=count("At risk", "Periods at risk.", unit="durations"),
    failures=count("Failures", "Periods that ended in failure.", unit="failures", n="durations"),
    exposure_s=whole_seconds("Time at risk", "Sum of the periods.", n="durations"),
    from_s=whole_seconds("From", "First moment, on the clock of the trace.", _NO_TIMES),
    to_s=whole_seconds("To", "Last moment.", _NO_TIMES),
    days=count("Days", "From the first moment to the last, rounded up.", _NO_TIMES, "days"),
    silence_s=whole_seconds(
        "Silence",
        "Time without any event that is over half of all days, with few failures before or after it.",
        _NO_GAP,
    ),
    repairs=count("Repairs", "Repairs of known duration.", unit="repairs"),
    repair_mean_s=seconds("Mean repair", "Mean repair time.", _NO_REPAIRS, n="repairs"),
    repair_median_s=seconds("Median repair", "Median repair time.", _NO_REPAIRS, n="repairs"),
    repair_p90_s=seconds("90th percentile", "90th percentile of the repair times.", _NO_REPAIRS, n="repairs"),
)
FAR_GROUPS = table(
    "far_groups",
    "Groups of components with the highest and the lowest failure rate, if these differ fivefold or more.",
    end=words("End", "highest or lowest."),
    stratum_by=STRATUM["stratum_by"],
    stratum=STRATUM["stratum"],
    **COUNTED,
    years=count("Years", "Last whole year with a tenth still at risk.", _LOWEST_ROW, "years"),
    failed_share=share("Failed", "Share failed by the end of that year (Kaplan-Meier).", _LOWEST_ROW),
)
MTTF = table("mttf", "Mean time to failure of a stratum, with censoring, at one confidence level.", **columns.MTTF)
FAILURES_WITHOUT_END = table(
    "failures_without_end",
    "Range of a stratum's mean time to failure that failures without a recorded end allow.",
    stratum_by=STRATUM["stratum_by"],
    stratum=STRATUM["stratum"],
    failures=count("Failures", "Units at risk that ended in failure.", unit="durations"),
    without_end=count("without end", "Failures of unknown duration.", unit="durations"),
    share_without_end=share("Share without end", "Share of failures that have no recorded end.", REASON),
    mttf_s=seconds("Mean time to failure", "Time at risk divided by failures with an end.", REASON),
    mttf_low_s=seconds("At least", "Mean time to failure if failures without an end came immediately.", REASON),
    mttf_high_s=seconds("at most", "Mean time to failure if failures without an end came at the trace's end.", REASON),
)
LIFETIME_MODELS = table(
    "lifetime_models",
    "A lifetime model of a stratum, fitted by maximum likelihood with censoring.",
    **STRATUM,
    model=words("Model", "Lifetime model: exponential, weibull, lognormal or gamma."),
    **COUNTED,
    exposure_s=columns.MTTF["exposure_s"],
    shape=number("Shape", "Shape of the Weibull or the gamma.", _NO_PARAMETER),
    shape_se=number("Standard error", "Standard error of the shape.", _NO_PARAMETER),
    scale_s=seconds("Scale", "Scale of the exponential, the Weibull or the gamma.", _NO_PARAMETER),
    scale_se_s=seconds("Standard error", "Standard error of the scale.", _NO_PARAMETER),
    mu_log_s=number("μ", "Mean of the log of the lognormal's seconds.", _NO_PARAMETER),
    mu_log_se=number("Standard error", "Standard error of μ.", _NO_PARAMETER),
    sigma=number("σ", "Standard deviation of the log of the lognormal's seconds.", _NO_PARAMETER),
    sigma_se=number("Standard error", "Standard error of σ.", _NO_PARAMETER),
    mean_s=seconds("Mean", "Mean of the fitted model.", REASON),
    median_s=seconds("Median", "Median of the fitted model.", REASON),
    loglik=number("Log-likelihood", "Maximum of the log-likelihood of the density in seconds.", REASON),
    aic=number("AIC", "Akaike's criterion: twice the number of parameters less twice the log-likelihood.", REASON),
    bic=number("BIC", "Bayesian criterion: ln(n) per parameter in place of 2.", REASON),
    converged=truth("Converged", "Whether the search found a maximum."),
    best=truth("Best", "Whether its AIC is the lowest of the stratum."),
)


def charts(trace) -> dict:
    """Charts of a trace: the curve over all units, and curves by stratum for jobs or means for components."""
    strata = ["gpu_type", "gpu_count"] if trace.has_jobs else trace.strata
    tables_by_chart = {"still_running": ["survival", "survival_at", "survival_steps", "mttf"]}
    if trace.has_jobs:
        return tables_by_chart | {f"survival_by_{name}": ["survival", "survival_summary"] for name in strata}
    return tables_by_chart | {f"mttf_by_{name}": "mttf" for name in strata}


ANALYSIS = Analysis(
    question="How long until a failure, and what is the mean time to failure?",
    theme="time_to_failure",
    rank=10,
    needs=["durations"],
    uses=["jobs"],
    settings={
        "max_steps": "survival/max_steps",
        "strata": lambda trace: trace.strata,
        "causes": lambda trace: trace.causes,
        "block_days": unit_block_days,
    },
    tables=(
        *(SURVIVAL, SURVIVAL_AT, SURVIVAL_SUMMARY, SURVIVAL_STEPS, MTTF, FAILURES_WITHOUT_END, LIFETIME_MODELS),
        *(DURATIONS_SUMMARY, FAR_GROUPS),
        SURVIVAL_CURVES,
    ),
    charts=charts,
    main=("still_running",),
    sections=["survival"],
    in_size_unit=True,
    memory_mb=350,
    mb_per_gb={"pai2020": 90, "philly": 320, "sacct": 4700},
)
