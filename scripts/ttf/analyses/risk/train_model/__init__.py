"""A failure-risk model for each window: warm-started from the last, tested on the next window, promoted if good."""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import WINDOWS, clustered_columns
from ttf.engine.contract import REASON, Column, count, number, parquet, reason, table, text, truth, words

_NATS = "Log-loss of the new model: mean negative log-likelihood per job."

LINEAGE = table(
    "model_lineage",
    "One row per window of submissions: the model trained after it, and the decision of its test on the next window.",
    window=text("Window", "Window of submissions: day, week, month, part or all.", public_pattern=WINDOWS),
    jobs=count("Jobs", "Jobs submitted in the window."),
    parent=text(
        "Parent", "Model from which training started.", "trained from nothing, or not trained", public_pattern=WINDOWS
    ),
    trained=truth("Trained", "Whether a model was trained."),
    kind=words("Kind", "Kind of model: nested_rate (history alone) or logistic (regression).", REASON),
    decision=words("Decision", "promoted, not promoted: why, not trained: why, pending (last window) or only model."),
    n=count(
        "Learnt from",
        "New training jobs: they ended by the window's end and were not used before.",
        REASON,
        unit="jobs",
    ),
    tested_on=text("Tested on", "The next window.", REASON, public_pattern=WINDOWS),
    n_test=count("n", "Jobs of the next window that ended.", REASON),
    log_loss_new=number("New", _NATS, REASON, n="n_test"),
    log_loss_cold=number("From nothing", "Log-loss of a model trained from nothing on all ended jobs.", REASON),
    log_loss_current=number("In use", "Log-loss of the model in use until then.", REASON),
    log_loss_base_rate=number(
        "Base rate", "Test log-loss of predicting the base rate of all training jobs so far.", REASON, n="n_test"
    ),
    difference=number("New less in use", "Difference of the log-losses; below 0, the new model is better.", REASON),
    difference_upper=number("Upper bound", "One-sided 95% bound, clustered.", REASON),
    tolerance=number("Tolerance", "Largest accepted upper bound of the difference.", REASON),
    gain_lower=number("Lower bound", "One-sided 95% bound, clustered.", REASON),
    warm_minus_cold=number("New less from nothing", "Difference of the log-losses.", REASON, n="n_test"),
    **clustered_columns(number),
    drift_max=number("Drift", "Largest effect size of a feature, against the jobs of earlier windows.", REASON),
    drift_feature=words("Of", "The feature with that effect size.", REASON),
    model=text("Model", "Name of the model's file under models/.", REASON, public_pattern=WINDOWS),
    current=text(
        "In use", "The model in use after this decision.", "none has been promoted yet", public_pattern=WINDOWS
    ),
    reason=reason("Reason of the decision, and of blank cells."),
)


def _model_count(heading: str, description: str, n: str = "tested") -> Column:
    """Return a column that counts models; n: column with the number of which they are a part."""
    return count(heading, description, unit="models", n=n)


MODELS_SUMMARY = table(
    "models_summary",
    "One row: how many windows of model_lineage.csv trained a model, and the decisions.",
    windows=count("Windows", "Rows of model_lineage.csv.", unit="windows"),
    not_trained=count("not trained", "Windows after which no model was trained.", unit="windows", n="windows"),
    trained=_model_count("Trained", "Trained models, one per window.", "windows"),
    only=_model_count("Only model", "Models without a test, because the trace has one window.", "trained"),
    tested=_model_count("Tested", "Models tested on the next window.", "trained"),
    promoted=_model_count("Promoted", "Models that passed the test."),
    worse=_model_count("Worse", "Models not promoted, because they were worse than the model in use or the base rate."),
    untested=_model_count("not told", "Models not promoted, because there were too few jobs to tell."),
)

MODEL_CACHE = parquet(
    "model_cache",
    "One row per window with a model: reused by the next run if the digests match.",
    "model_cache.parquet",
    window=text("Window", "As in model_lineage.csv.", public_pattern=WINDOWS),
    lesson=words("Lesson", "SHA-256 of the training inputs."),
    model=words("Model", "The model in JSON."),
    test=words("Test", "SHA-256 of the inputs of its test.", blank="it was not tested"),
    tested=words("Tested", "Result of the test, in JSON.", blank="it was not tested"),
)

ANALYSIS = Analysis(
    question="Is a model that is retrained window by window still good enough to use?",
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
    memory_mb=530,
    mb_per_gb={"pai2020": 60, "philly": 250, "sacct": 250},
)
