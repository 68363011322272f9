"""How long do lives last, and what is the mean time to failure?"""

from ttf.analyses.declaration import Analysis, block_days_of_units
from ttf.engine import columns
from ttf.engine.columns import COUNTED, STRATUM
from ttf.engine.contract import REASON, count, number, parquet, seconds, share, table, truth, whole_seconds, words

# A step of the survival curve of which more of the failures are time limits is one of a limit; so many are told.
MOSTLY, MOST_LIMITS = 0.5, 3
# A fall of the survival curve by more at one second is a step of its own.
STEP = 0.05
# The ages (s) at which charts and sentences give the share without failure, and their words, by their part of a key.
AGES = {"1min": (60, "1 min"), "1h": (3_600, "1 h"), "1d": (86_400, "1 day"), "1y": (31_536_000, "1 year")}
_NO_TIMES, _NO_REPAIRS = "the trace gives no times", "no time to repair is written"
_LOWEST = "the row is of the lowest rate"
_NO_PARAMETER = "the model has no such parameter, or could not be fitted"

SURVIVAL = table("survival", "A step of a survival curve; of long curves some steps.", **columns.CURVES)
SURVIVAL_CURVES = parquet("survival_curves", "A step of a curve, of all.", "tables/survival.parquet", **columns.CURVES)
SURVIVAL_AT = table(
    "survival_at",
    "An age, and the share of all without failure at that age: of the whole curve, which survival.csv may cut short.",
    "lives",
    time_s=whole_seconds("Age", "A minute, an hour, a day, a year, as far as the curve goes."),
    n=count("n", "Units at risk.", unit="lives"),
    **{name: columns.CURVES[name] for name in ("survival", "ci_low", "ci_high")},
    **columns.CLUSTERED,
)
SURVIVAL_SUMMARY = table("survival_summary", "A stratum, and how long its units at risk last.", **columns.SUMMARY)
SURVIVAL_STEPS = table(
    "survival_steps",
    "A second at which the survival curve of all falls by more than 5 points; the largest step, even if smaller.",
    "lives",
    time_s=whole_seconds("Time", "Age at the step."),
    failures=count("Failures", "At that second.", unit="lives"),
    time_limits=count("of them time limits", "Failures whose status names a time limit.", unit="lives"),
    timeout_share=share("Time limits", "Of the failures.", n="failures"),
    drop=share("Step", "By which the curve falls.", n="failures"),
    survival=share("Without failure", "After the step."),
)
LIVES_SUMMARY = table(
    "lives_summary",
    "All that was at risk, of a trace of components, with their times to repair where these are written.",
    units=count("Units", "Units that were at risk.", unit="units", n="lives"),
    lives=count("At risk", "Periods at risk.", unit="lives"),
    failures=count("Failures", "Those of them that ended in failure.", unit="failures", n="lives"),
    exposure_s=whole_seconds("Time at risk", "Sum of their durations.", n="lives"),
    from_s=whole_seconds("From", "First moment, on the clock of the trace.", _NO_TIMES),
    to_s=whole_seconds("To", "Last moment.", _NO_TIMES),
    days=count("Days", "From the first moment to the last, rounded up.", _NO_TIMES, "days"),
    repairs=count("Repairs", "Of known length.", unit="repairs"),
    repair_mean_s=seconds("Mean repair", "Of these.", _NO_REPAIRS, n="repairs"),
    repair_median_s=seconds("Median repair", "Of these.", _NO_REPAIRS, n="repairs"),
    repair_p90_s=seconds("90th percentile", "Of these, linear between ranks.", _NO_REPAIRS, n="repairs"),
)
FAR_GROUPS = table(
    "far_groups",
    "Groups of components with the highest and the lowest failure rate, where the two are far apart.",
    end=words("End", "highest or lowest."),
    stratum_by=STRATUM["stratum_by"],
    stratum=STRATUM["stratum"],
    **COUNTED,
    years=count("Years", "Last whole year at which a tenth was still at risk.", _LOWEST, "years"),
    failed_share=share("Failed", "By the end of that year (Kaplan-Meier).", _LOWEST),
)
MTTF = table("mttf", "A stratum and a confidence: its mean time to failure with censoring.", **columns.MTTF)
FAILURES_WITHOUT_END = table(
    "failures_without_end",
    "A stratum, and what the failures whose end was not written could do to its mean time to failure.",
    stratum_by=STRATUM["stratum_by"],
    stratum=STRATUM["stratum"],
    failures=count("Failures", "Units at risk that ended in failure.", unit="lives"),
    without_end=count("without end", "Those of them of unknown duration.", unit="lives"),
    share_without_end=share("Share without end", "Of the failures.", REASON),
    mttf_s=seconds("Mean time to failure", "Time at risk over the failures with an end.", REASON),
    mttf_low_s=seconds("At least", "If those without an end had failed at once.", REASON),
    mttf_high_s=seconds("at most", "If they had lasted to the trace's end.", REASON),
)
LIFETIME_MODELS = table(
    "lifetime_models",
    "A stratum and a model of its lifetimes, fitted by maximum likelihood with censoring.",
    **STRATUM,
    model=words("Model", "exponential, weibull, lognormal or gamma."),
    **COUNTED,
    exposure_s=columns.MTTF["exposure_s"],
    shape=number("Shape", "Of the Weibull or the gamma.", _NO_PARAMETER),
    shape_se=number("Standard error", "Of the shape.", _NO_PARAMETER),
    scale_s=seconds("Scale", "Of the exponential, the Weibull or the gamma.", _NO_PARAMETER),
    scale_se_s=seconds("Standard error", "Of the scale.", _NO_PARAMETER),
    mu_log_s=number("μ", "Mean of the log of the lognormal's seconds.", _NO_PARAMETER),
    mu_log_se=number("Standard error", "Of μ.", _NO_PARAMETER),
    sigma=number("σ", "Standard deviation of the log of the lognormal's seconds.", _NO_PARAMETER),
    sigma_se=number("Standard error", "Of σ.", _NO_PARAMETER),
    mean_s=seconds("Mean", "Of the fitted model.", REASON),
    median_s=seconds("Median", "Of the fitted model.", REASON),
    loglik=number("Log-likelihood", "Of the density in seconds, at its maximum.", REASON),
    aic=number("AIC", "Akaike's criterion: twice the parameters less twice the log-likelihood.", REASON),
    bic=number("BIC", "Bayesian criterion: with ln(n) a parameter in place of 2.", REASON),
    converged=truth("Converged", "Whether the search found a maximum."),
    best=truth("Best", "Whether its AIC is the lowest of the stratum."),
)


def charts(trace) -> dict:
    """The curve of all; of jobs those by GPU type and number of GPUs, of components the mean by each stratum."""
    strata = ["gpu_type", "gpu_count"] if trace.has_jobs else trace.strata
    drawn = {"still_running": ["survival", "survival_at", "survival_steps", "mttf"]}
    if trace.has_jobs:
        return drawn | {f"survival_by_{name}": ["survival", "survival_summary"] for name in strata}
    return drawn | {f"mttf_by_{name}": "mttf" for name in strata}


ANALYSIS = Analysis(
    question="How long until a failure, and what is the mean time to failure?",
    theme="time_to_failure",
    rank=10,
    needs=["lives"],
    uses=["jobs"],
    settings={
        "max_steps": "survival/max_steps",
        "strata": lambda trace: trace.strata,
        "causes": lambda trace: trace.causes,
        "block_days": block_days_of_units,
    },
    tables=(
        *(SURVIVAL, SURVIVAL_AT, SURVIVAL_SUMMARY, SURVIVAL_STEPS, MTTF, FAILURES_WITHOUT_END, LIFETIME_MODELS),
        *(LIVES_SUMMARY, FAR_GROUPS),
        SURVIVAL_CURVES,
    ),
    charts=charts,
    main=("still_running",),
    sections=["survival"],
    in_size_unit=True,
    memory_mb=350,
    mb_per_gb={"pai2020": 90, "philly": 320, "sacct": 4700},
)
