"""Page lines and table of failures near outages and of the effects of outages."""

import polars as pl

from ttf.analyses.outages.match_outages import OUTAGE_MATCHES
from ttf.display.report_tables import CLUSTERED, Column, PageTable, format_rows
from ttf.display.report_trace import Trace
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

LABELS = {
    "failure_near_outage": "Failures near an outage of a node",
    "job_failed": "Outages with an infrastructure failure of a job",
    "job_ended": "Outages with another end of a job",
    "job_ran_on": "Outages during which jobs continued",
    "no_job": "Outages of a node that ran no job",
}


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if "outage_matches.failures.n" in m:
        return []
    text = "no failure of a job on an observed node"
    return [Line("Failures near outages", text, "tables/outage_matches.csv", checked=False)]


def tables(trace: Trace) -> dict[str, PageTable]:
    rows = trace.table("outage_matches").filter(pl.col("n") > 0)
    windows = format_rows(rows, ("before_s", "after_s"), _format_window)
    rows = rows.with_columns(measure=pl.col("measure").replace_strict(LABELS), window=windows)
    columns: dict[str, Column] = {"measure": None, "kind": None, "window": ("Outage begins", str)}
    columns |= {"n": None, "events": None, "share": CLUSTERED, "expected": None, "median_s": None}
    return {"outage-matches": PageTable(rows, columns, OUTAGE_MATCHES)}


def _format_window(before_s: int, after_s: int) -> str:
    sides = ((before_s, "before"), (after_s, "after"))
    return " to ".join(f"{words.duration(seconds)} {side}" for seconds, side in sides if seconds)
