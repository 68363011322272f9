"""Every model trained and tried on every split: who fails (stage 1, landmark), and after how many hours (stage 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ttf.analyses.risk.predict_failure.challenger import Challenger
from ttf.analyses.risk.predict_failure.risk_labels import WITHOUT_MOST
from ttf.analyses.shared.risk import LOGISTIC, NESTED
from ttf.analyses.shared.risk.encoder import Design
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.hours import Hours
from ttf.analyses.shared.risk.model import NO_HISTORY, Lesson, Model, add_hours, choose_kind, simple_models
from ttf.analyses.shared.risk.splits import Split
from ttf.analyses.shared.risk.training_jobs import Population

BASE, BOOSTING = "base_rate", "gradient_boosting"
MODELS = (BASE, NESTED, LOGISTIC, BOOSTING)
# With fewer test jobs a measure says nothing.
FEWEST = 20


@dataclass(frozen=True)
class Tried:
    """What came of a split. model: the one that serves, or why there is none; rows: the test jobs, by their places.

    probability: model -> that each test job fails; lacks: model -> why it has none.
    """

    split: Split
    model: Model | str
    rows: np.ndarray
    design: Design | None
    probability: dict[str, np.ndarray] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)


def tried(
    data: Data, split: Split, challenger: Challenger, among: np.ndarray | None = None, with_hours: bool = True
) -> Tried:
    """Every model trained on a split, and the choice of the one that serves, made without the test jobs.

    among: truth values, the jobs that take part.
    """
    learn, again, test = (
        part if among is None else part & among for part in (split.learn, split.recalibrate, split.test)
    )
    jobs, rows = data.jobs, np.flatnonzero(test)
    lesson = Lesson.of(jobs, data.known, learn, again, split.until_s, with_hours)
    models = simple_models(lesson, data.features)
    if isinstance(models, str):
        return Tried(split, models, rows, None, lacks=dict.fromkeys(MODELS, models))
    model = add_hours(models[choose_kind(lesson, models)], lesson)
    design = model.encoder.design(data.known.take(rows))
    probability = {BASE: np.full(len(rows), jobs.failed[learn | again].mean())}
    probability |= {kind: models[kind].probability(design) for kind in models}
    lacks = {} if NESTED in models else {NESTED: NO_HISTORY}
    if challenger.lacks:
        lacks[BOOSTING] = challenger.lacks
    else:
        probability[BOOSTING] = challenger.probability(model.encoder, data.known, jobs.failed, learn, again, rows)
    return Tried(split, model, rows, design, probability, lacks)


def is_tested(data: Data, trial: Tried) -> bool:
    """Whether the model has a PR-AUC: there are enough test jobs, and some failed and some did not."""
    n, failures = len(trial.rows), data.jobs.failed[trial.rows].sum()
    return isinstance(trial.model, Model) and n >= FEWEST and 0 < failures < n


# Slices --------------------------------------------------------------------------------------------------------

ALL, BEYOND = "all", "beyond_range"
UNSEEN = {"unseen_user": "user", "unseen_group": "group", "unseen_gpu_type": "gpu_type"}
NOTHING_NAMED = "the trace names no {}"
NONE_OF_THEM = "no test job is one"


def slices(data: Data, trial: Tried) -> Iterator[tuple[str, np.ndarray | str]]:
    """(slice, truth value of each test job; or why there is none)."""
    jobs, rows = data.jobs, trial.rows
    yield ALL, np.ones(len(rows), dtype=bool)
    # Jobs of no known cluster have the number -1.
    failures = np.bincount(jobs.cluster[rows] + 1, jobs.failed[rows])
    if 2 * failures[1:].max(initial=0) > failures.sum():
        yield WITHOUT_MOST, jobs.cluster[rows] != failures[1:].argmax()
    learnt = trial.split.learn | trial.split.recalibrate
    for name, column in UNSEEN.items():
        codes = jobs.codes(column)
        if codes is None:
            yield name, NOTHING_NAMED.format({"gpu_type": "GPU types"}.get(column, f"{column}s"))
            continue
        seen = np.zeros(codes.max() + 1, dtype=bool)
        seen[codes[learnt]] = True
        unseen = ~seen[codes[rows]] & (codes[rows] > 0)
        yield name, unseen if unseen.any() else NONE_OF_THEM
    beyond = trial.model.encoder.beyond(data.known.take(rows)) if isinstance(trial.model, Model) else ()
    yield BEYOND, beyond if np.any(beyond) else NONE_OF_THEM


# Hours ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AtRisk:
    """Test jobs at risk: their probability is at or above the share of failures in training.

    rows: their places, those of the test and after them those of its window that still ran at the trace's end; hours,
    failed: what was seen of them; median, expected: predicted hours; one, one_expected: the same without features.
    """

    rows: np.ndarray
    hours: np.ndarray
    failed: np.ndarray
    probability: np.ndarray
    median: np.ndarray
    expected: np.ndarray
    one: float
    one_expected: float


def at_risk(data: Data, trial: Tried) -> AtRisk | str:
    """The jobs of a test whose hours are predicted; why there are none."""
    model, jobs = trial.model, data.jobs
    if isinstance(model, str):
        return model
    if model.hours is None:
        return "too few failures of known time among the jobs at risk"
    running = np.flatnonzero(trial.split.running)
    rows = np.concatenate([trial.rows, running])
    design = model.encoder.design(data.known.take(rows))
    probability = model.probability(design)
    keep = probability >= model.base_rate
    if not keep.any():
        return "no test job is at risk"
    rows, design, probability = rows[keep], design.take(keep), probability[keep]
    one = _without_features(data, trial, model.hours)
    return AtRisk(
        rows,
        jobs.hours[rows],
        jobs.failed[rows],
        probability,
        model.hours.median(design),
        model.hours.expected(design),
        *one,
    )


def _without_features(data: Data, trial: Tried, hours: Hours) -> tuple[float, float]:
    """Median and expected hours were all jobs alike: those of the failures that the model learnt from."""
    told = trial.split.learn | trial.split.recalibrate
    seen = data.jobs.hours[told & data.jobs.failed]
    seen = seen[np.isfinite(seen)]
    return float(np.median(seen)), float(np.minimum(seen, hours.horizon_h).mean())


# Landmark ------------------------------------------------------------------------------------------------------


def still_running(jobs: Population, after_s: int) -> np.ndarray:
    """Whether a job is known to have run for so long."""
    with np.errstate(invalid="ignore"):
        return jobs.hours * 3600 >= after_s
