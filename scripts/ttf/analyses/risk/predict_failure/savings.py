"""Compute what acting on a score would save, if jobs at risk were tried on one GPU first.

A job of more than one GPU that fails within the trial would have failed there, and its other GPUs are saved; every
other job pays one GPU for the trial, or for its run time if that is shorter (as
`ttf.analyses.lost.measure_losses.what_if` does for all jobs). This is an upper bound: it assumes that each failure
shows on one GPU too, at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ttf.analyses.risk.predict_failure.estimate_cells import cells, interval_cells
from ttf.analyses.risk.predict_failure.model_trials import Trial
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.model import Model
from ttf.stats.predictions import mean_ratio, total

NO_LARGE = "no test job has more than one GPU"
NO_HOURS = "hours until failure cannot be predicted"
METRICS = ("gpu_hours_saved", "gpu_hours_saved_over_cost", "gpu_hours_saved_of_oracle")
POINTS = 40
ORACLE, EVERYONE = "oracle", "everyone"


class Savings:
    """Savings on the test jobs of a trial; trial_h: hours that a job is tried on one GPU.

    The expected saving in GPU-hours is P F(t) (g - 1) E[T | T < t] - (1 - P F(t)) t. P is the probability of failure,
    F(t) that a failure comes within the trial of t hours, T its time and g the number of GPUs. A job is tried if the
    saving is above 0.
    """

    def __init__(self, data: Data, trial: Trial, trial_h: float) -> None:
        self._trial, jobs = trial, data.jobs
        model = trial.model
        self.missing = model if isinstance(model, str) else NO_HOURS if model.hours is None else None
        self._is_large = jobs.gpus[trial.rows] > 1
        if not self.missing and not self._is_large.any():
            self.missing = NO_LARGE
        if self.missing:
            return
        assert isinstance(model, Model) and model.hours is not None and trial.design is not None
        self._serving_kind = model.kind
        rows = trial.rows[self._is_large]
        self._cluster, self._cluster_by = jobs.cluster[rows], jobs.cluster_by
        design = trial.design.take(self._is_large)
        gpus, hours = jobs.gpus[rows], jobs.hours[rows]
        # A run of unknown length pays for the whole trial.
        seen_h = np.where(np.isfinite(hours), hours, np.inf)
        self.is_caught = jobs.failed[rows] & (seen_h <= trial_h)
        self.saved_h = np.where(self.is_caught, (gpus - 1) * np.where(self.is_caught, seen_h, 0), 0.0)
        self.cost_h = np.where(self.is_caught, 0.0, np.minimum(seen_h, trial_h))
        p_within, mean_h = model.hours.probability_within(design, trial_h), model.hours.mean(design, trial_h)
        spent_h = mean_h - trial_h * (1 - p_within)
        self._expected_saving = lambda p: p * (gpus - 1) * spent_h - (1 - p * p_within) * trial_h

    def _expected_savings(self, model: str) -> np.ndarray:
        """Return the expected saving, in GPU-hours, of trying each test job of more than one GPU, by a model."""
        return self._expected_saving(self._trial.probability[model][self._is_large])

    def metric_rows(self, model: str) -> Iterator[dict[str, Any]]:
        """Yield cells of risk_evaluation: GPU-hours saved by a model, over their cost and over the oracle's saving."""
        if self.missing:
            yield from ({"metric": metric, "reason": self.missing} for metric in METRICS)
            return
        is_tried = self._expected_savings(model) > 0
        saved_h, cost_h = (np.where(is_tried, hours, 0.0) for hours in (self.saved_h, self.cost_h))
        estimates = (
            total(saved_h - cost_h, self._cluster, self._cluster_by),
            mean_ratio(saved_h, cost_h, self._cluster, self._cluster_by),
            mean_ratio(saved_h - cost_h, self.saved_h, self._cluster, self._cluster_by),
        )
        for metric, estimate in zip(METRICS, estimates, strict=True):
            yield {"metric": metric} | cells(estimate) | {"failures": int(self.is_caught.sum())}

    def curve_rows(self) -> Iterator[dict[str, Any]]:
        """Yield rows of risk_decisions by number of jobs tried, the highest expected saving first."""
        if self.missing:
            return
        for model in self._trial.probability:
            savings = self._expected_savings(model)
            yield from self._iterate_curve_rows(model, savings, int((savings > 0).sum()))
        yield from self._iterate_curve_rows(ORACLE, self.saved_h, int(self.is_caught.sum()))
        yield self._curve_row(EVERYONE, np.arange(len(self.saved_h)), True)

    def _iterate_curve_rows(self, model: str, savings: np.ndarray, n_chosen: int) -> Iterator[dict[str, Any]]:
        """Yield curve rows as ever more jobs are tried, in the order of `savings`; n_chosen: jobs worth trying."""
        order, n = np.argsort(-savings, kind="stable"), len(savings)
        steps = {round(n * step / POINTS) for step in range(POINTS + 1)}
        for n_flagged in sorted(steps | {n_chosen}):
            yield self._curve_row(model, order[:n_flagged], n_flagged == n_chosen)

    def _curve_row(self, model: str, rows: np.ndarray, is_chosen: bool) -> dict[str, Any]:
        """Return the row of risk_decisions for trying the jobs `rows`; is_chosen: those with a positive saving."""
        saved_h, cost_h = float(self.saved_h[rows].sum()), float(self.cost_h[rows].sum())
        net_h = np.zeros(len(self.saved_h))
        net_h[rows] = (self.saved_h - self.cost_h)[rows]
        return {
            "model": model,
            "serves": model == self._serving_kind,
            "n": len(self.saved_h),
            "flagged": len(rows),
            "flagged_share": len(rows) / len(self.saved_h),
            "chosen": is_chosen,
            "caught": int(self.is_caught[rows].sum()),
            "net_gpu_hours": saved_h - cost_h,
        } | interval_cells(total(net_h, self._cluster, self._cluster_by))
