"""The report's tables of the reasons of failures."""

from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import html_table
from ttf.report.trace import Trace

MOST_LINES = 15


def taxonomy_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """`reasons`: the columns of Philly's Table 7; `domains`: totals; `unmatched`: lines; `tails`: lines put aside."""
    tables = {}
    table = trace.table("taxonomy")
    counts = {
        "trials": ("Trials", words.count),
        "jobs": ("Jobs", words.count),
        "users": ("Users", words.count),
        "rtf_p50_s": ("RTF: median", words.duration),
        "rtf_p90_s": ("90 %", words.duration),
        "rtf_p95_s": ("95 %", words.duration),
        "rtf_total_share": ("Share of RTF", words.share),
    }
    demand = {
        "gpu_none": ("No GPU", words.count),
        "gpu_1": ("1 GPU", words.count),
        "gpu_2_4": ("2–4", words.count),
        "gpu_gt4": ("more", words.count),
        "rtf_x_demand_share": ("Share of RTF × GPUs", words.share),
    }
    reasons = table.filter(pl.col("by") == "reason")
    if reasons.height:
        about = {"reason": ("Reason", None), "domain": ("Domain", None), "category": ("ATC'19", None)}
        tables["reasons"] = html_table(reasons, about | counts | demand, identifier("reasons"))
        domains = table.filter(pl.col("by") == "domain").with_columns(pl.col("domain").fill_null("unmatched"))
        tables["domains"] = html_table(domains, {"domain": ("Domain", None)} | counts | demand, identifier("domains"))
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
