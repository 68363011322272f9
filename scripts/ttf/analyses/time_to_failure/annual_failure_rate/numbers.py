"""Numbers of the annual failure rate: all drives, and the models with the lowest and highest rate."""

import polars as pl

from ttf.analyses.time_to_failure.annual_failure_rate import AFR
from ttf.display.metrics import CI, FEWEST_FAILURES, cells

_RATE = f"failures afr {CI}"
_HAS_ENOUGH = pl.col("failures") >= FEWEST_FAILURES

NUMBERS = [
    cells(AFR, "afr", f"drives drive_days models without_failure {_RATE}", n="drives", stratum_by="all"),
    cells(
        AFR,
        "afr",
        f"model=stratum {_RATE}",
        _HAS_ENOUGH,
        pl.col("stratum_by") != "all",
        n="drives",
        sort="afr stratum",
        ends="lowest highest",
    ),
]
