"""The number of measured job runs, and their mean ratio next to the expected one."""

from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED_ALL
from ttf.display.metrics import cells

NUMBERS = [cells(ETTR_MEASURED_ALL, "ettr.measured")]
