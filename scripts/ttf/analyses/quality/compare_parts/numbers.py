"""Numbers of the changes, by measure and in total, and of the forecast of the next week."""

import polars as pl

from ttf.analyses.quality.compare_parts import CHANGES, CHANGES_SUMMARY, FORECAST
from ttf.display.metrics import cells

_IS_NEXT, _CHANGE, _WEEK = pl.col("observed").is_null(), "changes.{measure}", "forecast.{what}"
NUMBERS = [
    cells(CHANGES, _CHANGE, "before after difference low=ci_low high=ci_high", unit_by="unit"),
    cells(CHANGES, _CHANGE, "n_before n_after", unit_by="n_of"),
    cells(CHANGES, _CHANGE, "gpu_hours_before=amount_before gpu_hours_after=amount_after"),
    cells(CHANGES, _CHANGE, "verdict p_value p_adjusted detectable_ratio follow_up_s reason"),
    cells(CHANGES, "changes", "part parts_before", take=1),
    cells(CHANGES, "changes", "cluster_by", not_blank="cluster_by", take=1),
    cells(CHANGES_SUMMARY, "changes"),
    cells(FORECAST, _WEEK, "expected low high", _IS_NEXT, n="weeks_before"),
    cells(FORECAST, _WEEK, "tried held=held_of_tried", _IS_NEXT),
    cells(FORECAST, _WEEK, "reason", _IS_NEXT, pl.col("high").is_null()),
]
