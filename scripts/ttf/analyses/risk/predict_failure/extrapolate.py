"""Test the score outside its training data: train without the largest jobs, or without the newest GPU type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ttf.analyses.risk.predict_failure.estimate_cells import Row, cells
from ttf.analyses.risk.predict_failure.evaluate import MEASURES
from ttf.analyses.risk.predict_failure.model_trials import FEWEST, Trial
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.model import TrainingData, train_model
from ttf.stats.predictions import calibration, difference, estimate_score

# The largest jobs have more GPUs than this share of the jobs.
LARGEST = 0.9
WITHOUT_KIND, WITH_KIND, DIFFERENCE = "without", "with", "difference"
METRICS = ("pr_auc", "roc_auc", "log_loss")


def extrapolation_rows(data: Data, trial: Trial) -> Iterator[Row]:
    """Yield rows of risk_extrapolation: models trained with and without a kind of jobs, tested on that kind."""
    for held_out, (value, is_held_out, reason) in {
        "largest_jobs": select_largest(data, trial),
        "newest_gpu_type": select_newest_type(data),
    }.items():
        row: Row = {"held_out": held_out, "value": value}
        if is_held_out is None or isinstance(trial.model, str):
            row |= {"trained": WITHOUT_KIND, "metric": "pr_auc", "n": 0, "failures": 0}
            yield row | {"reason": reason or trial.model}
            continue
        yield from (row | measure for measure in _compare_trainings(data, trial, trial.model.kind, is_held_out))


def select_largest(data: Data, trial: Trial) -> tuple[str | None, np.ndarray | None, str | None]:
    """Return (limit on GPUs, mask of jobs above it, reason if there are none)."""
    gpus = data.jobs.gpus
    training_gpus = gpus[trial.split.learn]
    training_gpus = training_gpus[training_gpus > 0]
    if not len(training_gpus):
        return None, None, "no job asks for GPUs"
    limit = float(np.quantile(training_gpus, LARGEST, method="lower"))
    is_held_out = gpus > limit
    if not (is_held_out & trial.split.learn).any():
        return f"{limit:g}", None, "the largest size is that of most jobs"
    return f"{limit:g}", is_held_out, None


def select_newest_type(data: Data) -> tuple[str | None, np.ndarray | None, str | None]:
    """Return (GPU type that appeared last, mask of its jobs, reason if there is none)."""
    codes = data.jobs.codes("gpu_type")
    if codes is None:
        return None, None, "the trace names no GPU types"
    first_row_by_code = {int(code): int(np.flatnonzero(codes == code)[0]) for code in np.unique(codes[codes > 0])}
    if len(first_row_by_code) < 2:
        return None, None, "there is one GPU type only"
    code = max(first_row_by_code, key=lambda candidate: (first_row_by_code[candidate], candidate))
    return data.jobs.jobs["gpu_type"].cast(pl.String)[first_row_by_code[code]], codes == code, None


def _compare_trainings(data: Data, trial: Trial, kind: str, is_held_out: np.ndarray) -> Iterator[Row]:
    """Yield measures on the held-out jobs: trained without them, trained with them, and the difference."""
    jobs, split = data.jobs, trial.split
    rows = trial.rows[is_held_out[trial.rows]]
    failed, cluster, cluster_by = jobs.failed[rows], jobs.cluster[rows], jobs.cluster_by
    labels = {"n": len(rows), "failures": int(failed.sum())}
    if len(rows) < FEWEST:
        reason = f"fewer than {FEWEST} test jobs of that kind"
        yield labels | {"trained": WITHOUT_KIND, "metric": "pr_auc", "reason": reason}
        return
    is_training, is_calibration = split.learn & ~is_held_out, split.recalibrate & ~is_held_out
    training = TrainingData.select(
        jobs, data.job_features, is_training, is_calibration, split.until_s, with_hours=False
    )
    other_model = train_model(training, data.features, kind=kind)
    if isinstance(other_model, str):
        yield labels | {"trained": WITHOUT_KIND, "metric": "pr_auc", "reason": other_model}
        return
    p_without = other_model.probability(other_model.encoder.design(data.job_features, rows))
    p_with = trial.probability[kind][is_held_out[trial.rows]]
    for label, p in ((WITHOUT_KIND, p_without), (WITH_KIND, p_with)):
        for metric in METRICS:
            measure = cells(estimate_score(MEASURES[metric], failed, p, cluster, cluster_by))
            yield labels | {"trained": label, "metric": metric} | measure
        slope = cells(calibration(failed, p, cluster, cluster_by).slope)
        yield labels | {"trained": label, "metric": "calibration_slope"} | slope
    change = cells(difference("average_precision", failed, p_with, [p_without], cluster, cluster_by))
    yield labels | {"trained": DIFFERENCE, "metric": "pr_auc"} | change
