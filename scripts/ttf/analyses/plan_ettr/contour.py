"""Which failure rate a run can bear: contours of the expected ETTR over checkpoint interval and failure rate.

After figure 10 of Kokolis et al. (HPCA 2025). Model only: of the trace come the size of a node and the wait.
"""

from dataclasses import replace

import numpy as np
import polars as pl

from ttf.analyses.plan_ettr import ETTR_CONTOUR
from ttf.stats.ettr import ettr_renewal
from ttf.stats.mttf import SECONDS_A_DAY
from ttf.stats.plans import Habits, NodeRate, habit_columns

LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)
# From a minute to 17 hours, by factors of the square root of two.
INTERVALS_S = tuple(round(60 * 2 ** (step / 2)) for step in range(21))
# The scale at which the paper asks what a run has to bear.
LARGE_GPUS = 100_000
# Failures per second of the whole run: the rates looked at are between one in 300,000 years and ten a second.
_LOWEST, _HIGHEST = 1e-13, 10.0
_STEPS = 60
NEVER = "not reached even without failures"
NO_NODES = "the GPUs of a node are not known"


def ettr_contour(rate: NodeRate, habit: Habits, run_gpus: int) -> pl.DataFrame:
    """The highest failure rate of a node that leaves a run the ratio `ettr`: ETTR_CONTOUR.

    A row for `run_gpus` and LARGE_GPUS (nodes where the machines hold no GPUs), for each of LEVELS and INTERVALS_S, in
    this order; the interval of `habit` plays no part. By the exact renewal form, which falls with the rate; found by
    bisection to 12 digits. Blank, with a reason, where the writes, start-up and wait alone leave less.
    """
    levels, intervals = (grid.ravel() for grid in np.meshgrid(LEVELS, INTERVALS_S, indexing="ij"))
    bearable = _bearable(levels, intervals.astype(float), habit)
    rows = []
    for gpus, nodes in rate.sizes(sorted({run_gpus, LARGE_GPUS})):
        for level, interval, per_s in zip(levels.tolist(), intervals.tolist(), bearable.tolist(), strict=True):
            row = {"gpus": gpus, "nodes": nodes, "ettr": level} | habit_columns(replace(habit, interval_s=interval))
            if nodes is None or per_s != per_s:
                row["reason"] = NO_NODES if nodes is None else NEVER
            else:
                row["failures_per_1000_node_days"] = per_s * SECONDS_A_DAY * 1000 / nodes
            rows.append(row)
    return ETTR_CONTOUR.frame(rows)


def _bearable(levels: np.ndarray, intervals: np.ndarray, habit: Habits) -> np.ndarray:
    """Failures per second of the run at which the ratio is the level; NaN where it is below without any."""

    def ratio(per_s: np.ndarray) -> np.ndarray:
        return ettr_renewal(replace(habit, interval_s=intervals).plan(per_s))

    low, high = np.full_like(levels, np.log(_LOWEST)), np.full_like(levels, np.log(_HIGHEST))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        keeps = ratio(np.exp(middle)) >= levels
        low, high = np.where(keeps, middle, low), np.where(keeps, high, middle)
    return np.where(ratio(np.full_like(levels, _LOWEST)) >= levels, np.exp(low), np.nan)
