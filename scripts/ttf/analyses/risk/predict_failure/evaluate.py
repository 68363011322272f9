"""What the trials are worth: measures with intervals that hold when users differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ttf.analyses.risk.predict_failure import HOURS, PROBABILITY
from ttf.analyses.risk.predict_failure.estimate_cells import Row, cells, interval
from ttf.analyses.risk.predict_failure.model_trials import ALL, BASE, BOOSTING, FEWEST, MODELS, Tried, at_risk, slices
from ttf.analyses.risk.predict_failure.savings import Savings
from ttf.analyses.shared.risk import LOGISTIC, NESTED
from ttf.analyses.shared.risk.features import Data
from ttf.stats.predictions import (
    Estimate,
    average_precision,
    brier,
    brier_parts,
    calibration,
    calibration_tenths,
    concordance,
    difference,
    log_loss,
    mean_ratio,
    median_factor_off,
    r2_log,
    roc_auc,
)

TOO_FEW = f"fewer than {FEWEST} test jobs"
OF_PREDICTIONS: dict[str, Callable[..., Estimate]] = {
    "pr_auc": average_precision,
    "roc_auc": roc_auc,
    "brier": brier,
    "log_loss": log_loss,
}
# Against which model a difference of PR-AUC is told: measure -> it.
AGAINST = {"pr_auc_above_base_rate": BASE, "pr_auc_above_nested_rate": NESTED, "pr_auc_above_logistic": LOGISTIC}
AFTER = {NESTED: ("pr_auc_above_base_rate",), LOGISTIC: tuple(AGAINST)[:2], BOOSTING: tuple(AGAINST)}


def of_probability(data: Data, trial: Tried, stage: str, savings: Savings | None = None) -> Iterator[Row]:
    """Rows of risk_evaluation for one trial: every model on every slice."""
    about = {"stage": stage, "split": trial.split.name}
    if isinstance(trial.model, str):
        for model in MODELS:
            why = trial.lacks[model]
            row = about | {"model": model, "slice": ALL, "metric": "pr_auc", "n": 0, "failures": 0, "reason": why}
            yield row | {"serves": False}
        return
    failed, cluster, by = data.jobs.failed[trial.rows], data.jobs.cluster[trial.rows], data.jobs.by
    for name, among in slices(data, trial):
        if stage != PROBABILITY and name != ALL:
            continue
        n, failures = (0, 0) if isinstance(among, str) else (int(among.sum()), int(failed[among].sum()))
        why = among if isinstance(among, str) else TOO_FEW if n < FEWEST else None
        for model in MODELS:
            row = about | {"model": model, "slice": name, "n": n, "failures": failures}
            row["serves"] = model == trial.model.kind
            if lacks := why or trial.lacks.get(model):
                yield row | {"metric": "pr_auc", "reason": lacks}
                continue
            part = {known: of[among] for known, of in trial.probability.items()}
            measures = _measures(model, part, failed[among], cluster[among], by, whole=name == ALL)
            yield from (row | found for found in measures)
            if savings and name == ALL:
                yield from (row | found for found in savings.rows(model))


def _measures(
    model: str, probability: dict[str, np.ndarray], failed: np.ndarray, cluster: np.ndarray, by: str | None, whole: bool
) -> Iterator[Row]:
    p = probability[model]
    for metric, measure in OF_PREDICTIONS.items():
        yield {"metric": metric} | cells(measure(failed, p, cluster, by))
    of_line = calibration(failed, p, cluster, by)
    yield {"metric": "calibration_slope"} | cells(of_line.slope)
    if not whole:
        return
    yield {"metric": "calibration_intercept"} | cells(of_line.intercept)
    parts = brier_parts(failed, p)
    for name in ("reliability", "resolution", "uncertainty", "within"):
        yield {"metric": f"brier_{name}", "estimate": getattr(parts, name), "reason": "a part of the Brier score"}
    for metric in AFTER.get(model, ()):
        if (other := probability.get(AGAINST[metric])) is not None:
            yield {"metric": metric} | cells(difference("average_precision", failed, p, other, cluster, by))


def of_hours(data: Data, trial: Tried) -> Iterator[Row]:
    """Rows of risk_evaluation for stage 2: hours until failure of the test jobs at risk."""
    about = {"stage": HOURS, "split": trial.split.name, "slice": ALL}
    found = at_risk(data, trial)
    for model in (BASE, "lognormal"):
        row = about | {"model": model, "serves": model != BASE}
        if isinstance(found, str):
            yield row | {"metric": "median_factor_off", "n": 0, "failures": 0, "reason": found}
            continue
        seen = np.isfinite(found.hours)
        told = found.failed & seen
        cluster, by = data.jobs.cluster[found.rows], data.jobs.by
        median = found.median if model != BASE else np.full(len(found.rows), found.one)
        expected = found.expected if model != BASE else np.full(len(found.rows), found.one_expected)
        row["failures"] = int(told.sum())
        if told.sum() < FEWEST:
            yield row | {"metric": "median_factor_off", "n": int(told.sum()), "reason": TOO_FEW}
            continue
        # Those that ended otherwise are no failures to come: the others are censored where they were seen last.
        pairs = told | (data.jobs.running[found.rows] & seen)
        # Of a failure whose time nobody wrote the GPU time is not known either.
        ended = ~data.jobs.running[found.rows] & (~found.failed | seen)
        gpus = data.jobs.gpus[found.rows][ended]
        staked = found.probability[ended] * gpus * expected[ended]
        lost = np.where(found.failed[ended], gpus * np.nan_to_num(found.hours[ended]), 0)
        measured = {
            "median_factor_off": median_factor_off(median[told], found.hours[told], cluster[told], by),
            "concordance": concordance(found.hours[pairs], found.failed[pairs], median[pairs], cluster[pairs], by),
            "r2_log": r2_log(median[told], found.hours[told], cluster[told], by),
            "gpu_hours_predicted_over_seen": mean_ratio(staked, lost, cluster[ended], by),
        }
        yield from (row | {"metric": metric} | cells(estimate) for metric, estimate in measured.items())


def of_calibration(data: Data, trial: Tried) -> Iterator[Row]:
    """Rows of risk_calibration: the tenths of the test jobs, by model."""
    if isinstance(trial.model, str) or len(trial.rows) < FEWEST:
        return
    jobs = data.jobs
    for model in (NESTED, LOGISTIC, BOOSTING):
        if model not in trial.probability:
            continue
        p = trial.probability[model]
        for tenth in calibration_tenths(jobs.failed[trial.rows], p, jobs.cluster[trial.rows], jobs.by):
            yield {
                "model": model,
                "split": trial.split.name,
                "tenth": tenth.number,
                "failures": tenth.failures,
                "predicted": tenth.predicted,
                "observed": tenth.observed.estimate,
                "n": tenth.observed.n,
            } | interval(tenth.observed)
