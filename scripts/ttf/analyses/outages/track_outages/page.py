"""Words on the trend of faults, and the table of its tests."""

import polars as pl

from ttf.analyses.outages.track_outages import GROWTH
from ttf.display.fault_trend import TRENDS
from ttf.display.report_tables import Interval, PageTable
from ttf.display.report_trace import Trace, select_largest_strata
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

_KINDS = {"all": "All", "group": "By group", "level": "By level of cause"}


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if "growth.trend" in m:
        return []
    text = "[growth.n fault]: too few, or in too few weeks, for a trend"
    return [Line("Change of the rate of faults", text, "tables/growth.csv", checked=False)]


def tables(trace: Trace) -> dict[str, PageTable]:
    labelled_rows = select_largest_strata(trace.table("growth")).with_columns(
        pl.col("stratum_by").replace_strict(_KINDS), trend=pl.col("trend").replace_strict(TRENDS, default=None)
    )
    columns = {
        "stratum": ("Stratum", None),
        "n": None,
        "strata": None,
        "beta_within": Interval(low="beta_within_ci_low", high="beta_within_ci_high"),
        **{name: (GROWTH.columns[name].heading, words.plain_p_value) for name in ("homogeneity_p", "trend_p_adjusted")},
        "trend": ("Trend", None),
    }
    return {"growth": PageTable(labelled_rows, columns, GROWTH, "stratum_by")}
