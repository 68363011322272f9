"""The table of measured job runs in the report."""

import polars as pl

from ttf.analyses.measure_ettr import ETTR_MEASURED
from ttf.report import words
from ttf.report.tables import Interval, Shown
from ttf.report.trace import Trace


def tables(trace: Trace) -> dict[str, Shown]:
    rows = trace.table("ettr_measured")
    low, high = (pl.col(name).map_elements(words.count, return_dtype=pl.String) for name in ("gpus_low", "gpus_high"))
    same = pl.col("gpus_low") == pl.col("gpus_high")
    rows = rows.with_columns(size=pl.when(same).then(high).otherwise(pl.format("{} to {}", low, high)))
    columns = {
        "size": ("GPUs", None),
        **dict.fromkeys(("runs", "attempts", "interruptions")),
        "ettr_mean": Interval(low="ci_low", high="ci_high"),
        **dict.fromkeys(("ettr_if_all_interrupted_mean", "expected_ettr")),
    }
    return {"ettr-measured": Shown(rows, columns, ETTR_MEASURED)}
