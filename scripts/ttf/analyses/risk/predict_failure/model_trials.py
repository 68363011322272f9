"""Train and test every model on every split: who fails (stage 1, landmark), and after how many hours (stage 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ttf.analyses.risk.predict_failure.risk_labels import WITHOUT_MOST
from ttf.analyses.shared.risk import LOGISTIC, NESTED
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.model import NO_HISTORY, Model, TrainingData, add_hours, choose_kind, train_candidates
from ttf.analyses.shared.risk.splits import Split
from ttf.analyses.shared.risk.training_jobs import Population
from ttf.stats.regression.censored_lognormal import Hours
from ttf.stats.regression.design import Design

BASE = "base_rate"
MODELS = (BASE, NESTED, LOGISTIC)
# Fewest test jobs for a measure.
FEWEST = 20


@dataclass(frozen=True)
class Trial:
    """Result of a split. model: the one that serves, or why there is none; rows: indices of the test jobs.

    probability: model -> probability of failure of each test job; missing: model -> why it has none.
    """

    split: Split
    model: Model | str
    rows: np.ndarray
    design: Design | None
    probability: dict[str, np.ndarray] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def run_trial(data: Data, split: Split, included: np.ndarray | None = None, with_hours: bool = True) -> Trial:
    """Train every model on a split without its test jobs, choose the one that serves. included: mask of jobs to use."""
    is_training, is_calibration, is_test = (
        mask if included is None else mask & included for mask in (split.learn, split.recalibrate, split.test)
    )
    jobs, rows = data.jobs, np.flatnonzero(is_test)
    training = TrainingData.select(jobs, data.job_features, is_training, is_calibration, split.until_s, with_hours)
    trained = train_candidates(training, data.features)
    if isinstance(trained, str):
        return Trial(split, trained, rows, None, missing=dict.fromkeys(MODELS, trained))
    models, training_design = trained
    model = add_hours(models[choose_kind(training, models, training_design)], training, training_design)
    design = model.encoder.design(data.job_features, rows)
    probability = {BASE: np.full(len(rows), jobs.failed[is_training | is_calibration].mean())}
    probability |= {kind: models[kind].probability(design) for kind in models}
    missing = {} if NESTED in models else {NESTED: NO_HISTORY}
    return Trial(split, model, rows, design, probability, missing)


def is_tested(data: Data, trial: Trial) -> bool:
    """Whether the model has a PR-AUC: enough test jobs, of which some failed and some did not."""
    n, failures = len(trial.rows), data.jobs.failed[trial.rows].sum()
    return isinstance(trial.model, Model) and n >= FEWEST and 0 < failures < n


# Slices --------------------------------------------------------------------------------------------------------

ALL, OUT_OF_RANGE = "all", "beyond_range"
UNSEEN = {"unseen_user": "user", "unseen_group": "group", "unseen_gpu_type": "gpu_type"}
NOT_RECORDED = "the trace names no {}"
NO_SUCH_JOB = "there is no such test job"


def slices(data: Data, trial: Trial) -> Iterator[tuple[str, np.ndarray | str]]:
    """Yield (slice, mask of the test jobs or the reason why there is none)."""
    jobs, rows = data.jobs, trial.rows
    yield ALL, np.ones(len(rows), dtype=bool)
    # Jobs without a cluster have the number -1.
    failures = np.bincount(jobs.cluster[rows] + 1, jobs.failed[rows])
    if 2 * failures[1:].max(initial=0) > failures.sum():
        yield WITHOUT_MOST, jobs.cluster[rows] != failures[1:].argmax()
    is_training = trial.split.learn | trial.split.recalibrate
    for name, column in UNSEEN.items():
        codes = jobs.codes(column)
        if codes is None:
            yield name, NOT_RECORDED.format({"gpu_type": "GPU types"}.get(column, f"{column}s"))
            continue
        is_seen = np.zeros(codes.max() + 1, dtype=bool)
        is_seen[codes[is_training]] = True
        is_unseen = ~is_seen[codes[rows]] & (codes[rows] > 0)
        yield name, is_unseen if is_unseen.any() else NO_SUCH_JOB
    model, features = trial.model, data.job_features.take(rows)
    outliers = model.encoder.is_out_of_range(features) if isinstance(model, Model) else np.zeros(0, bool)
    yield OUT_OF_RANGE, outliers if np.any(outliers) else NO_SUCH_JOB


# Hours ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AtRisk:
    """Test jobs at risk: those whose probability is at least the share of failures in training.

    rows: indices of test jobs, then of jobs of the test period that still ran at the end of the trace; hours, failed:
    observed; median, mean: predicted hours; base_median, base_mean: predictions without features.
    """

    rows: np.ndarray
    hours: np.ndarray
    failed: np.ndarray
    probability: np.ndarray
    median: np.ndarray
    mean: np.ndarray
    base_median: float
    base_mean: float


def select_at_risk(data: Data, trial: Trial) -> AtRisk | str:
    """Return the test jobs whose hours are predicted, or the reason why there are none."""
    model, jobs = trial.model, data.jobs
    if isinstance(model, str):
        return model
    if model.hours is None:
        return "too few failures of known time among the jobs at risk"
    rows = np.concatenate([trial.rows, np.flatnonzero(trial.split.running)])
    design = model.encoder.design(data.job_features, rows)
    probability = model.probability(design)
    is_at_risk = probability >= model.base_rate
    if not is_at_risk.any():
        return "no test job is at risk"
    rows, design, probability = rows[is_at_risk], design.take(is_at_risk), probability[is_at_risk]
    return AtRisk(
        rows,
        jobs.hours[rows],
        jobs.failed[rows],
        probability,
        model.hours.median(design),
        model.hours.mean(design),
        *_baseline_hours(data, trial, model.hours),
    )


def _baseline_hours(data: Data, trial: Trial, hours: Hours) -> tuple[float, float]:
    """Return median and mean hours of the training failures: the prediction without features."""
    is_training = trial.split.learn | trial.split.recalibrate
    failure_hours = data.jobs.hours[is_training & data.jobs.failed]
    failure_hours = failure_hours[np.isfinite(failure_hours)]
    return float(np.median(failure_hours)), float(np.minimum(failure_hours, hours.horizon_h).mean())


# Landmark ------------------------------------------------------------------------------------------------------


def has_run_for(jobs: Population, duration_s: int) -> np.ndarray:
    """Return a mask of jobs known to have run for at least `duration_s`."""
    with np.errstate(invalid="ignore"):
        return jobs.hours * 3600 >= duration_s
