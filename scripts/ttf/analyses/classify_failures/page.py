"""The tables of the reasons of failures."""

import polars as pl

from ttf.analyses.classify_failures import LOG_TAILS, TAXONOMY, UNMATCHED
from ttf.report.tables import Shown
from ttf.report.trace import Trace

MOST_LINES = 15
_COUNTS, _TIMES = ("trials", "jobs", "users"), ("rtf_p50_s", "rtf_p90_s")
_DEMAND, _SHARES = ("gpu_none", "gpu_1", "gpu_2_4", "gpu_gt4"), ("rtf_total_share", "rtf_x_demand_share")


def tables(trace: Trace) -> dict[str, Shown]:
    """`reasons` and `demand`: the columns of Philly's Table 7; `domains`: totals; `unmatched`, `tails`: lines."""
    table = trace.table("taxonomy").with_columns(pl.col("domain").fill_null("unmatched"))
    reasons = table.filter(pl.col("by") == "reason")
    domains = table.filter((pl.col("by") == "domain") & pl.lit(reasons.height > 0))
    unmatched, tails = trace.table("unmatched"), trace.table("log_tails")
    lines = ("line", "source", "trials", "trials_share", "jobs", "users")
    tail = ("sentence", "rows", "share", "first_lines")
    return {
        "reasons": Shown(reasons, ("reason", "category", *_COUNTS, *_TIMES, "rtf_p95_s"), TAXONOMY, "domain"),
        "demand": Shown(reasons, ("reason", *_DEMAND, *_SHARES), TAXONOMY),
        "domains": Shown(domains, ("domain", *_COUNTS, *_TIMES, *_SHARES), TAXONOMY),
        "unmatched": Shown(unmatched.head(MOST_LINES), lines, UNMATCHED, longest=200),
        "tails": Shown(tails.filter(pl.col("code") != "lines"), tail, LOG_TAILS, longest=100),
    }
