"""Which features are associated with run time and failure?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import REASON, count, number, seconds, share, table, truth, whole_seconds, words

_SET = words("Outcome", "success, failure or not_success (all but success).")
_FEATURE = words("Feature", "A request of the job, its size, its GPU type or its measured use.")
_VALUE = words("Value", "Value of the feature, in % of a GPU or core, GiB or instances.")
_CUTOFF = whole_seconds("Cut-off", "Only run times below the cut-off count.", blank="there is no cut-off")
FAILURE_SHARE = table(
    "failure_share",
    "Failure share of the jobs with a value of a feature.",
    feature=_FEATURE,
    value=_VALUE,
    jobs=count("Jobs", "Jobs with this value.", unit="jobs"),
    ended=count("Ended", "Jobs that succeeded or failed.", unit="jobs"),
    failures=count("Failures", "Jobs that failed.", unit="jobs"),
    failure_share=share("Failure share", "Failures divided by ended jobs.", blank=REASON),
    ci_low=share("from", "Lower bound of Wilson's 95% CI.", blank=REASON),
    ci_high=share("to", "Upper bound.", blank=REASON),
    **clustered_columns(share),
)
RUNTIME_BY_GROUP = table(
    "runtime_by_group",
    "Run times of the jobs with a value of a feature, by outcome and cut-off.",
    outcome_set=_SET,
    feature=_FEATURE,
    cutoff_s=_CUTOFF,
    value=_VALUE,
    jobs=count("n", "Jobs with this value and a known run time.", unit="jobs"),
    runtime_mean_s=seconds("Mean run time", "Mean of n jobs."),
    runtime_median_s=seconds("Median", "Median of n jobs."),
)
CORRELATIONS = table(
    "correlations",
    "Correlation of a numeric feature with run time, by outcome and cut-off.",
    outcome_set=_SET,
    feature=_FEATURE,
    cutoff_s=_CUTOFF,
    unit=words("Unit", "group_mean (a point per distinct value, at the mean run time) or job."),
    method=words("Method", "pearson, spearman or kendall (tau-b)."),
    n=count("n", "Number of points.", unit="points"),
    estimate=number("r", "Correlation coefficient, from -1 to 1.", blank=REASON),
    ci_low=number("from", "Lower bound of the 95% CI.", blank=REASON),
    ci_high=number("to", "Upper bound.", blank=REASON),
    **clustered_columns(number),
    p_value=number("p", "Two-sided p-value of no correlation.", blank=REASON),
    p_adjusted=number("adjusted p", "P-value adjusted over the features by Holm's method.", blank=REASON),
    p_clustered=number("p, clustered", "Two-sided clustered p-value.", blank=REASON),
    p_adjusted_clustered=number("adjusted p, clustered", "Clustered p adjusted by Holm's method.", blank=REASON),
    reject=truth("Significant", "Whether the adjusted p is below the level of the study.", blank=REASON),
    reject_clustered=truth(
        "Significant, clustered", "Whether the adjusted clustered p is below the study's level.", blank=REASON
    ),
)

ANALYSIS = Analysis(
    question="Which features are associated with run time and failure?",
    theme="factors",
    rank=20,
    needs=["jobs"],
    settings={"cutoffs_s": "correlation/cutoffs_s", "significance": "correlation/significance"},
    tables=[FAILURE_SHARE, RUNTIME_BY_GROUP, CORRELATIONS],
    charts={
        "factors_of_run_time": ["runtime_by_group", "correlations"],
        "runtime_by_gpu_type": "runtime_by_group",
        "runtime_by_measured_use": ["runtime_by_group", "correlations"],
        "failure_share": ["failure_share", "outcomes"],
    },
    main=["factors_of_run_time"],
    sections=["correlations"],
    memory_mb=250,
    mb_per_gb={"pai2020": 60, "philly": 60, "sacct": 400},
)
