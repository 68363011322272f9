"""What stands on the page of failures near outages, and of what outages ended."""

import polars as pl

from ttf.analyses.outages.match_outages import OUTAGE_MATCHES
from ttf.display.phrases import with_numbers
from ttf.display.report_tables import CLUSTERED, Shown, texts
from ttf.display.report_trace import Trace
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

LABELS = {
    "failure_near_outage": "Failures near an outage of a node",
    "job_failed": "Outages in which a job failed by infrastructure",
    "job_ended": "Outages with which a job ended otherwise",
    "job_ran_on": "Outages in which jobs ran on",
    "no_job": "Outages of a node that ran no job",
}


@with_numbers
def lines(trace: Trace, m: Numbers) -> list[Line]:
    if m.has("outage_matches.failures.n"):
        return []
    found = "no failure of a job on a watched node"
    return [Line("Failures near outages", found, "tables/outage_matches.csv", checked=False)]


def tables(trace: Trace) -> dict[str, Shown]:
    known = trace.table("outage_matches").filter(pl.col("n") > 0)
    known = known.with_columns(
        measure=pl.col("measure").replace_strict(LABELS), window=texts(known, ("before_s", "after_s"), _window)
    )
    columns = {"measure": None, "kind": None, "window": ("Outage begins", str), "n": None, "events": None}
    columns |= {"share": CLUSTERED, "expected": None, "median_s": None}
    return {"outage-matches": Shown(known, columns, OUTAGE_MATCHES)}


def _window(before_s: int, after_s: int) -> str:
    parts = [f"{words.duration(s)} {side}" for s, side in ((before_s, "before"), (after_s, "after")) if s]
    return " to ".join(parts)
