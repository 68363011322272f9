"""The numbers of drift: how many comparisons changed, and the largest change."""

import polars as pl

from ttf.analyses.quality.measure_drift import DRIFT, DRIFT_SUMMARY, SIGNIFICANCE
from ttf.display.metrics import cells

_IS_SIGNIFICANT = pl.col("p_adjusted_clustered") < SIGNIFICANCE
_COLUMNS = "window against column value statistic effect_name before after effect p_adjusted_clustered"
NUMBERS = [
    cells(DRIFT_SUMMARY, "drift"),
    cells(DRIFT, "drift.most", _COLUMNS, _IS_SIGNIFICANT, not_blank="before", take=1),
]
