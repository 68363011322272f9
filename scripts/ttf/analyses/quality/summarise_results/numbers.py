"""Numbers of raw tables, the range of the mean time to failure, lost time, and what would save it."""

from ttf.analyses.quality.summarise_results import ACTIONS, FAILED_TIME, MTTF_RANGE, QUALITY_SUMMARY
from ttf.display.metrics import cells

_COLUMNS = "anomalies rows_concerned suggestions rows_suggested tables columns columns_stored columns_blank"

NUMBERS = [
    cells(QUALITY_SUMMARY, "data", "rows_read rows_accepted rows_quarantined"),
    cells(QUALITY_SUMMARY, "quality", f"quarantined_share {_COLUMNS}"),
    cells(MTTF_RANGE, "mttf.range", "low_s high_s why"),
    cells(FAILED_TIME, "failed_time.{part}", "gpu_hours share cost"),
    cells(FAILED_TIME, "failed_time", "currency", part="all"),
    cells(ACTIONS, "actions.{action}", "gpu_hours share cost above_gpus failures ended lost group_by group expected"),
]
