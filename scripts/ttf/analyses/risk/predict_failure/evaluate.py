"""Measure how well the trials predict, with clustered intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ttf.analyses.risk.predict_failure import HOURS, PROBABILITY
from ttf.analyses.risk.predict_failure.estimate_cells import Row, cells, interval_cells
from ttf.analyses.risk.predict_failure.model_trials import (
    ALL,
    BASE,
    FEWEST,
    MODELS,
    Trial,
    select_at_risk,
    slices,
)
from ttf.analyses.risk.predict_failure.savings import Savings
from ttf.analyses.shared.risk import LOGISTIC, NESTED
from ttf.analyses.shared.risk.features import Data
from ttf.stats.predictions import (
    brier_parts,
    calibration,
    calibration_tenths,
    concordance,
    difference,
    estimate_score,
    mean_ratio,
    median_factor_off,
    r2_log,
)

TOO_FEW = f"fewer than {FEWEST} test jobs"
# Metric -> its score.
MEASURES = {"pr_auc": "average_precision", "roc_auc": "roc_auc", "brier": "brier", "log_loss": "log_loss"}
# The model that PR-AUC is compared with, by metric; and the metrics of each model.
BASELINES = {"pr_auc_above_base_rate": BASE, "pr_auc_above_nested_rate": NESTED}
DIFFERENCES = {NESTED: ("pr_auc_above_base_rate",), LOGISTIC: tuple(BASELINES)}


def evaluate_probability(data: Data, trial: Trial, stage: str, savings: Savings | None = None) -> Iterator[Row]:
    """Yield rows of risk_evaluation for a trial: each model on each slice of the test jobs, and what it saves."""
    labels = {"stage": stage, "split": trial.split.name}
    if isinstance(trial.model, str):
        for model in MODELS:
            row = labels | {"model": model, "slice": ALL, "metric": "pr_auc", "n": 0, "failures": 0}
            yield row | {"reason": trial.missing[model], "serves": False}
        return
    failed, cluster, cluster_by = data.jobs.failed[trial.rows], data.jobs.cluster[trial.rows], data.jobs.cluster_by
    for name, mask in slices(data, trial):
        if stage != PROBABILITY and name != ALL:
            break
        n, failures = (0, 0) if isinstance(mask, str) else (int(mask.sum()), int(failed[mask].sum()))
        reason = mask if isinstance(mask, str) else TOO_FEW if n < FEWEST else None
        for model in MODELS:
            row = labels | {"model": model, "slice": name, "n": n, "failures": failures}
            row["serves"] = model == trial.model.kind
            if missing_reason := reason or trial.missing.get(model):
                yield row | {"metric": "pr_auc", "reason": missing_reason}
                continue
            p_by_model = {kind: p[mask] for kind, p in trial.probability.items()}
            measures = _measure_rows(model, p_by_model, failed[mask], cluster[mask], cluster_by, is_whole=name == ALL)
            yield from (row | measure for measure in measures)
            if savings and name == ALL:
                yield from (row | measure for measure in savings.metric_rows(model))


def _measure_rows(
    model: str, p_by_model: dict, failed: np.ndarray, cluster: np.ndarray, cluster_by: str | None, is_whole: bool
) -> Iterator[Row]:
    """Yield a model's measures on a slice; of all test jobs (is_whole) also Brier's parts and PR-AUC differences."""
    p = p_by_model[model]
    for metric, score in MEASURES.items():
        yield {"metric": metric} | cells(estimate_score(score, failed, p, cluster, cluster_by))
    recalibration = calibration(failed, p, cluster, cluster_by)
    yield {"metric": "calibration_slope"} | cells(recalibration.slope)
    if not is_whole:
        return
    yield {"metric": "calibration_intercept"} | cells(recalibration.intercept)
    parts = brier_parts(failed, p)
    for name in ("reliability", "resolution", "uncertainty", "within_tenths"):
        yield {"metric": f"brier_{name}", "estimate": getattr(parts, name), "reason": "a part of the Brier score"}
    for metric in DIFFERENCES.get(model, ()):
        if (baseline := p_by_model.get(BASELINES[metric])) is not None:
            change = difference("average_precision", failed, p, [baseline], cluster, cluster_by)
            yield {"metric": metric} | cells(change)


def evaluate_hours(data: Data, trial: Trial) -> Iterator[Row]:
    """Yield rows of risk_evaluation for stage 2: hours until failure of the test jobs at risk."""
    labels = {"stage": HOURS, "split": trial.split.name, "slice": ALL}
    cohort = select_at_risk(data, trial)
    for model in (BASE, "lognormal"):
        row = labels | {"model": model, "serves": model != BASE}
        if isinstance(cohort, str):
            yield row | {"metric": "median_factor_off", "n": 0, "failures": 0, "reason": cohort}
            continue
        is_known = np.isfinite(cohort.hours)
        is_event = cohort.failed & is_known
        cluster, cluster_by = data.jobs.cluster[cohort.rows], data.jobs.cluster_by
        median_h = cohort.median if model != BASE else np.full(len(cohort.rows), cohort.base_median)
        mean_h = cohort.mean if model != BASE else np.full(len(cohort.rows), cohort.base_mean)
        row["failures"] = int(is_event.sum())
        if is_event.sum() < FEWEST:
            yield row | {"metric": "median_factor_off", "n": int(is_event.sum()), "reason": TOO_FEW}
            continue
        # Running jobs are censored where they were last seen; other ends are no failures, so they are excluded.
        is_seen = is_event | (data.jobs.running[cohort.rows] & is_known)
        # A failure without a recorded time has no known GPU time.
        ended = ~data.jobs.running[cohort.rows] & (~cohort.failed | is_known)
        gpus = data.jobs.gpus[cohort.rows][ended]
        predicted = cohort.probability[ended] * gpus * mean_h[ended]
        observed = np.where(cohort.failed[ended], gpus * np.nan_to_num(cohort.hours[ended]), 0)
        events = (median_h[is_event], cohort.hours[is_event], cluster[is_event])
        pairs = (cohort.hours[is_seen], cohort.failed[is_seen], median_h[is_seen], cluster[is_seen])
        estimates = {
            "median_factor_off": median_factor_off(*events, cluster_by),
            "concordance": concordance(*pairs, cluster_by),
            "r2_log": r2_log(*events, cluster_by),
            "gpu_hours_predicted_over_seen": mean_ratio(predicted, observed, cluster[ended], cluster_by),
        }
        yield from (row | {"metric": metric} | cells(estimate) for metric, estimate in estimates.items())


def evaluate_calibration(data: Data, trial: Trial) -> Iterator[Row]:
    """Yield rows of risk_calibration: the tenths of the test jobs, by model."""
    if isinstance(trial.model, str) or len(trial.rows) < FEWEST:
        return
    jobs = data.jobs
    for model in (NESTED, LOGISTIC):
        if model not in trial.probability:
            continue
        p = trial.probability[model]
        for tenth in calibration_tenths(jobs.failed[trial.rows], p, jobs.cluster[trial.rows], jobs.cluster_by):
            yield {
                "model": model,
                "split": trial.split.name,
                "tenth": tenth.number,
                "failures": tenth.failures,
                "predicted": tenth.predicted,
                "observed": tenth.observed.estimate,
                "n": tenth.observed.n,
            } | interval_cells(tenth.observed)
