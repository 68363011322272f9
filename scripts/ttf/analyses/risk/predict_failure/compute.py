"""Evaluate failure risk as it would be used: train on jobs that had ended, test on later jobs."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from ttf.analyses.risk.predict_failure import (
    CALIBRATION,
    COEFFICIENTS,
    DECISIONS,
    DEPENDENCE,
    EVALUATION,
    EXTRAPOLATION,
    FEATURES,
    IMPORTANCE,
    LANDMARK,
    PROBABILITY,
    TAKEN,
)
from ttf.analyses.risk.predict_failure.estimate_cells import Row
from ttf.analyses.risk.predict_failure.evaluate import evaluate_calibration, evaluate_hours, evaluate_probability
from ttf.analyses.risk.predict_failure.extrapolate import extrapolation_rows
from ttf.analyses.risk.predict_failure.feature_effects import (
    PERMUTED,
    coefficient_rows,
    dependence_rows,
    importance_rows,
)
from ttf.analyses.risk.predict_failure.model_trials import Trial, has_run_for, is_tested, run_trial
from ttf.analyses.risk.predict_failure.savings import Savings
from ttf.analyses.risk.predict_failure.verdict import summarise_tests
from ttf.analyses.shared.risk.features import HISTORY, Data, Feature, parse_features
from ttf.analyses.shared.risk.model import NO_FEATURES, Model
from ttf.analyses.shared.risk.splits import split_at_origins, split_at_random
from ttf.analyses.shared.risk.training_jobs import Population
from ttf.records.inputs import Inputs

# Units of the measures that have one.
UNITS = {"gpu_hours_saved": "GPU-hours", "gpu_hours_saved_of_oracle": "share"}


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    """Return the tables of the analysis, from the latest `latest_jobs` jobs to bound the cost (docs/risk.md).

    Nothing is cached for the next run: one more job moves the origins and the random split, and so all results.
    """
    settings = inputs.settings
    features, clock = parse_features(settings.risk["features"]), settings.risk["clock"]
    # Features use the values as recorded; the unit applies to the GPU time that acting on the score saves.
    jobs = inputs.scan_as_recorded("jobs")
    data = Data.load(jobs, features, clock, max_jobs=settings.latest_jobs, unit=inputs.unit)
    return evaluate_models(data, settings.landmark_s, settings.trial_minutes / 60, settings.seed)


def evaluate_models(data: Data, landmark_s: int, trial_h: float, seed: int) -> dict[str, pl.DataFrame]:
    """Return all tables of the analysis. landmark_s: run time at the landmark; trial_h: hours of a trial."""
    trials = [run_trial(data, split) for split in split_at_origins(data.jobs)]
    # The last origin that can be tested; else the last, which holds the reason.
    last_trial = next((trial for trial in reversed(trials) if is_tested(data, trial)), trials[-1])
    savings = {trial.split.name: Savings(data, trial, trial_h) for trial in trials}
    random_trial = run_trial(data, split_at_random(data.jobs, seed), with_hours=False)
    rows: list[Row] = []
    for trial in trials:
        rows += evaluate_probability(data, trial, PROBABILITY, savings[trial.split.name])
    rows += evaluate_probability(data, random_trial, PROBABILITY)
    rows += [row for trial in trials for row in evaluate_hours(data, trial)]
    is_long = has_run_for(data.jobs, landmark_s)
    for trial in trials:
        landmark = run_trial(data, trial.split, is_long, with_hours=False)
        rows += evaluate_probability(data, landmark, LANDMARK)
    importances = importance_rows(data, last_trial, seed)
    features_by_drop = [row["feature"] for row in importances if row["how"] == PERMUTED]
    evaluation = EVALUATION.frame(row | {"unit": UNITS.get(row["metric"])} for row in rows)
    features, importance = FEATURES.frame(feature_rows(data, last_trial)), IMPORTANCE.frame(importances)
    return {
        "risk_verdict": summarise_tests(evaluation, features, importance),
        "risk_evaluation": evaluation,
        "risk_calibration": CALIBRATION.frame(
            row for trial in (*trials, random_trial) for row in evaluate_calibration(data, trial)
        ),
        "risk_coefficients": COEFFICIENTS.frame(coefficient_rows(data, last_trial)),
        "risk_importance": importance,
        "risk_dependence": DEPENDENCE.frame(dependence_rows(data, last_trial, features_by_drop)),
        "risk_decisions": DECISIONS.frame(savings[last_trial.split.name].curve_rows()),
        "risk_extrapolation": EXTRAPOLATION.frame(extrapolation_rows(data, last_trial)),
        "risk_features": features,
        "risk_jobs": TAKEN.frame(job_rows(data.jobs)),
    }


def job_rows(jobs: Population) -> Iterator[Mapping[str, Any]]:
    """Yield rows of risk_jobs: how many jobs are ended, running, waiting or excluded."""
    ended, running = int(jobs.ended.sum()), int(jobs.running.sum())
    counts = {"ended": ended, "running": running, "waiting": len(jobs) - ended - running} | jobs.exclusions
    yield from ({"jobs_are": name, "jobs": count} for name, count in counts.items())


def feature_rows(data: Data, trial: Trial) -> Iterator[Mapping[str, Any]]:
    """Yield rows of risk_features: kind, columns and jobs with a value of each feature, and why it is not used."""
    model = trial.model
    for feature in data.features:
        params = model.encoder.params[feature.name] if isinstance(model, Model) else {}
        is_used = bool(params.get("numbers") or params.get("levels"))
        reason = None if is_used else params.get("why") or (model if isinstance(model, str) else NO_FEATURES)
        yield {
            "feature": feature.name,
            "kind": feature.kind,
            "columns": ", ".join(feature.columns),
            "jobs_with_value": _count_jobs_with_value(data, feature),
            "used": is_used,
            "reason": reason,
        }


def _count_jobs_with_value(data: Data, feature: Feature) -> int:
    if feature.kind == HISTORY:
        return int((data.job_features.ended_counts[feature.name][:, -1] > 0).sum())
    if feature.name in data.job_features.codes:
        return int((data.job_features.codes[feature.name] >= 0).sum())
    return int((~np.isnan(data.job_features.numbers[feature.name])).sum())
