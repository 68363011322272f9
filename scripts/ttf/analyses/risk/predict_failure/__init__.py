"""Can failure be predicted: which job will fail, after how long, and how much GPU time is at stake?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import REASON, count, name, number, reason, share, table, truth, words

# The stages: whether a job fails; after how many hours; whether a job that has run for a while fails.
PROBABILITY, HOURS, LANDMARK = "probability", "hours", "landmark"

_MODEL = words("Model", "Model: base_rate, nested_rate (history alone) or logistic; for hours, lognormal.")
_SPLIT = words("Split", "temporal_1 to temporal_3 (trained on jobs that had ended, tested on later jobs), or random.")
_CI = clustered_columns(number)

EVALUATION = table(
    "risk_evaluation",
    "One row per model, test and measure: how well failure was predicted.",
    stage=words("Stage", "probability, hours (until failure) or landmark (probability for jobs still running)."),
    model=_MODEL,
    split=_SPLIT,
    serves=truth("Serves", "Whether the model was chosen to serve, without these test jobs."),
    slice=words(
        "Slice",
        "Test jobs: all; unseen_user, unseen_group, unseen_gpu_type or beyond_range of the training; without_most: "
        "without the one cluster that has more than half of the failures.",
    ),
    metric=words("Measure", "pr_auc, roc_auc, brier, log_loss, calibration_slope, median_factor_off ..."),
    n=count("n", "Test jobs.", unit="jobs"),
    failures=count("Failures", "Test jobs that failed.", unit="failures"),
    unit=words("Unit", "Unit of the estimate.", "it has none"),
    estimate=number("Estimate", "Value of the measure, in `unit`.", REASON),
    **_CI,
)
CALIBRATION = table(
    "risk_calibration",
    "One row per tenth of the test jobs by predicted probability: how many of them failed.",
    model=_MODEL,
    split=_SPLIT,
    tenth=count("Tenth", "1 is the lowest; jobs with the same prediction share a tenth."),
    n=count("n", "Test jobs."),
    failures=count("Failures", "Test jobs that failed."),
    predicted=share("Predicted", "Mean predicted probability."),
    observed=share("Failed", "Share of the test jobs that failed."),
    **clustered_columns(share),
)
COEFFICIENTS = table(
    "risk_coefficients",
    "One row per coefficient of the logistic regression of the last tested origin, if it serves.",
    feature=words("Feature", "Name of the feature in the configuration."),
    term=name("Term", "A number in standard deviations, a value against the most common, or log-odds.", by="feature"),
    coefficient=number("Coefficient", "Change of the log-odds of failure per unit of the term.", REASON),
    odds_ratio=number("Odds ratio", "exp(coefficient).", REASON),
    n=count("n", "Training jobs."),
    **_CI,
)
IMPORTANCE = table(
    "risk_importance",
    "One row per feature: the PR-AUC that the serving model loses without it, on the last tested origin.",
    feature=words("Feature", "Name of the feature in the configuration; history means all history features."),
    how=words("How", "permuted (values shuffled among the jobs) or left_out (trained without the feature)."),
    n=count("n", "Test jobs."),
    failures=count("Failures", "Test jobs that failed."),
    drop=number("Drop of PR-AUC", "PR-AUC with the feature minus PR-AUC without it.", REASON),
    **_CI,
    share_of_gain=number("of the gain", "Drop as a share of the PR-AUC above the base rate.", REASON, unit="share"),
)
DEPENDENCE = table(
    "risk_dependence",
    "One row per value of a feature: the mean predicted probability if all test jobs had it (partial dependence).",
    feature=words("Feature", "One of the four most important."),
    position=count("Position", "Index of the value among those shown, from 0."),
    value=name("Value", "In the unit of the job record; for a history, the share of failures.", by="feature"),
    jobs=count("n", "Test jobs near this value."),
    probability=share("Probability", "Mean predicted probability over the test jobs."),
)
DECISIONS = table(
    "risk_decisions",
    "One row per model and number of jobs tried: GPU time saved by trying the jobs at highest risk on one GPU first.",
    model=words("Model", "A model; oracle (knows who fails within the trial); everyone (all are tried)."),
    serves=truth("Serves", "Whether the model serves."),
    n=count("n", "Test jobs of more than one GPU.", unit="jobs"),
    flagged=count("Tried", "Jobs on trial, taken by their expected saving.", unit="jobs"),
    flagged_share=share("Tried", "Jobs on trial divided by n."),
    chosen=truth("Chosen", "Whether exactly the jobs with an expected saving above 0 are tried."),
    caught=count("Caught", "Jobs on trial that failed within the trial.", unit="jobs", n="flagged"),
    net_gpu_hours=number("Net", "GPU-hours saved minus cost.", unit="GPU-hours"),
    **clustered_columns(number),
    reason=reason("Why there is no interval of the net."),
)
EXTRAPOLATION = table(
    "risk_extrapolation",
    "How well failure of a kind of jobs is predicted if training excludes the kind, and if not.",
    held_out=words("Left out", "largest_jobs or newest_gpu_type."),
    value=words("Which", "Smallest number of GPUs held out, or the GPU type held out.", blank=REASON),
    trained=words("Trained", "without these jobs, with them, or difference (with minus without)."),
    metric=words("Measure", "pr_auc, roc_auc, log_loss or calibration_slope."),
    n=count("n", "Test jobs of the held-out kind.", unit="jobs"),
    failures=count("Failures", "Test jobs that failed.", unit="failures"),
    estimate=number("Estimate", "Value of the measure, in its own unit.", REASON),
    **_CI,
)
FEATURES = table(
    "risk_features",
    "One row per feature of a model: known at submission, or from jobs that had ended by then.",
    feature=words("Feature", "Name of the feature in the configuration."),
    kind=words("Kind", "numeric, category, hashed, history or clock."),
    columns=words("Columns", "Columns of the job record."),
    jobs_with_value=count("Jobs with a value", "Jobs for which the feature is not blank."),
    used=truth("Used", "Whether the last model uses the feature."),
    reason=reason("Why the feature is not used."),
)

TAKEN = table(
    "risk_jobs",
    "The jobs of the trace by their use in this analysis.",
    jobs_are=words("Which", "ended, running, waiting, earlier, no submission or ended before it was submitted."),
    jobs=count("n", "Jobs.", unit="jobs"),
)

_UNTESTED = "no origin could be tested"
_NO_MAJORITY = "fewer than half of the failures are of one cluster, or no origin could be tested"


def _origin_count(heading: str, description: str, n: str = ""):
    """Return a column that counts origins; n: column with the number of which they are a part."""
    return count(heading, description, _UNTESTED, "origins", n=n)


VERDICT = table(
    "risk_verdict",
    "Whether failure is predicted and acting on it pays, over all origins.",
    verdict=words(
        "Verdict", "Strength of the prediction; it must hold at two of three origins.", _UNTESTED, n="origins"
    ),
    origin=words("Origin", "The last origin that could be tested.", _UNTESTED),
    origins=_origin_count("Origins", "All origins."),
    origins_tested=_origin_count("Tested", "Origins that could be tested.", "origins"),
    origins_predicted_of=_origin_count("n", "Origins at which the gain on the base rate has an interval."),
    origins_predicted=_origin_count("Predicted", "Origins with a gain significantly above 0.", "origins_predicted_of"),
    origins_paying_of=_origin_count("n", "Origins with a known saving."),
    origins_paying=_origin_count("Paying", "Origins with a saving significantly above 0.", "origins_paying_of"),
    failures=count("Failures", "Test jobs of the origin that failed.", _NO_MAJORITY, "failures"),
    failures_of_largest_cluster=count("of one", "Most failures in a cluster.", _NO_MAJORITY, "failures", n="failures"),
    features=count("Features", "Rows of risk_features.csv.", unit="features"),
    features_used=count("used", "Features that the last model uses.", unit="features", n="features"),
    features_of_user=count("of the user", "Features taken from the user's past.", unit="features", n="features_used"),
    features_that_matter=count(
        "that matter", "Features whose drop of PR-AUC is significantly above 0.", unit="features"
    ),
)

ANALYSIS = Analysis(
    question="Can failure be predicted, when, and what is that worth?",
    theme="risk",
    rank=10,
    needs=["jobs"],
    applies=lambda trace: trace.risk,
    settings={
        "risk": lambda trace: trace.risk,
        "latest_jobs": "risk/latest_jobs",
        "landmark_s": "risk/landmark_s",
        "trial_minutes": "risk/trial_minutes",
        "seed": "risk/seed",
    },
    tables=[
        VERDICT,
        EVALUATION,
        CALIBRATION,
        COEFFICIENTS,
        IMPORTANCE,
        DEPENDENCE,
        DECISIONS,
        EXTRAPOLATION,
        FEATURES,
        TAKEN,
    ],
    charts={
        "risk_calibration": ("risk_calibration", "risk_evaluation"),
        "risk_importance": "risk_importance",
        "risk_dependence": ("risk_dependence", "risk_features"),
        "risk_decisions": ("risk_decisions", "risk_evaluation"),
    },
    sections=["risk"],
    in_size_unit=True,
    memory_mb=400,
    mb_per_gb={"pai2020": 100, "philly": 1500, "sacct": 1900},
)
