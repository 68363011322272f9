"""The tables of the reasons of failures."""

from collections.abc import Callable

import polars as pl

from ttf.analyses.classify_failures import LOG_TAILS, TAXONOMY, UNMATCHED
from ttf.report.tables import html_table
from ttf.report.trace import Trace

MOST_LINES = 15
_COUNTS, _TIMES = ("trials", "jobs", "users"), ("rtf_p50_s", "rtf_p90_s")
_DEMAND, _SHARES = ("gpu_none", "gpu_1", "gpu_2_4", "gpu_gt4"), ("rtf_total_share", "rtf_x_demand_share")


def tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """`reasons` and `demand`: the columns of Philly's Table 7; `domains`: totals; `unmatched`, `tails`: lines."""
    shown = {}
    table = trace.table("taxonomy").with_columns(pl.col("domain").fill_null("unmatched"))
    reasons, domains = (table.filter(pl.col("by") == by) for by in ("reason", "domain"))
    if reasons.height:
        columns = ("reason", "category", *_COUNTS, *_TIMES, "rtf_p95_s")
        shown["reasons"] = html_table(reasons, columns, identifier("reasons"), group="domain", contract=TAXONOMY)
        columns = ("reason", *_DEMAND, *_SHARES)
        shown["demand"] = html_table(reasons, columns, identifier("demand"), contract=TAXONOMY)
        columns = ("domain", *_COUNTS, *_TIMES, *_SHARES)
        shown["domains"] = html_table(domains, columns, identifier("domains"), contract=TAXONOMY)
    unmatched = trace.table("unmatched").head(MOST_LINES)
    if unmatched.height:
        columns = ("line", "source", "trials", "trials_share", "jobs", "users")
        shown["unmatched"] = html_table(unmatched, columns, identifier("unmatched"), longest=200, contract=UNMATCHED)
    tails = trace.table("log_tails").filter(pl.col("code") != "lines")
    if tails.height:
        columns = ("sentence", "rows", "share", "first_lines")
        shown["tails"] = html_table(tails, columns, identifier("tails"), longest=100, contract=LOG_TAILS)
    return shown
