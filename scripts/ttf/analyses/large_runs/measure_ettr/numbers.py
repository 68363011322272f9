"""The number of measured job runs, and their mean ratio next to the expected one; the same at the target size."""

from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED_ALL, ETTR_MEASURED_TARGET
from ttf.display.metrics import cells

NUMBERS = [
    cells(ETTR_MEASURED_ALL, "ettr.measured"),
    cells(ETTR_MEASURED_TARGET, "ettr.measured_target"),
]
