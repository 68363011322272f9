from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import Interval, html_table
from ttf.report.trace import MOST_STRATA, Trace, largest_strata, strata_in_words

Identifier = Callable[[str], str]


def tables(trace: Trace, identifier: Identifier) -> dict[str, str]:
    tables = {}
    mttf = trace.table("mttf").filter(pl.col("confidence") == 0.95)
    causes = mttf.filter((pl.col("stratum_by") == "all") & (pl.col("event") != "failure"))
    if causes.height:
        columns = {
            "event": ("Cause", None),
            "n": ("n", words.count),
            "events": ("Failures", words.count),
            "mttf_s": Interval("Mean time to failure", words.duration, "ci_low_s", "ci_high_s"),
        }
        tables["causes"] = html_table(causes, columns, identifier("causes"))
    mttf = mttf.filter(pl.col("event") == "failure")
    if mttf.height:
        columns = {
            "stratum": ("Lives", None),
            "n": ("n", words.count),
            "events": ("Failures", words.count),
            "exposure_s": ("Time at risk", words.duration),
            "mttf_s": Interval("Mean time to failure", words.duration, "ci_low_s", "ci_high_s"),
            "failures_per_1000_gpu_days": ("Failures per 1000 GPU-days", words.number),
        }
        shown = strata_in_words(largest_strata(mttf))
        tables["mttf"] = html_table(shown, columns, identifier("mttf"), group="stratum_by")
    return tables


def context(trace: Trace, metrics: dict) -> dict:
    strata = [name.removeprefix("survival_by_") for name in trace.figures if name.startswith("survival_by_")]
    return {"strata": strata, "most_strata": MOST_STRATA}
