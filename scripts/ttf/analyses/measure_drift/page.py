from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import html_table
from ttf.report.trace import Trace

Identifier = Callable[[str], str]


def tables(trace: Trace, identifier: Identifier) -> dict[str, str]:
    found = {}
    drift = trace.table("drift").filter((pl.col("p_adjusted") < 0.05) & pl.col("before").is_not_null()).head(15)
    if drift.height:
        columns = {
            "window": ("Window", None),
            "against": ("Against", None),
            "column": ("Column", None),
            "value": ("Value", None),
            "statistic": ("What", None),
            "before": ("Before", words.number),
            "after": ("After", words.number),
            "n_before": ("n", words.count),
            "n_after": ("n", words.count),
            "effect": ("Effect", words.number),
        }
        found["drift"] = html_table(drift, columns, identifier("drift"))
    return found
