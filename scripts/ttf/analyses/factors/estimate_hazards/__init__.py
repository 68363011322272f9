"""Which factors are associated with failure, and which end comes when?"""

from dataclasses import replace

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import AT_AGE, CENSORED, COUNTED, MTTF, STRATUM, SUMMARY_DELAYED_ENTRY, clustered, ends
from ttf.engine.contract import REASON, count, name, number, reason, share, table, truth, whole_seconds, words

# In the table `cox`: the level of an amount, and the row of all amounts together, as a job twice as large has twice the
# GPUs on twice the nodes.
DOUBLING, JOB_SIZE = "per doubling", "job_size"
_OF_ALL, _OF_PAIR = "the row is of all strata", "the row is of a pair"
_NO_RATIO = "the row is of the whole model, or its reason says why"
_NOT_TESTED = "the row is of no coefficient, or could not be tested"
_CLUSTERED = {name: column for name, column in clustered(number).items() if name in ("cluster_by", "clusters")}
_COMPETING = STRATUM | {"event": words("Ended by", "One of the ends that compete.")}

CUMULATIVE_HAZARD = table(
    "cumulative_hazard",
    "A step of a curve of the hazard up to an age (Nelson-Aalen); of long curves some steps.",
    **STRATUM,
    **AT_AGE,
    censored=CENSORED,
    cumulative_hazard=number("Cumulative hazard", "Events that a unit at risk can expect up to that age.", REASON),
    variance=number("Variance", "Aalen's, of the cumulative hazard.", REASON),
    **ends(number, "its log interval", REASON),
    **clustered(number),
)
CUMULATIVE_INCIDENCE = table(
    "cumulative_incidence",
    "A step of a curve of the units that came to one end by an age (Aalen-Johansen); of long curves some steps.",
    **_COMPETING,
    **AT_AGE,
    events_so_far=count("Events so far", "Units at risk that the end has come to up to that age.", unit="lives"),
    without_time=count("Without time", "Units of unknown duration that ended so, in no other column.", unit="lives"),
    other_events=count("Other events", "Units at risk that another end came to at that age.", unit="lives"),
    censored=CENSORED,
    incidence=share("Incidence", "Of all units at risk, those that have ended so.", REASON),
    se=number("Standard error", "Of the incidence.", REASON),
    **ends(share, "its log-log interval", REASON),
    **clustered(share),
)
INCIDENCE_AT = table(
    "incidence_at",
    "An end and an age, over all units at risk: which share has ended so by then.",
    **_COMPETING,
    time_s=whole_seconds("By", "Age."),
    n=COUNTED["n"],
    without_end=count("without end", "Units that ended so at a time that was not written.", unit="lives"),
    incidence=share("Without them", "Of the n units at risk, those that have ended so.", REASON),
    **ends(share, "its interval", REASON),
    **clustered(share),
    incidence_low=share("At least", "The least that the incidence can be with the units without an end.", REASON),
    incidence_high=share("at most", "The most that it can be with them.", REASON),
)
LOGRANK = table(
    "logrank",
    "A log-rank test: of all strata together, or of two of them.",
    event=STRATUM["event"],
    stratum_by=STRATUM["stratum_by"],
    kind=words("Kind", "overall or pairwise."),
    stratum_a=name("One", "First stratum of the pair.", _OF_ALL, by="stratum_by", sorted=True),
    stratum_b=name("Other", "Second stratum of the pair.", _OF_ALL, by="stratum_by", sorted=True),
    strata=count("compared", "Strata that are compared.", unit="strata"),
    **COUNTED,
    statistic=number("χ²", "Of the test.", REASON),
    df=count("df", "Degrees of freedom of the statistic.", REASON),
    p_value=number("p", "That strata alike differ as much.", REASON),
    p_adjusted=number("p, adjusted", "By Holm's method: over all stratifications, or the pairs of one.", REASON),
    **_CLUSTERED,
    p_clustered=number("p, clustered", "From the score by cluster: holds when clusters differ.", REASON),
    p_adjusted_clustered=number("p, clustered and adjusted", "By Holm's method, over the same tests.", REASON),
    pairs=count("Pairs", "Of the strata, tested.", _OF_PAIR, "pairs"),
    pairs_apart=count("Pairs apart", "That differ significantly where clusters differ.", _OF_PAIR, "pairs", n="pairs"),
    pairs_untold=count("Pairs untold", "With too few clusters to tell.", _OF_PAIR, "pairs", n="pairs"),
)
COX = table(
    "cox",
    "A coefficient of the Cox regression on all covariates; `all`: the whole model; `job_size`: all amounts doubled.",
    event=STRATUM["event"],
    covariate=words("Covariate", "Column of lives.parquet, all or job_size."),
    level=name(
        "Level",
        "Value, or per doubling.",
        "the row is of the whole model or of a covariate without levels",
        by="covariate",
    ),
    reference=name("against", "Value that the level is compared with.", "the row is of no level", by="covariate"),
    n=count("n", "Units at risk at the level; of an amount or the whole model all.", unit="lives"),
    events=count("Failures", "Those of n that the event ended.", unit="lives"),
    log_hazard_ratio=number("Log hazard ratio", "Coefficient.", _NO_RATIO),
    se=number("Standard error", "Of the coefficient.", _NO_RATIO),
    hazard_ratio=number("Hazard ratio", "With the other covariates held fixed.", _NO_RATIO),
    **ends(number, "Wald's interval", _NO_RATIO),
    **{name: replace(column, blank=_NO_RATIO) for name, column in clustered(number).items()},
    p_value=number("p", "Wald's, of a ratio of 1.", _NO_RATIO),
    p_adjusted=number("p, adjusted", "By Holm's method over the coefficients.", _NOT_TESTED),
    p_clustered=number("p, clustered", "Of a ratio of 1; holds when clusters differ.", _NO_RATIO),
    p_adjusted_clustered=number("p, clustered and adjusted", "By Holm's method over the coefficients.", _NOT_TESTED),
    proportionality_statistic=number("χ²", "Test that the covariate's ratios do not change with age.", _NOT_TESTED),
    proportionality_df=count("df", "Degrees of freedom of that test.", _NOT_TESTED),
    proportionality_p=number("p, proportional", "Of that test.", _NOT_TESTED),
    converged=truth("Converged", "Whether there is an estimate."),
    reason=reason("Why cells of the row are blank, or what is to be known of them."),
)
COX_SUMMARY = table(
    "cox_summary",
    "The Cox regression of failure as a whole: how many of its ratios differ from 1 at the 5% level.",
    ratios=count("Ratios", "Coefficients with an estimate.", unit="ratios"),
    clear=count("Significant", "Where clusters differ.", unit="ratios", n="ratios"),
    clear_if_independent=count("Significant if independent", "If units are independent.", unit="ratios", n="ratios"),
    untold=count("Untested", "With too few clusters.", unit="ratios", n="ratios"),
    covariates=count("Covariates", "With an estimate.", unit="covariates"),
    changing=count("Changing", "Whose ratios change with age.", "not all were tested", "covariates", n="covariates"),
    total_ratios=count("Ratios shown", "Of amounts that grow together one.", unit="ratios"),
    total_clear=count("Significant", "Of those shown.", unit="ratios", n="total_ratios"),
    total_untold=count("Untested", "Of those shown.", unit="ratios", n="total_ratios"),
)
SURVIVAL_SUMMARY_DELAYED_ENTRY = table(
    "survival_summary_delayed_entry",
    "A stratum, and how long its units last, each at risk only from the age at which it came under watch.",
    **SUMMARY_DELAYED_ENTRY,
)
MTTF_DELAYED_ENTRY = table(
    "mttf_delayed_entry", "A stratum and a confidence: its mean time to failure over the time under watch.", **MTTF
)

ANALYSIS = Analysis(
    question="Which factors are associated with failure, and which end comes when?",
    theme="factors",
    rank=10,
    needs=["lives"],
    settings={
        "max_steps": "survival/max_steps",
        "strata": lambda trace: trace.strata,
        "causes": lambda trace: trace.causes,
        "covariates": lambda trace: ["gpu_count", "nodes", "gpu_type", "account"] if trace.has_jobs else trace.strata,
    },
    tables=(
        *(CUMULATIVE_HAZARD, CUMULATIVE_INCIDENCE, INCIDENCE_AT, LOGRANK, COX, COX_SUMMARY),
        *(SURVIVAL_SUMMARY_DELAYED_ENTRY, MTTF_DELAYED_ENTRY),
    ),
    charts=lambda trace: {
        "cumulative_incidence": "cumulative_incidence",
        # The share of failures by request is that of jobs.
        "factors_of_failure": ["cox", "failure_share"] if trace.has_jobs else "cox",
    },
    main=["factors_of_failure"],
    sections=["hazards", "time_to_failure/incidence"],
    in_size_unit=True,
    memory_mb=480,
    mb_per_gb={"pai2020": 60, "philly": 200, "sacct": 1800},
)
