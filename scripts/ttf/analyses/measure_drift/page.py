"""The table of what moved most."""

from collections.abc import Callable

import polars as pl

from ttf.analyses.measure_drift import DRIFT
from ttf.report.tables import html_table
from ttf.report.trace import Trace

_COLUMNS = (
    *("window", "against", "column", "value", "statistic"),
    *("before", "after", "n_before", "n_after", "effect"),
)


def tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    drift = trace.table("drift").filter((pl.col("p_adjusted") < 0.05) & pl.col("before").is_not_null()).head(15)
    return {"drift": html_table(drift, _COLUMNS, identifier("drift"), contract=DRIFT)} if drift.height else {}
