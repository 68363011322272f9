"""Numbers of the stages before the analyses."""

import polars as pl

from ttf.display.metrics import cells
from ttf.raw.raw_contracts import ANOMALIES
from ttf.records.record_contracts import RUNTIME_AGREEMENT, SIZE_UNIT

NUMBERS = [
    cells(ANOMALIES, "quality.worst", "table sentence rows share", sort="-rows", take=1),
    cells(RUNTIME_AGREEMENT, "agreement.{time}", "equal_share", pl.col("n") > 0),
    cells(SIZE_UNIT, "data", "size_unit=unit", n="jobs", used=True),
]
