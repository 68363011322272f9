"""How many job runs were measured, and their mean ratio beside the expected one."""

from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED_ALL
from ttf.display.metrics import cells

NUMBERS = [cells(ETTR_MEASURED_ALL, "ettr.measured")]
