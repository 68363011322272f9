"""Train a model after each window, starting from the previous model; test it on the next window; promote it if good."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ttf.analyses.risk.train_model.cache import Cache
from ttf.analyses.risk.train_model.checks import CodedFeature, Summary, code_features, largest_drift, schema_problem
from ttf.analyses.risk.train_model.gate import PROMOTED, Decision, decide
from ttf.analyses.risk.train_model.training_windows import Window
from ttf.analyses.shared.risk import LOGISTIC
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.model import FEWEST_JOBS, NO_FEATURES, ONE_KIND, TOO_FEW, Model, TrainingData, train_model
from ttf.analyses.shared.risk.training_jobs import Population
from ttf.stats.predictions import Estimate, difference, estimate_score
from ttf.stats.regression.logistic import PRECISION, Prior

SCHEMA, DRIFT = "not trained: schema", "not trained: drift"
# Decision by the reason that `train_model` returns.
NOT_TRAINED = {
    TOO_FEW: "not trained: too few",
    ONE_KIND: "not trained: one kind",
    NO_FEATURES: "not trained: no features",
}
PENDING, ONLY_MODEL = "pending", "only model"
NO_NEXT = "the next window, on which it is to be tested, is not there yet"
ONE_WINDOW = "one window: there is no later one to test the model on"
NONE_YET = "no model has been promoted yet"
NO_JOBS = "no job was submitted"
NO_MODEL = "no model could be trained"
# The latest fifth of the jobs of a window recalibrate its model. A tenth, of few users, moved it by chance: in 12
# samples of 25,000 jobs without change, 42 of 48 models were promoted, and 48 with a fifth.
CALIBRATION_DIVISOR = 5
# A model uses only jobs submitted so long before that this share of jobs ends within that time. Of later jobs only
# those that end soon would be known, and failing jobs end sooner or later than others.
SETTLED_SHARE = 0.95


@dataclass(frozen=True)
class LineageEntry:
    """Model of a window, warm-started from its parent.

    digest: of its inputs (`Cache`); is_learnt, is_calibration, ended: masks of jobs: used in training by it or an
    ancestor; used in its recalibration; with an end known when it was made.
    """

    window: Window
    parent: str | None
    model: Model
    digest: str
    is_learnt: np.ndarray
    is_calibration: np.ndarray
    ended: np.ndarray

    @property
    def name(self) -> str:
        """Name of the model and of its file."""
        return self.window.model_name


@dataclass
class Lineage:
    """rows: of model_lineage; files: file name -> text; current, current_text: the model in use and its file."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    current: LineageEntry | None = None
    current_text: str | None = None


def train_lineage(data: Data, windows: Sequence[Window], drift_limit: float, cache: Cache | None = None) -> Lineage:
    """Train, test and decide window by window. drift_limit: effect size above which a window trains no model.

    Jobs of a refused window are excluded from later training and comparisons. Jobs of a window with too few to train
    on wait for the next.
    """
    lineage, previous, cache = Lineage(), None, cache or Cache(data)
    coded = code_features(data.features, data.job_features) if len(windows) > 1 else []
    is_accepted, past = np.zeros(len(data.jobs), dtype=bool), None
    for index, window in enumerate(windows):
        next_window = windows[index + 1] if index + 1 < len(windows) else None
        row = {
            "window": window.name,
            "jobs": len(window.rows),
            "trained": False,
        }
        current = Summary.summarise(data.jobs, data.features, coded, window.rows)
        refusal = None
        if past and past.jobs >= FEWEST_JOBS:
            refusal, drift_cells = check_window(data, coded, past, current, drift_limit)
            row |= drift_cells
        if refusal:
            lineage.rows.append(row | _decision_cells(refusal, lineage))
            continue
        is_accepted[window.rows] = True
        past = past + current if past else current
        entry = train_after(data, window, is_accepted, previous, cache)
        if isinstance(entry, str):
            lineage.rows.append(row | _decision_cells(Decision(NOT_TRAINED[entry], entry), lineage))
            continue
        previous = entry
        tested = {} if next_window is None else test_on(data, entry, lineage.current, next_window, cache)
        untested = Decision(ONLY_MODEL, ONE_WINDOW) if window.is_all else Decision(PENDING, NO_NEXT)
        decision = tested.pop("decision", untested)
        row |= {"trained": True, "parent": entry.parent, "n": entry.model.n, "model": entry.name}
        row |= {"kind": entry.model.kind} | tested
        text = format_model(data, entry, row, decision)
        lineage.files[f"{entry.name}.json"] = text
        if decision.name in (PROMOTED, ONLY_MODEL):
            lineage.current, lineage.current_text = entry, text
        row["tolerance"] = decision.tolerance
        lineage.rows.append(row | _decision_cells(decision, lineage))
    no_model = {"model": None, "why": explain_no_model(lineage.rows)}
    lineage.files["current.json"] = lineage.current_text or to_json_text(no_model)
    return lineage


def explain_no_model(rows: Sequence[dict[str, Any]]) -> str:
    """Return why no model is in use. rows: of model_lineage."""
    if not rows:
        return NO_JOBS
    return NONE_YET if any(row["trained"] for row in rows) else f"{NO_MODEL}: {rows[-1]['reason']}"


def _decision_cells(decision: Decision, lineage: Lineage) -> dict[str, str | None]:
    """Return cells of model_lineage: the decision, its reason, and the name of the model in use."""
    current = lineage.current.name if lineage.current else None
    return {"decision": decision.name, "reason": decision.reason, "current": current}


def check_window(
    data: Data, coded: Sequence[CodedFeature], past: Summary, current: Summary, drift_limit: float
) -> tuple[Decision | None, dict[str, Any]]:
    """Return (refusal of the window or None, cells of its row). past: summary of the jobs of earlier windows."""
    if problem := schema_problem(data.features, coded, past, current):
        return Decision(SCHEMA, problem), {}
    drift = largest_drift(coded, past, current)
    if drift is None:
        return None, {}
    cells = {"drift_max": drift.effect, "drift_effect": drift.effect_name, "drift_feature": drift.feature}
    if drift.effect <= drift_limit:
        return None, cells
    effect = f"{drift.effect_name} {drift.effect:.2f}"
    return Decision(DRIFT, f"the feature {drift.feature} moved by {effect}, the limit is {drift_limit:g}"), cells


# Training ------------------------------------------------------------------------------------------------------


def train_after(
    data: Data, window: Window, is_accepted: np.ndarray, parent: LineageEntry | None, cache: Cache
) -> LineageEntry | str:
    """Train the model after a window, or return why not. is_accepted: mask of the jobs of windows that train.

    It learns from ended jobs that its parent had not used. The latest fifth recalibrates it, and remains available to
    train the next model.
    """
    jobs = data.jobs
    ended = jobs.ended & is_accepted if window.is_all else jobs.ended & is_accepted & settled_jobs(jobs, window.end_s)
    if np.count_nonzero(ended & ~parent.ended if parent else ended) < FEWEST_JOBS:
        return TOO_FEW
    is_new = ended & ~parent.is_learnt if parent else ended
    new = np.flatnonzero(is_new)
    is_calibration = np.zeros(len(jobs), dtype=bool)
    is_calibration[new[len(new) - len(new) // CALIBRATION_DIVISOR :]] = True
    is_training = is_new & ~is_calibration
    training = TrainingData.select(jobs, data.job_features, is_training, is_calibration, window.end_s)
    digest = cache.lesson_digest(ended, training, parent.digest if parent else None)

    def train() -> Model | str:
        """Train from the parent's model, if any; return the reason if no model can be trained."""
        prior, encoder = (warm_prior(parent.model), parent.model.encoder) if parent else (None, None)
        return train_model(training, data.features, prior, encoder)

    model = cache.model(window.name, digest, train)
    if isinstance(model, str):
        return model
    is_learnt = is_training | parent.is_learnt if parent else is_training
    parent_name = parent.name if parent else None
    return LineageEntry(window, parent_name, model, digest, is_learnt, is_calibration, ended)


def train_cold(data: Data, entry: LineageEntry) -> Model | None:
    """Train a regression without warm start on all jobs ended when `entry` was made, for comparison.

    None if history alone serves: it has no warm start. The costliest training, as it grows with all earlier jobs.
    """
    if entry.model.kind != LOGISTIC:
        return None
    if entry.parent is None:
        return entry.model
    is_training = entry.ended & ~entry.is_calibration
    training = TrainingData.select(
        data.jobs, data.job_features, is_training, entry.is_calibration, entry.window.end_s, with_hours=False
    )
    model = train_model(training, data.features, kind=LOGISTIC)
    return model if isinstance(model, Model) else None


def settled_jobs(jobs: Population, until_s: int) -> np.ndarray:
    """Return a mask of jobs that ended before `until_s` and were submitted so early that most like them had ended too.

    The time that takes is estimated from the jobs that had ended by then.
    """
    is_known = jobs.ended & (jobs.known_s < until_s)
    if not is_known.any():
        return is_known
    duration_s = np.quantile(jobs.known_s[is_known] - jobs.submit_s[is_known], SETTLED_SHARE, method="higher")
    return is_known & (jobs.submit_s < until_s - duration_s)


def warm_prior(parent: Model) -> Prior:
    """Return the parent's fit as a normal prior of the coefficients.

    Terms of other features are integrated out of the information (Schur complement) and get the vague prior.
    """
    width = len(parent.fit.coefficients)
    is_warm_by_feature = {feature.name: feature.warm for feature in parent.encoder.features}
    is_warm = np.array([True, *(is_warm_by_feature[term.feature] for term in parent.encoder.terms)])
    information, mean = parent.fit.information, np.where(is_warm, parent.fit.coefficients, 0.0)
    if is_warm.all():
        return Prior(mean, information)
    warm, cold = np.ix_(is_warm, is_warm), np.ix_(~is_warm, ~is_warm)
    across = information[np.ix_(is_warm, ~is_warm)]
    precision = np.diag(np.full(width, PRECISION))
    precision[warm] = information[warm] - across @ np.linalg.solve(information[cold], across.T)
    return Prior(mean, precision)


# Testing -------------------------------------------------------------------------------------------------------


def test_on(
    data: Data, entry: LineageEntry, current: LineageEntry | None, window: Window, cache: Cache
) -> dict[str, Any]:
    """Test on the ended jobs of a window; return cells of model_lineage, and the `Decision` as `decision`."""
    jobs = data.jobs
    rows = window.rows[jobs.ended[window.rows]]
    base_rate = float(jobs.failed[entry.is_learnt].mean())

    def compare() -> dict[str, Any]:
        """Return `_compare_losses` of the new, the cold and the current model."""
        models = {"new": entry.model, "cold": train_cold(data, entry), "current": current and current.model}
        return _compare_losses(data, rows, {name: model for name, model in models.items() if model}, base_rate)

    result = cache.test(rows, [entry.digest, current and current.digest, base_rate], compare)
    losses, changes = result["losses"], {name: Estimate(**fields) for name, fields in result["apart"].items()}
    gain, change = changes["gain"], changes.get("change")
    current_gain = losses["base_rate"] - losses["current"] if current and len(rows) else 0.0
    cells = {"tested_on": window.name, "n_test": len(rows), "failures_test": int(jobs.failed[rows].sum())}
    cells |= {f"log_loss_{name}": loss for name, loss in losses.items()}
    cells |= {"gain": gain.estimate, "gain_lower": gain.lower, "cluster_by": gain.cluster_by, "clusters": gain.clusters}
    if change is not None:
        cells |= {"difference": change.estimate, "difference_lower": change.lower, "difference_upper": change.upper}
    if entry.parent and "warm" in changes:
        warm = changes["warm"]
        cells |= {"warm_minus_cold": warm.estimate, "ci_low_clustered": warm.low, "ci_high_clustered": warm.high}
    return cells | {"decision": decide(change, gain, current_gain)}


def _compare_losses(data: Data, rows: np.ndarray, models: Mapping[str, Model], base_rate: float) -> dict[str, Any]:
    """Return {losses: log-loss by model; apart: differences, each the fields of an `Estimate`} on the jobs `rows`."""
    jobs, features = data.jobs, data.job_features.take(rows)
    failed, cluster, cluster_by = jobs.failed[rows], jobs.cluster[rows], jobs.cluster_by
    probability = {name: model.probability(model.encoder.design(features)) for name, model in models.items()}
    probability["base_rate"] = np.full(len(rows), base_rate)
    pairs = {"gain": ("base_rate", "new"), "change": ("new", "current"), "warm": ("new", "cold")}
    return {
        "losses": {
            name: estimate_score("log_loss", failed, p, cluster, cluster_by).estimate for name, p in probability.items()
        },
        "apart": {
            name: asdict(difference("log_loss", failed, probability[left], [probability[right]], cluster, cluster_by))
            for name, (left, right) in pairs.items()
            if left in probability and right in probability
        },
    }


# Files ---------------------------------------------------------------------------------------------------------


def format_model(data: Data, entry: LineageEntry, row: dict[str, Any], decision: Decision) -> str:
    """Return the text of a model file: what `Model.from_json` reads, its origin, and the decision."""
    submit_s = data.jobs.submit_s[entry.is_learnt]
    metrics = ["tested_on", "n_test", "failures_test", "difference", "difference_lower", "difference_upper"]
    metrics += ["log_loss_new", "log_loss_cold", "log_loss_current", "log_loss_base_rate", "gain", "gain_lower"]
    metrics += ["warm_minus_cold", "drift_max", "drift_effect", "drift_feature"]
    document = entry.model.to_json() | {
        "model": entry.name,
        "window": entry.window.name,
        "parent": entry.parent,
        "decision": decision.name,
        "reason": decision.reason,
        "metrics": {name: row[name] for name in metrics if row.get(name) is not None},
        "range": {
            "jobs": int(entry.is_learnt.sum()),
            "first_submit_s": int(submit_s[0]),
            "last_submit_s": int(submit_s[-1]),
        },
    }
    return to_json_text(document)


def to_json_text(document: dict[str, Any]) -> str:
    """Return JSON that is byte-identical for identical numbers. Raise ValueError for NaN and infinity."""
    return json.dumps(document, sort_keys=True, indent=1, allow_nan=False) + "\n"
