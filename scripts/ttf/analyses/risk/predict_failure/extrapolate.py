"""What the score is worth beyond what it was trained on: the largest jobs, or the newest GPU type, left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ttf.analyses.risk.predict_failure.estimate_cells import Row, cells
from ttf.analyses.risk.predict_failure.evaluate import OF_PREDICTIONS
from ttf.analyses.risk.predict_failure.model_trials import FEWEST, Tried
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.model import Lesson, trained
from ttf.stats.predictions import calibration, difference

# The largest jobs are those of more GPUs than this share of the jobs have.
LARGEST = 0.9
WITHOUT, WITH, DIFFERENCE = "without", "with", "difference"
MEASURED = ("pr_auc", "roc_auc", "log_loss")


def extrapolation(data: Data, trial: Tried) -> Iterator[Row]:
    """Rows of risk_extrapolation: both models tested on the same jobs of that kind, in the tests of a trial."""
    for held_out, (value, held, why) in {
        "largest_jobs": largest(data, trial),
        "newest_gpu_type": newest(data),
    }.items():
        row = {"held_out": held_out, "value": value}
        if held is None or isinstance(trial.model, str):
            why = why or trial.model
            yield row | {"trained": WITHOUT, "metric": "pr_auc", "n": 0, "failures": 0, "reason": why}
            continue
        yield from (row | found for found in _compared(data, trial, held))


def largest(data: Data, trial: Tried) -> tuple[str | None, np.ndarray | None, str | None]:
    """(more than how many GPUs, which jobs, why none)."""
    gpus = data.jobs.gpus
    learnt = gpus[trial.split.learn]
    learnt = learnt[learnt > 0]
    if not len(learnt):
        return None, None, "no job asks for GPUs"
    limit = float(np.quantile(learnt, LARGEST, method="lower"))
    held = gpus > limit
    if not (held & trial.split.learn).any():
        return f"{limit:g}", None, "the largest size is that of most jobs"
    return f"{limit:g}", held, None


def newest(data: Data) -> tuple[str | None, np.ndarray | None, str | None]:
    """(the GPU type that came last, which jobs, why none)."""
    codes = data.jobs.codes("gpu_type")
    if codes is None:
        return None, None, "the trace names no GPU types"
    first = {int(code): int(np.flatnonzero(codes == code)[0]) for code in np.unique(codes[codes > 0])}
    if len(first) < 2:
        return None, None, "there is one GPU type only"
    code = max(first, key=lambda one: (first[one], one))
    name = data.jobs.jobs["gpu_type"].cast(pl.String)[first[code]]
    return name, codes == code, None


def _compared(data: Data, trial: Tried, held: np.ndarray) -> Iterator[Row]:
    jobs, split = data.jobs, trial.split
    rows = trial.rows[held[trial.rows]]
    failed, cluster, by = jobs.failed[rows], jobs.cluster[rows], jobs.by
    about = {"n": len(rows), "failures": int(failed.sum())}
    if len(rows) < FEWEST:
        why = f"fewer than {FEWEST} test jobs of that kind"
        yield about | {"trained": WITHOUT, "metric": "pr_auc", "reason": why}
        return
    kind, learn, again = trial.model.kind, split.learn & ~held, split.recalibrate & ~held
    lesson = Lesson.of(jobs, data.known, learn, again, split.until_s, with_hours=False)
    other = trained(lesson, data.features, kind=kind)
    if isinstance(other, str):
        yield about | {"trained": WITHOUT, "metric": "pr_auc", "reason": other}
        return
    without = other.probability(other.encoder.design(data.known.take(rows)))
    among = held[trial.rows]
    full = trial.probability[kind][among]
    for training, p in ((WITHOUT, without), (WITH, full)):
        for metric in MEASURED:
            found = cells(OF_PREDICTIONS[metric](failed, p, cluster, by))
            yield about | {"trained": training, "metric": metric} | found
        slope = cells(calibration(failed, p, cluster, by).slope)
        yield about | {"trained": training, "metric": "calibration_slope"} | slope
    lost = cells(difference("average_precision", failed, full, without, cluster, by))
    yield about | {"trained": DIFFERENCE, "metric": "pr_auc"} | lost
