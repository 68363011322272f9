from collections.abc import Callable

import polars as pl

from ttf.analyses.fit_mttf import MTTF
from ttf.report.tables import Interval, html_table
from ttf.report.trace import MOST_STRATA, Trace, largest_strata, strata_in_words

INTERVAL = Interval(low="ci_low_s", high="ci_high_s")


def tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """The mean time to failure of each cause over all lives, and by stratum; empty ones left out."""
    mttf = trace.table("mttf").filter(pl.col("confidence") == 0.95)
    of_failure = pl.col("event") == "failure"
    made = {}
    causes = mttf.filter((pl.col("stratum_by") == "all") & ~of_failure)
    if causes.height:
        columns = {"event": "Cause", "n": None, "events": None, "mttf_s": INTERVAL}
        made["causes"] = html_table(causes, columns, identifier("causes"), contract=MTTF)
    strata = mttf.filter(of_failure)
    if strata.height:
        columns = dict.fromkeys(("stratum", "n", "events", "exposure_s", "mttf_s", "failures_per_1000_gpu_days"))
        columns["mttf_s"] = INTERVAL
        shown = strata_in_words(largest_strata(strata))
        made["mttf"] = html_table(shown, columns, identifier("mttf"), group="stratum_by", contract=MTTF)
    return made


def context(trace: Trace, metrics: dict) -> dict:
    strata = [name.removeprefix("survival_by_") for name in trace.figures if name.startswith("survival_by_")]
    return {"strata": strata, "most_strata": MOST_STRATA}
