"""One model after the other: each trained on from the one before, tested on the next window, and used if promoted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ttf.analyses.risk.train_model.cache import Cache
from ttf.analyses.risk.train_model.checks import Counts, Looked, counted, largest_drift, schema_problem
from ttf.analyses.risk.train_model.gate import PROMOTED, Decision, decide
from ttf.analyses.risk.train_model.training_windows import Window
from ttf.analyses.shared.risk import LOGISTIC
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.logistic import PRECISION, Prior
from ttf.analyses.shared.risk.model import FEWEST_JOBS, NO_FEATURES, ONE_KIND, TOO_FEW, Lesson, Model
from ttf.analyses.shared.risk.model import trained as model_of
from ttf.analyses.shared.risk.training_jobs import Population
from ttf.stats.predictions import Estimate, difference, log_loss

SCHEMA, DRIFT = "not trained: schema", "not trained: drift"
# Why a window has no model, of the reasons of `train`.
NOT_TRAINED = {
    TOO_FEW: "not trained: too few",
    ONE_KIND: "not trained: one kind",
    NO_FEATURES: "not trained: no features",
}
PENDING, ONLY = "pending", "only model"
NO_NEXT = "the next window, on which it is to be tested, is not there yet"
ONE_WINDOW = "one window: there is no later one to test the model on"
NONE_YET = "no model has been promoted yet"
NO_JOBS = "no job was submitted"
NO_MODEL = "no model could be trained"
# The latest fifth of the jobs of a window recalibrate its model: a tenth, of few users, moved it by chance (12 samples
# of 25,000 jobs in which nothing changed: 42 of 48 models were promoted, and 48 with a fifth).
RECALIBRATING = 5
# A model knows of jobs submitted so long before it is made that this share of jobs have ended within that time: of
# later ones it would know those alone that end soon, and who fails ends sooner or later than others.
SETTLED = 0.95


@dataclass(frozen=True)
class Trained:
    """The model after a window, trained on from its parent.

    digest: of all that it rests on (`Cache`). learnt: truth value of each job, whether it or a model that it goes back
    to has learnt from it; again: whether it was recalibrated on it; ended: whether its end was known when the model was
    made.
    """

    window: Window
    parent: str | None
    model: Model
    digest: str
    learnt: np.ndarray
    again: np.ndarray
    ended: np.ndarray

    @property
    def name(self) -> str:
        return self.window.model


@dataclass
class Lineage:
    """rows: of model_lineage; files: name of a file -> its text; current: the model in use, and its text."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    current: Trained | None = None
    current_text: str | None = None


def lineage(data: Data, windows: Sequence[Window], drift_limit: float, cache: Cache | None = None) -> Lineage:
    """The models of the windows in order. drift_limit: the effect size above which a window trains nothing.

    The jobs of a window that was refused have no part in later training, nor are later windows compared with them;
    those of a window with too few to learn from wait for the next.
    """
    found, last, cache = Lineage(), None, cache or Cache(data)
    counts = counted(data.features, data.known) if len(windows) > 1 else []
    taken, looked_at = np.zeros(len(data.jobs), dtype=bool), None
    for place, window in enumerate(windows):
        following = windows[place + 1] if place + 1 < len(windows) else None
        row = {
            "window": window.name,
            "jobs": len(window.rows),
            "failures": int(data.jobs.failed[window.rows].sum()),
            "trained": False,
        }
        here = Looked.at(data.jobs, data.features, counts, window.rows)
        refused = None
        if looked_at and looked_at.jobs >= FEWEST_JOBS:
            refused, about = checked(data, counts, looked_at, here, drift_limit)
            row |= about
        if refused:
            found.rows.append(row | _said(refused, found))
            continue
        taken[window.rows] = True
        looked_at = looked_at + here if looked_at else here
        trained = trained_after(data, window, taken, last, cache)
        if isinstance(trained, str):
            found.rows.append(row | _said(Decision(NOT_TRAINED[trained], trained), found))
            continue
        last = trained
        tested = {} if following is None else tested_on(data, trained, found.current, following, cache)
        decision = tested.pop("decision", Decision(ONLY, ONE_WINDOW) if window.is_all else Decision(PENDING, NO_NEXT))
        row |= {"trained": True, "parent": trained.parent, "n": trained.model.n, "model": trained.name}
        row |= {"kind": trained.model.kind} | tested
        text = written(data, trained, row, decision)
        found.files[f"{trained.name}.json"] = text
        if decision.name in (PROMOTED, ONLY):
            found.current, found.current_text = trained, text
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        found.rows.append(row | {"digest": digest, "tolerance": decision.tolerance} | _said(decision, found))
    found.files["current.json"] = found.current_text or as_text({"model": None, "why": why_none(found.rows)})
    return found


def why_none(rows: Sequence[dict[str, Any]]) -> str:
    """Why no model is in use."""
    if not rows:
        return NO_JOBS
    return NONE_YET if any(row["trained"] for row in rows) else f"{NO_MODEL}: {rows[-1]['reason']}"


def _said(decision: Decision, found: Lineage) -> dict[str, str | None]:
    current = found.current and found.current.name
    return {"decision": decision.name, "reason": decision.reason, "current": current}


def checked(
    data: Data, counts: Sequence[Counts], before: Looked, here: Looked, drift_limit: float
) -> tuple[Decision | None, dict[str, Any]]:
    """(why the window trains nothing, cells of the row). before: what the jobs of the windows before it have."""
    if problem := schema_problem(data.features, counts, before, here):
        return Decision(SCHEMA, problem), {}
    moved = largest_drift(counts, before, here)
    if moved is None:
        return None, {}
    cells = {"drift_max": moved.effect, "drift_effect": moved.effect_name, "drift_feature": moved.feature}
    if moved.effect <= drift_limit:
        return None, cells
    effect = f"{moved.effect_name} {moved.effect:.2f}"
    return Decision(DRIFT, f"the feature {moved.feature} moved by {effect}, the limit is {drift_limit:g}"), cells


# Training ------------------------------------------------------------------------------------------------------


def trained_after(data: Data, window: Window, taken: np.ndarray, last: Trained | None, cache: Cache) -> Trained | str:
    """The model after a window, or why there is none. taken: truth values, the jobs of windows that train.

    Of what had ended by then it learns what its parent had not; the latest fifth of that recalibrates, and is left for
    the next one to learn from.
    """
    jobs = data.jobs
    ended = jobs.ended & taken if window.is_all else jobs.ended & taken & settled(jobs, window.end_s)
    if np.count_nonzero(ended & ~last.ended if last else ended) < FEWEST_JOBS:
        return TOO_FEW
    new = np.flatnonzero(ended & ~last.learnt if last else ended)
    again = np.zeros(len(jobs), dtype=bool)
    again[new[len(new) - len(new) // RECALIBRATING :]] = True
    learn = np.zeros(len(jobs), dtype=bool)
    learn[new] = True
    learn &= ~again
    lesson = Lesson.of(jobs, data.known, learn, again, window.end_s)
    digest = cache.lesson_digest(ended, lesson, last and last.digest)

    def train() -> Model | str:
        prior, encoder = (warm_prior(last.model), last.model.encoder) if last else (None, None)
        return model_of(lesson, data.features, prior, encoder)

    model = cache.model(window.name, digest, train)
    if isinstance(model, str):
        return model
    return Trained(window, last and last.name, model, digest, learn | last.learnt if last else learn, again, ended)


def from_nothing(data: Data, trained: Trained) -> Model | None:
    """The regression of all jobs that had ended when another was made, with which that is compared.

    None where history alone serves, which has no warm start. Of all that is trained it costs the most: as much for each
    window as there are jobs before.
    """
    if trained.model.kind != LOGISTIC:
        return None
    if trained.parent is None:
        return trained.model
    learn = trained.ended & ~trained.again
    lesson = Lesson.of(data.jobs, data.known, learn, trained.again, trained.window.end_s, with_hours=False)
    cold = model_of(lesson, data.features, kind=LOGISTIC)
    return cold if isinstance(cold, Model) else None


def settled(jobs: Population, until_s: int) -> np.ndarray:
    """Truth value of each job: its end was known before a moment, and so were those of most jobs submitted when it was.

    How long that takes is told by the jobs whose end was known by then.
    """
    known = jobs.ended & (jobs.known_s < until_s)
    if not known.any():
        return known
    took = np.quantile(jobs.known_s[known] - jobs.submit_s[known], SETTLED, method="higher")
    return known & (jobs.submit_s < until_s - took)


def warm_prior(parent: Model) -> Prior:
    """What the parent's fit says of the coefficients, as a normal distribution: its mean, and its information.

    Of terms whose feature is not warm nothing is known: they are integrated out of the information (its Schur
    complement) and have the vague prior.
    """
    width = len(parent.fit.coefficients)
    warm_of = {feature.name: feature.warm for feature in parent.encoder.features}
    is_warm = np.array([True, *(warm_of[term.feature] for term in parent.encoder.terms)])
    information, mean = parent.fit.information, np.where(is_warm, parent.fit.coefficients, 0.0)
    if is_warm.all():
        return Prior(mean, information)
    kept, rest = np.ix_(is_warm, is_warm), np.ix_(~is_warm, ~is_warm)
    across = information[np.ix_(is_warm, ~is_warm)]
    precision = np.diag(np.full(width, PRECISION))
    precision[kept] = information[kept] - across @ np.linalg.solve(information[rest], across.T)
    return Prior(mean, precision)


# Testing -------------------------------------------------------------------------------------------------------


def tested_on(data: Data, trained: Trained, current: Trained | None, window: Window, cache: Cache) -> dict[str, Any]:
    """Cells of the row from the test on a window's jobs that ended, and the decision."""
    jobs = data.jobs
    rows = window.rows[jobs.ended[window.rows]]
    base_rate = float(jobs.failed[trained.learnt].mean())

    def compare() -> dict[str, Any]:
        models = {"new": trained.model, "cold": from_nothing(data, trained), "current": current and current.model}
        return _compared(data, rows, {name: model for name, model in models.items() if model is not None}, base_rate)

    said = cache.test(rows, [trained.digest, current and current.digest, base_rate], compare)
    losses, apart = said["losses"], {name: Estimate(**of) for name, of in said["apart"].items()}
    gain, change = apart["gain"], apart.get("change")
    of_current = losses["base_rate"] - losses["current"] if current and len(rows) else 0.0
    cells = {"tested_on": window.name, "n_test": len(rows), "failures_test": int(jobs.failed[rows].sum())}
    cells |= {f"log_loss_{name}": loss for name, loss in losses.items()}
    cells |= {"gain": gain.estimate, "gain_lower": gain.lower, "cluster_by": gain.cluster_by, "clusters": gain.clusters}
    if change is not None:
        cells |= {"difference": change.estimate, "difference_lower": change.lower, "difference_upper": change.upper}
    if trained.parent and "warm" in apart:
        warm = apart["warm"]
        cells |= {"warm_minus_cold": warm.estimate, "ci_low_clustered": warm.low, "ci_high_clustered": warm.high}
    return cells | {"decision": decide(change, gain, of_current)}


def _compared(data: Data, rows: np.ndarray, models: Mapping[str, Model], base_rate: float) -> dict[str, Any]:
    """Log-losses on some jobs, and differences of them (`Estimate` as a mapping): what JSON can say."""
    jobs, part = data.jobs, data.known.take(rows)
    failed, cluster, by = jobs.failed[rows], jobs.cluster[rows], jobs.by
    probability = {name: model.probability(model.encoder.design(part)) for name, model in models.items()}
    probability["base_rate"] = np.full(len(rows), base_rate)
    less = {"gain": ("base_rate", "new"), "change": ("new", "current"), "warm": ("new", "cold")}
    return {
        "losses": {name: log_loss(failed, p, cluster, by).estimate for name, p in probability.items()},
        "apart": {
            name: asdict(difference("log_loss", failed, probability[one], probability[other], cluster, by))
            for name, (one, other) in less.items()
            if one in probability and other in probability
        },
    }


# Files ---------------------------------------------------------------------------------------------------------


def written(data: Data, trained: Trained, row: dict[str, Any], decision: Decision) -> str:
    """The file of a model: what `Model.from_json` reads, what it comes from, and what was decided and why."""
    submit_s = data.jobs.submit_s[trained.learnt]
    measured = ("tested_on", "n_test", "failures_test", "difference", "difference_lower", "difference_upper")
    measured += ("log_loss_new", "log_loss_cold", "log_loss_current", "log_loss_base_rate", "gain", "gain_lower")
    measured += ("warm_minus_cold", "drift_max", "drift_effect", "drift_feature")
    about = trained.model.to_json() | {
        "model": trained.name,
        "window": trained.window.name,
        "parent": trained.parent,
        "decision": decision.name,
        "reason": decision.reason,
        "metrics": {name: row[name] for name in measured if row.get(name) is not None},
        "range": {
            "jobs": int(trained.learnt.sum()),
            "first_submit_s": int(submit_s[0]),
            "last_submit_s": int(submit_s[-1]),
        },
    }
    return as_text(about)


def as_text(about: dict[str, Any]) -> str:
    """JSON of which the same numbers give the same bytes; ValueError for what is no number."""
    return json.dumps(about, sort_keys=True, indent=1, allow_nan=False) + "\n"
