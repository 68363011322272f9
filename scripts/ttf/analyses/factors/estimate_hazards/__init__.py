"""Which factors are associated with failure, and how and when do units end?"""

from dataclasses import replace

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import (
    AT_AGE,
    CENSORED,
    COUNTED,
    MTTF,
    STRATUM,
    SUMMARY_DELAYED_ENTRY,
    clustered_columns,
    interval_columns,
)
from ttf.engine.contract import REASON, count, name, number, reason, share, table, truth, whole_seconds, words

# In the table `cox`: the level of an amount, and the covariate for all amounts together: a job twice as large has twice
# the GPUs on twice the nodes.
DOUBLING, JOB_SIZE = "per doubling", "job_size"
_ALL_STRATA, _PAIR = "the row compares all strata", "the row compares a pair"
_NO_RATIO = "the row is the whole model, or the column reason says why"
_NOT_TESTED = "the row is no coefficient, or could not be tested"
_CLUSTERED = {name: column for name, column in clustered_columns(number).items() if name in ("cluster_by", "clusters")}
_COMPETING = STRATUM | {"event": words("Ended by", "One of the competing risks.")}

CUMULATIVE_INCIDENCE = table(
    "cumulative_incidence",
    "A step of the cumulative incidence curve of one end (Aalen-Johansen); long curves are thinned.",
    **_COMPETING,
    **AT_AGE,
    events_so_far=count("Events so far", "Durations that ended this way up to that age.", unit="durations"),
    without_time=count("Without time", "Jobs or units that ended this way at an unrecorded time.", unit="durations"),
    censored=CENSORED,
    incidence=share("Incidence", "Share of all durations that ended this way up to that age.", REASON),
    se=number("Standard error", "Standard error of the incidence.", REASON),
    **interval_columns(share, "the log-log interval", REASON),
    **clustered_columns(share),
)
INCIDENCE_AT = table(
    "incidence_at",
    "The share of all units at risk that has ended in one way by an age.",
    **_COMPETING,
    time_s=whole_seconds("By", "Age."),
    n=COUNTED["n"],
    without_end=count("without end", "Jobs or units that ended this way at an unrecorded time.", unit="durations"),
    incidence=share("Without them", "Share of all durations that ended this way up to that age.", REASON),
    **interval_columns(share, "the clustered interval", REASON),
    **clustered_columns(share),
    incidence_low=share("At least", "Lowest possible incidence, counting failures without a recorded end.", REASON),
    incidence_high=share("at most", "Highest possible incidence, counting failures without a recorded end.", REASON),
)
LOGRANK = table(
    "logrank",
    "A log-rank test of all strata together, or of two of them.",
    event=STRATUM["event"],
    stratum_by=STRATUM["stratum_by"],
    kind=words("Kind", "overall or pairwise."),
    stratum_a=name("One", "First stratum of the pair.", _ALL_STRATA, by="stratum_by", sorted=True),
    stratum_b=name("Other", "Second stratum of the pair.", _ALL_STRATA, by="stratum_by", sorted=True),
    strata=count("compared", "Number of strata compared.", unit="strata"),
    **COUNTED,
    statistic=number("χ²", "Statistic of the test.", REASON),
    df=count("df", "Degrees of freedom of the statistic.", REASON),
    p_value=number("p", "P-value of equal hazards in all strata.", REASON),
    p_adjusted=number("p, adjusted", "P-value adjusted over the stratifications or pairs by Holm's method.", REASON),
    **_CLUSTERED,
    p_clustered=number("p, clustered", "Clustered p-value of equal hazards in all strata.", REASON),
    p_adjusted_clustered=number("p, clustered and adjusted", "Clustered p adjusted by Holm's method.", REASON),
    pairs=count("Pairs", "Pairs of strata tested.", _PAIR, "pairs"),
    different_pairs=count(
        "Different pairs", "Pairs whose adjusted clustered p-value is significant.", _PAIR, "pairs", n="pairs"
    ),
    untested_pairs=count("Untested pairs", "Pairs with too few clusters to test.", _PAIR, "pairs", n="pairs"),
)
COX = table(
    "cox",
    "A coefficient of the Cox regression on all covariates. `all`: the whole model; `job_size`: all amounts doubled.",
    event=STRATUM["event"],
    covariate=words("Covariate", "Column of durations.parquet; all: the whole model; job_size: GPUs and nodes."),
    level=name(
        "Level", "Value of the covariate; for a size: per doubling.", "the covariate has no levels", by="covariate"
    ),
    reference=name("against", "Reference level.", "the row is no level", by="covariate"),
    n=count("n", "Durations at this level; all durations if the row is no level.", unit="durations"),
    events=count("Failures", "Durations that ended with the event.", unit="durations"),
    log_hazard_ratio=number("Log hazard ratio", "Coefficient.", _NO_RATIO),
    se=number("Standard error", "Standard error of the coefficient.", _NO_RATIO),
    hazard_ratio=number("Hazard ratio", "Hazard ratio with the other covariates held fixed.", _NO_RATIO),
    **interval_columns(number, "Wald's interval", _NO_RATIO),
    **{name: replace(column, blank=_NO_RATIO) for name, column in clustered_columns(number).items()},
    p_value=number("p", "Wald's p-value of a ratio of 1.", _NO_RATIO),
    p_adjusted=number("p, adjusted", "P-value adjusted over the coefficients by Holm's method.", _NOT_TESTED),
    p_clustered=number("p, clustered", "Clustered p-value of a hazard ratio of 1.", _NO_RATIO),
    p_adjusted_clustered=number("p, clustered and adjusted", "Clustered p adjusted by Holm's method.", _NOT_TESTED),
    proportionality_statistic=number("χ²", "Test that the covariate's ratios are constant over age.", _NOT_TESTED),
    proportionality_df=count("df", "Degrees of freedom of the test of proportionality.", _NOT_TESTED),
    proportionality_p=number("p, proportional", "P-value of the test of proportionality.", _NOT_TESTED),
    converged=truth("Converged", "Whether there is an estimate."),
    reason=reason("Why cells of the row are blank, or a remark on them."),
)
COX_SUMMARY = table(
    "cox_summary",
    "Number of ratios of the Cox regression of failure that differ from 1 at the 5% level.",
    ratios=count("Ratios", "Coefficients with an estimate.", unit="ratios"),
    clear=count("Significant", "Ratios whose adjusted clustered p-value is significant.", unit="ratios", n="ratios"),
    significant_if_independent=count(
        "Significant if independent",
        "Ratios that would be significant if durations were independent.",
        unit="ratios",
        n="ratios",
    ),
    untested=count("Untested", "Ratios with too few clusters to test.", unit="ratios", n="ratios"),
    covariates=count("Covariates", "Covariates with an estimate.", unit="covariates"),
    changing=count(
        "Changing", "Covariates whose ratios change with age.", "not all were tested", "covariates", n="covariates"
    ),
    total_ratios=count("Ratios shown", "Ratios in the chart; GPUs and nodes together are one.", unit="ratios"),
    total_clear=count("Significant", "Significant ratios in the chart.", unit="ratios", n="total_ratios"),
    total_untested=count(
        "Untested", "Ratios in the chart with too few clusters to test.", unit="ratios", n="total_ratios"
    ),
)
SURVIVAL_SUMMARY_DELAYED_ENTRY = table(
    "survival_summary_delayed_entry", "Survival summary of a stratum over the observed time.", **SUMMARY_DELAYED_ENTRY
)
MTTF_DELAYED_ENTRY = table(
    "mttf_delayed_entry", "Mean time to failure of a stratum over the observed time, at one confidence level.", **MTTF
)

ANALYSIS = Analysis(
    question="Which factors are associated with failure, and how and when do units end?",
    theme="factors",
    rank=10,
    needs=["durations"],
    settings={
        "max_steps": "survival/max_steps",
        "strata": lambda trace: trace.strata,
        "causes": lambda trace: trace.causes,
        "covariates": lambda trace: ["gpu_count", "nodes", "gpu_type", "account"] if trace.has_jobs else trace.strata,
    },
    tables=(
        *(CUMULATIVE_INCIDENCE, INCIDENCE_AT, LOGRANK, COX, COX_SUMMARY),
        *(SURVIVAL_SUMMARY_DELAYED_ENTRY, MTTF_DELAYED_ENTRY),
    ),
    charts=lambda trace: {
        "cumulative_incidence": "cumulative_incidence",
        # Shares of failures by request exist for jobs only.
        "factors_of_failure": ["cox", "failure_share"] if trace.has_jobs else "cox",
    },
    main=["factors_of_failure"],
    sections=["hazards", "time_to_failure/incidence"],
    in_size_unit=True,
    memory_mb=480,
    mb_per_gb={"pai2020": 60, "philly": 200, "sacct": 1800},
)
