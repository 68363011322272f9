"""The table of the largest changes."""

import polars as pl

from ttf.analyses.quality.measure_drift import DRIFT, SIGNIFICANCE
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace

_COLUMNS = (
    *("window", "against", "column", "value", "statistic"),
    *("before", "after", "n_before", "n_after", "effect"),
)


def tables(trace: Trace) -> dict[str, PageTable]:
    is_significant = pl.col("p_adjusted_clustered") < SIGNIFICANCE
    drift = trace.table("drift").filter(is_significant & pl.col("before").is_not_null()).head(15)
    return {"drift": PageTable(drift, _COLUMNS, DRIFT)}
