"""A model of the risk of failure for each window: trained on from the last, tested on the next, and used if good."""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import WINDOWS, clustered
from ttf.engine.contract import REASON, Column, count, number, parquet, reason, table, text, truth, words

_NATS = "Mean of minus the log of the probability of what came."

LINEAGE = table(
    "model_lineage",
    "A window of submissions, the model trained after it, and what the test on the next window decided.",
    window=text("Window", "By submission: day, week, month or part; all where there is one.", ours=WINDOWS),
    jobs=count("Jobs", "Submitted in the window."),
    failures=count("Failures", "Recorded ones of them."),
    parent=text(
        "Parent", "The model that training went on from.", "there is none: trained from nothing, or not", WINDOWS
    ),
    trained=truth("Trained", "Whether a model was."),
    kind=words("Kind", "Of the model: nested_rate (history alone) or logistic (regression).", REASON),
    decision=words(
        "Decision", "promoted, not promoted: why, not trained: why, pending (the last window) or only model."
    ),
    n=count("Learnt from", "Jobs that had ended by its end, and that no parent had learnt from.", REASON, unit="jobs"),
    tested_on=text("Tested on", "The next window.", REASON, WINDOWS),
    n_test=count("n", "Jobs of that window that ended.", REASON),
    failures_test=count("Failures", "Of them.", REASON),
    log_loss_new=number("New", _NATS, REASON, n="n_test"),
    log_loss_cold=number("From nothing", "Of a model of all jobs that had ended, trained from nothing.", REASON),
    log_loss_current=number("In use", "Of the model in use until then.", REASON),
    log_loss_base_rate=number(
        "Base rate", "Of the share of failures among all jobs that the new model goes back to.", REASON, n="n_test"
    ),
    difference=number("New less in use", "Of the log-losses; below 0 the new model is better.", REASON),
    difference_lower=number("Lower bound", "One-sided, 95%, clustered.", REASON),
    difference_upper=number("Upper bound", "One-sided, 95%, clustered.", REASON),
    tolerance=number("Tolerance", "The upper bound of the difference may be so much.", REASON),
    gain=number("Base rate less new", "Of the log-losses; above 0 the new model is better.", REASON),
    gain_lower=number("Lower bound", "One-sided, 95%, clustered.", REASON),
    warm_minus_cold=number("New less from nothing", "Of the log-losses.", REASON, n="n_test"),
    **clustered(number),
    drift_max=number("Drift", "The largest effect size of a feature, against the jobs of the windows before.", REASON),
    drift_effect=words("Effect size", "cliff_delta or cramer_v.", REASON),
    drift_feature=words("Of", "The feature.", REASON),
    model=text("Model", "The name of its file under models/.", REASON, WINDOWS),
    digest=words("Digest", "The first 16 letters of the SHA-256 of that file.", REASON),
    current=text("In use", "The model in use once this is decided.", "none has been promoted yet", WINDOWS),
    reason=reason("Why the decision, and why cells are blank."),
)


def _models(heading: str, about: str, n: str = "tested") -> Column:
    return count(heading, about, unit="models", n=n)


MODELS_SUMMARY = table(
    "models_summary",
    "All windows of model_lineage.csv: how many trained a model, and what was decided of these.",
    windows=count("Windows", "Rows of model_lineage.csv.", unit="windows"),
    not_trained=count("not trained", "Those that trained no model.", unit="windows", n="windows"),
    trained=_models("Trained", "One for each of the others.", "windows"),
    only=_models("Only model", "Of a trace with one window.", "trained"),
    tested=_models("Tested", "Those with a log-loss on the next window.", "trained"),
    promoted=_models("Promoted", "Those that the test let be used."),
    worse=_models("Worse", "Not promoted: worse than the one in use, or than the base rate."),
    untold=_models("not told", "Not promoted: too few jobs to tell."),
)

MODEL_CACHE = parquet(
    "model_cache",
    "A window with a model: what the next run uses again where the digests are the same.",
    "model_cache.parquet",
    window=text("Window", "As in model_lineage.csv.", ours=WINDOWS),
    lesson=words("Lesson", "SHA-256 of all that the model was trained on."),
    model=words("Model", "In JSON."),
    test=words("Test", "SHA-256 of all that its test rests on.", blank="it was not tested"),
    tested=words("Tested", "What the test told, in JSON.", blank="it was not tested"),
)

ANALYSIS = Analysis(
    question="Is a model that is trained on from window to window still good enough to be used?",
    theme="risk",
    rank=20,
    needs=["jobs"],
    applies=lambda trace: trace.risk,
    settings={
        "risk": lambda trace: trace.risk,
        "windows": lambda trace: trace.windows,
        "parts": lambda trace: list(trace.parts),
        "drift_limit": "risk/drift_limit",
    },
    tables=[LINEAGE, MODELS_SUMMARY, MODEL_CACHE],
    updated=["model_cache"],
    folders=["models"],
    # With one window there is nothing to compare.
    charts=lambda trace: {"model_lineage": "model_lineage"} if trace.windows.get("by") or len(trace.parts) > 1 else {},
    sections=["models"],
    memory_mb=600,
    mb_per_gb={"pai2020": 250},
)
