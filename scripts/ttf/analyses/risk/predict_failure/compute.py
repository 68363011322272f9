"""Failure risk, evaluated as it would be used: trained on what had ended, tested on what came after."""

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
from ttf.analyses.risk.predict_failure.challenger import Challenger
from ttf.analyses.risk.predict_failure.evaluate import of_calibration, of_hours, of_probability
from ttf.analyses.risk.predict_failure.extrapolate import extrapolation
from ttf.analyses.risk.predict_failure.feature_effects import PERMUTED, coefficients, dependence, importance
from ttf.analyses.risk.predict_failure.model_trials import Tried, is_tested, still_running, tried
from ttf.analyses.risk.predict_failure.savings import Savings
from ttf.analyses.risk.predict_failure.verdict import summarise_tests
from ttf.analyses.shared.risk.features import HISTORY, Data, Feature, features_of
from ttf.analyses.shared.risk.model import NO_FEATURES, Model
from ttf.analyses.shared.risk.splits import at_random, temporal
from ttf.analyses.shared.risk.training_jobs import EARLIER, Population
from ttf.records.inputs import Inputs

LEFT_OUT = "left out"
# Of measures that have one.
UNITS = {"gpu_hours_saved": "GPU-hours", "gpu_hours_saved_of_oracle": "share"}


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    """Of the latest `latest_jobs`, which bounds the cost: docs/risk.md says what more jobs would tell.

    Nothing is kept for the next run: a job more moves the origins and the random split, and with them all that is
    trained and tested.
    """
    settings = given.settings
    features, clock = features_of(settings.risk["features"]), settings.risk["clock"]
    # What is known at submission is a feature as it is recorded; the unit is that of what acting on the score saves.
    jobs = given.scan_as_recorded("jobs")
    data = Data.of(jobs, features, clock, most=settings.latest_jobs, unit=given.unit)
    challenger = Challenger.of(settings.challenger, settings.seed)
    return evaluated(data, challenger, settings.landmark_s, settings.trial_minutes / 60, settings.seed)


def evaluated(
    data: Data, challenger: Challenger, landmark_s: int, trial_h: float, seed: int
) -> dict[str, pl.DataFrame]:
    """All tables of the analysis. landmark_s: of those still running after so long; trial_h: hours of a trial."""
    origins = [tried(data, split, challenger) for split in temporal(data.jobs)]
    # The last that can be tested: else the last, which says why not.
    last = next((trial for trial in reversed(origins) if is_tested(data, trial)), origins[-1])
    savings = {trial.split.name: Savings(data, trial, trial_h) for trial in origins}
    at_once = tried(data, at_random(data.jobs, seed), challenger, with_hours=False)
    rows = [row for trial in origins for row in of_probability(data, trial, PROBABILITY, savings[trial.split.name])]
    rows += of_probability(data, at_once, PROBABILITY)
    rows += [row for trial in origins for row in of_hours(data, trial)]
    stay = still_running(data.jobs, landmark_s)
    for trial in origins:
        rows += of_probability(data, tried(data, trial.split, challenger, stay, with_hours=False), LANDMARK)
    matter = importance(data, last, seed)
    order = [row["feature"] for row in matter if row["how"] == PERMUTED]
    evaluation = EVALUATION.frame(row | {"unit": UNITS.get(row["metric"])} for row in rows)
    features, matter = FEATURES.frame(used_features(data, last)), IMPORTANCE.frame(matter)
    return {
        "risk_verdict": summarise_tests(evaluation, features, matter),
        "risk_evaluation": evaluation,
        "risk_calibration": CALIBRATION.frame(
            row for trial in (*origins, at_once) for row in of_calibration(data, trial)
        ),
        "risk_coefficients": COEFFICIENTS.frame(coefficients(data, last)),
        "risk_importance": matter,
        "risk_dependence": DEPENDENCE.frame(dependence(data, last, order)),
        "risk_decisions": DECISIONS.frame(savings[last.split.name].curve()),
        "risk_extrapolation": EXTRAPOLATION.frame(extrapolation(data, last)),
        "risk_features": features,
        "risk_jobs": TAKEN.frame(taken(data.jobs)),
    }


def taken(jobs: Population) -> Iterator[Mapping[str, Any]]:
    """Rows of risk_jobs."""
    ended, running = int(jobs.ended.sum()), int(jobs.running.sum())
    yield {"jobs_are": "ended", "jobs": ended, "part": "learnt from and tested on"}
    yield {"jobs_are": "running", "jobs": running, "part": "right-censored in hours"}
    yield {"jobs_are": "waiting", "jobs": len(jobs) - ended - running, "part": LEFT_OUT}
    for which, number in jobs.left_out.items():
        yield {"jobs_are": which, "jobs": number, "part": "of the history alone" if which == EARLIER else LEFT_OUT}


def used_features(data: Data, trial: Tried) -> Iterator[Mapping[str, Any]]:
    """Rows of risk_features."""
    model = trial.model
    for feature in data.features:
        learnt = model.encoder.learnt[feature.name] if isinstance(model, Model) else {}
        used = bool(learnt.get("numbers") or learnt.get("levels"))
        why = None if used else learnt.get("why") or (model if isinstance(model, str) else NO_FEATURES)
        yield {
            "feature": feature.name,
            "kind": feature.kind,
            "columns": ", ".join(feature.columns),
            "warm": feature.warm,
            "known": _known(data, feature),
            "used": used,
            "reason": why,
        }


def _known(data: Data, feature: Feature) -> int:
    if feature.kind == HISTORY:
        return int((data.known.ended[feature.name][:, -1] > 0).sum())
    if feature.name in data.known.codes:
        return int((data.known.codes[feature.name] >= 0).sum())
    return int((~np.isnan(data.known.numbers[feature.name])).sum())
