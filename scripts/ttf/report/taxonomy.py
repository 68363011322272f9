"""The report's tables of the reasons of failures."""

from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import html_table
from ttf.report.trace import Trace

MOST_LINES = 15


def taxonomy_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """`reasons` and `demand`: the columns of Philly's Table 7; `domains`: totals; `unmatched`, `tails`: lines."""
    tables = {}
    table = trace.table("taxonomy").with_columns(pl.col("domain").fill_null("unmatched"))
    counts = {"trials": ("Trials", words.count), "jobs": ("Jobs", words.count), "users": ("Users", words.count)}
    times = {"rtf_p50_s": ("RTF: median", words.duration), "rtf_p90_s": ("90 %", words.duration)}
    demand = {
        "gpu_none": ("No GPU", words.count),
        "gpu_1": ("1 GPU", words.count),
        "gpu_2_4": ("2 to 4", words.count),
        "gpu_gt4": ("more", words.count),
    }
    shares = {
        "rtf_total_share": ("Share of RTF", words.share),
        "rtf_x_demand_share": ("of RTF × GPUs", words.share),
    }
    reasons = table.filter(pl.col("by") == "reason")
    if reasons.height:
        reason, domain = {"reason": ("Reason", None)}, {"domain": ("Domain", None)}
        columns = reason | {"category": ("ATC'19", None)} | counts | times | {"rtf_p95_s": ("95 %", words.duration)}
        tables["reasons"] = html_table(reasons, columns, identifier("reasons"), group="domain")
        tables["demand"] = html_table(reasons, reason | demand | shares, identifier("demand"))
        domains = table.filter(pl.col("by") == "domain")
        tables["domains"] = html_table(domains, domain | counts | times | shares, identifier("domains"))
    unmatched = trace.table("unmatched")
    if unmatched.height:
        columns = {
            "line": ("Line", None),
            "source": ("From", None),
            "trials": ("Trials", words.count),
            "trials_share": ("Share of unmatched", words.share),
            "jobs": ("Jobs", words.count),
            "users": ("Users", words.count),
        }
        tables["unmatched"] = html_table(unmatched.head(MOST_LINES), columns, identifier("unmatched"), longest=200)
    tails = trace.table("log_tails").filter(pl.col("code") != "lines")
    if tails.height:
        columns = {
            "sentence": ("What is the matter", None),
            "rows": ("Lines", words.count),
            "share": ("Share", words.share),
            "first_lines": ("First", None),
        }
        tables["tails"] = html_table(tails, columns, identifier("tails"), longest=100)
    return tables
