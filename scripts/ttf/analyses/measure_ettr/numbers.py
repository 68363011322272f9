"""How many job runs were measured, and their mean ratio beside the expected one."""

from ttf.analyses.measure_ettr import ETTR_MEASURED_ALL
from ttf.numbers.metrics import cells

NUMBERS = [cells(ETTR_MEASURED_ALL, "ettr.measured")]
