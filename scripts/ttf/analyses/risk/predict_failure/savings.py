"""What acting on a score would save: jobs at risk are tried on one GPU first.

A job of more than one GPU that fails within the trial would have failed there, and its other GPUs are saved; every
other job pays one GPU for the trial, or for its run time if that is shorter (as
`ttf.analyses.lost.measure_losses.what_if` takes it for all jobs). An upper bound: it takes for granted that a failure
shows on one GPU, at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ttf.analyses.risk.predict_failure.estimate_cells import cells, interval
from ttf.analyses.risk.predict_failure.model_trials import Tried
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.model import Model
from ttf.stats.predictions import Estimate, mean_ratio, total

NO_LARGE = "no test job has more than one GPU"
NO_HOURS = "hours until failure cannot be predicted"
POINTS = 40
ORACLE, EVERYONE = "oracle", "everyone"


class Savings:
    """Of the test jobs of a trial; trial_h: how long one is tried.

    The expected saving of a job is P F(t) (g - 1) E[T | T < t] - (1 - P F(t)) t in GPU-hours: P that it fails, F(t)
    that a failure comes within the trial of t hours, T its time, g its GPUs. It is tried where that is above 0.
    """

    def __init__(self, data: Data, trial: Tried, trial_h: float) -> None:
        self._trial, jobs = trial, data.jobs
        model = trial.model
        self.lacks = model if isinstance(model, str) else NO_HOURS if model.hours is None else None
        self._large = jobs.gpus[trial.rows] > 1
        if not self.lacks and not self._large.any():
            self.lacks = NO_LARGE
        if self.lacks:
            return
        assert isinstance(model, Model) and model.hours is not None
        self._served = model.kind
        rows = trial.rows[self._large]
        self._cluster, self._by = jobs.cluster[rows], jobs.by
        design = trial.design.take(self._large)
        gpus, hours = jobs.gpus[rows], jobs.hours[rows]
        # A run of unknown length pays for the whole trial.
        seen = np.where(np.isfinite(hours), hours, np.inf)
        self.caught = jobs.failed[rows] & (seen <= trial_h)
        self.saved = np.where(self.caught, (gpus - 1) * np.where(self.caught, seen, 0), 0.0)
        self.cost = np.where(self.caught, 0.0, np.minimum(seen, trial_h))
        within, until = model.hours.within(design, trial_h), model.hours.expected(design, trial_h)
        spent = until - trial_h * (1 - within)
        self._gain = lambda p: p * (gpus - 1) * spent - (1 - p * within) * trial_h

    @property
    def oracle(self) -> float:
        """What would be saved were it known who fails within the trial."""
        return float(self.saved.sum())

    def _expected(self, model: str) -> np.ndarray:
        return self._gain(self._trial.probability[model][self._large])

    def rows(self, model: str) -> Iterator[dict[str, Any]]:
        """Cells of risk_evaluation."""
        for metric in ("gpu_hours_saved", "gpu_hours_saved_over_cost", "gpu_hours_saved_of_oracle"):
            yield {"metric": metric} | self._measured(model, metric)

    def _measured(self, model: str, metric: str) -> dict[str, Any]:
        if self.lacks:
            return {"reason": self.lacks}
        is_tried = self._expected(model) > 0
        saved, cost = (np.where(is_tried, hours, 0.0) for hours in (self.saved, self.cost))
        if metric == "gpu_hours_saved":
            found: Estimate = total(saved - cost, self._cluster, self._by)
        elif metric == "gpu_hours_saved_over_cost":
            found = mean_ratio(saved, cost, self._cluster, self._by)
        else:
            found = mean_ratio(saved - cost, self.saved, self._cluster, self._by)
        return cells(found) | {"failures": int(self.caught.sum())}

    def curve(self) -> Iterator[dict[str, Any]]:
        """Rows of risk_decisions: by how many jobs are tried, those of the highest expected saving first."""
        if self.lacks:
            return
        for model in self._trial.probability:
            expected = self._expected(model)
            yield from self._of_order(model, expected, int((expected > 0).sum()))
        yield from self._of_order(ORACLE, self.saved, int(self.caught.sum()))
        yield self._row(EVERYONE, np.arange(len(self.saved)), True)

    def _of_order(self, model: str, expected: np.ndarray, chosen: int) -> Iterator[dict[str, Any]]:
        order, n = np.argsort(-expected, kind="stable"), len(expected)
        steps = {round(n * step / POINTS) for step in range(POINTS + 1)}
        for flagged in sorted(steps | {chosen}):
            yield self._row(model, order[:flagged], flagged == chosen)

    def _row(self, model: str, which: np.ndarray, chosen: bool) -> dict[str, Any]:
        saved, cost = float(self.saved[which].sum()), float(self.cost[which].sum())
        net = np.zeros(len(self.saved))
        net[which] = (self.saved - self.cost)[which]
        flagged = {"model": model, "serves": model == self._served, "n": len(self.saved), "flagged": len(which)}
        return (
            flagged
            | {
                "flagged_share": len(which) / len(self.saved),
                "chosen": chosen,
                "caught": int(self.caught[which].sum()),
                "saved_gpu_hours": saved,
                "cost_gpu_hours": cost,
                "net_gpu_hours": saved - cost,
                "share_of_oracle": (saved - cost) / self.oracle if self.oracle else None,
            }
            | interval(total(net, self._cluster, self._by))
        )
