"""The numbers of drift: how many comparisons moved, and the one that moved most."""

import polars as pl

from ttf.analyses.quality.measure_drift import DRIFT, DRIFT_SUMMARY, SIGNIFICANCE
from ttf.display.metrics import cells

_MOVED = pl.col("p_adjusted_clustered") < SIGNIFICANCE
_MOST = "window against column value statistic effect_name before after effect p_adjusted_clustered"
NUMBERS = [
    cells(DRIFT_SUMMARY, "drift"),
    cells(DRIFT, "drift.most", _MOST, _MOVED, not_blank="before", take=1),
]
