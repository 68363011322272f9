"""Can failure be told in advance: which job will fail, after how long, and what GPU time is at stake?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered
from ttf.engine.contract import REASON, count, name, number, reason, share, table, truth, words

# The stages: whether a job fails; after how many hours; whether one fails that has run for a while.
PROBABILITY, HOURS, LANDMARK = "probability", "hours", "landmark"

_MODEL = words(
    "Model",
    "base_rate, nested_rate (history alone: shrunken share of failures of user and group), logistic, "
    "gradient_boosting; "
    "lognormal of hours.",
)
_SPLIT = words("Split", "temporal_1 to temporal_3 (trained on what had ended before, tested on what came), or random.")
_CI = clustered(number)

EVALUATION = table(
    "risk_evaluation",
    "How well failure was told in advance by one measure.",
    stage=words("Stage", "probability, hours (until failure) or landmark (probability of those still running)."),
    model=_MODEL,
    split=_SPLIT,
    serves=truth("Serves", "Whether it is the model that serves, chosen without these test jobs."),
    slice=words(
        "Slice",
        "Test jobs: all, or unseen_user, unseen_group, unseen_gpu_type, beyond_range of the training; without_most: "
        "without the cluster that more than half of the failures are of.",
    ),
    metric=words("Measure", "pr_auc, roc_auc, brier, log_loss, calibration_slope, median_factor_off ..."),
    n=count("n", "Test jobs.", unit="jobs"),
    failures=count("Failures", "Of them.", unit="failures"),
    unit=words("Unit", "Of the estimate.", "it has none"),
    estimate=number("Estimate", "In its unit.", REASON),
    **_CI,
)
CALIBRATION = table(
    "risk_calibration",
    "A tenth of the test jobs by predicted probability, and how many of them failed.",
    model=_MODEL,
    split=_SPLIT,
    tenth=count("Tenth", "1 the lowest; jobs of one prediction are in one."),
    n=count("n", "Test jobs."),
    failures=count("Failures", "Of them."),
    predicted=share("Predicted", "Mean probability."),
    observed=share("Failed", "Share that failed."),
    **clustered(share),
)
COEFFICIENTS = table(
    "risk_coefficients",
    "A coefficient of the logistic regression of the last tested origin, if that serves.",
    feature=words("Feature", "As the configuration names it."),
    term=name(
        "Term", "What of it: a number in standard deviations, a value against the commonest, or log-odds.", by="feature"
    ),
    coefficient=number("Coefficient", "Log-odds of failure for one more.", REASON),
    odds_ratio=number("Odds ratio", "exp(coefficient).", REASON),
    n=count("n", "Jobs it was trained on."),
    **_CI,
)
IMPORTANCE = table(
    "risk_importance",
    "How much PR-AUC the model that serves loses without a feature, on the test jobs of the last tested origin.",
    feature=words("Feature", "As the configuration names it; history: all of that kind together."),
    how=words("How", "permuted (its values dealt out anew among the jobs) or left_out (trained without it)."),
    n=count("n", "Test jobs."),
    failures=count("Failures", "Of them."),
    drop=number("Drop of PR-AUC", "With it less without it.", REASON),
    **_CI,
    share_of_gain=number("of the gain", "Of the PR-AUC above the base rate.", REASON, unit="share"),
)
DEPENDENCE = table(
    "risk_dependence",
    "The mean predicted probability were a feature the same in all test jobs (partial dependence).",
    feature=words("Feature", "One of the four that matter most."),
    place=count("Place", "Of the value among those shown, from 0 on."),
    value=name(
        "Value", "Of the feature, in the unit of the job record; of a history the share of failures.", by="feature"
    ),
    jobs=count("n", "Test jobs with about this value."),
    probability=share("Probability", "Mean over the test jobs."),
)
DECISIONS = table(
    "risk_decisions",
    "GPU time saved had the jobs at highest risk been tried on one GPU first, in the tests of the last tested origin.",
    model=words("Model", "A model's; oracle (who will fail within the trial is known); everyone (all are tried)."),
    serves=truth("Serves", "Whether it is the model that serves."),
    n=count("n", "Test jobs of more than one GPU.", unit="jobs"),
    flagged=count("Tried", "Jobs tried, the highest expected saving first.", unit="jobs"),
    flagged_share=share("Tried", "Of the jobs of more than one GPU."),
    chosen=truth("Chosen", "Whether these are the jobs whose expected saving is above 0."),
    caught=count("Caught", "Those of them that failed within the trial.", unit="jobs", n="flagged"),
    saved_gpu_hours=number("Saved", "GPU-hours that the failed ones held beyond one GPU.", unit="GPU-hours"),
    cost_gpu_hours=number("Cost", "GPU-hours of the trials of the others.", unit="GPU-hours"),
    net_gpu_hours=number("Net", "Saved less cost.", unit="GPU-hours"),
    share_of_oracle=number("of the oracle's", "Net, of what the oracle would save.", blank="it would save nothing"),
    **clustered(number),
    reason=reason("Why there is no interval of the net."),
)
EXTRAPOLATION = table(
    "risk_extrapolation",
    "How well failure was told of jobs of a kind that the training had left out, and had it not.",
    held_out=words("Left out", "largest_jobs or newest_gpu_type."),
    value=words("Which", "More than so many GPUs, or the type.", blank=REASON),
    trained=words("Trained", "without these jobs, with them, or difference (with less without)."),
    metric=words("Measure", "pr_auc, roc_auc, log_loss or calibration_slope."),
    n=count("n", "Test jobs of that kind.", unit="jobs"),
    failures=count("Failures", "Of them.", unit="failures"),
    estimate=number("Estimate", "In the unit of the measure.", REASON),
    **_CI,
)
FEATURES = table(
    "risk_features",
    "What a model is given: known at submission, or of jobs that had ended by then.",
    feature=words("Feature", "As the configuration names it."),
    kind=words("Kind", "numeric, category, hashed, history or clock."),
    columns=words("Columns", "Of the job record."),
    warm=truth("Warm", "Whether its coefficients are warm-started."),
    known=count("Known", "Jobs of which it is known."),
    used=truth("Used", "Whether the last model has it."),
    reason=reason("Why it is not used."),
)

TAKEN = table(
    "risk_jobs",
    "The jobs of the trace by what part they take.",
    jobs_are=words("Which", "ended, running, waiting, earlier, no submission or ended before it was submitted."),
    jobs=count("n", "Jobs.", unit="jobs"),
    part=words("Part", "learnt from and tested on; right-censored in hours; of the history alone; or left out."),
)

_UNTESTED, _NO_BOOSTING = "no origin could be tested", "gradient boosting was not tried, or not tested"
_FEW = "fewer than half of the failures are of one cluster, or no origin could be tested"


def _origins(heading: str, about: str, n: str = ""):
    return count(heading, about, _UNTESTED, "origins", n=n)


VERDICT = table(
    "risk_verdict",
    "Whether failure is told in advance, and acting on it pays, by all origins together.",
    verdict=words("Verdict", "Each step needs two of three origins.", _UNTESTED, n="origins"),
    origin=words("Origin", "The last that could be tested.", _UNTESTED),
    origins=_origins("Origins", "All of them."),
    origins_tested=_origins("Tested", "Those that could be tested.", "origins"),
    origins_predicted_of=_origins("n", "Those with an interval of what is gained on the base rate."),
    origins_predicted=_origins("Predicted", "Those where that is above 0.", "origins_predicted_of"),
    origins_paying_of=_origins("n", "Those where the saving is known."),
    origins_paying=_origins("Paying", "Those where it is above 0.", "origins_paying_of"),
    failures=count("Failures", "Test jobs of the origin that failed.", _FEW, "failures"),
    failures_of_most=count("of one", "Those of one cluster.", _FEW, "failures", n="failures"),
    boosting_tested=count("Boosting", "Origins with gradient boosting.", _NO_BOOSTING, "origins"),
    boosting_won=count("won", "Those where it is better.", _NO_BOOSTING, "origins", n="boosting_tested"),
    features=count("Features", "Rows of risk_features.csv.", unit="features"),
    features_used=count("used", "Those that the last model has.", unit="features", n="features"),
    features_of_user=count("of the user", "Those made of the user.", unit="features", n="features_used"),
    features_that_matter=count("that matter", "Those whose loss is above 0.", unit="features"),
)

ANALYSIS = Analysis(
    question="Can failure be told in advance, when, and what is it worth?",
    theme="risk",
    rank=10,
    needs=["jobs"],
    applies=lambda trace: trace.risk,
    settings={
        "risk": lambda trace: trace.risk,
        "challenger": "risk/challenger",
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
    mb_per_gb={"pai2020": 300, "philly": 1500, "sacct": 1900},
)
