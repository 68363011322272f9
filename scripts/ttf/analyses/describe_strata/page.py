"""The table of the strata that have enough jobs and failures."""

import polars as pl

from ttf.analyses.describe_strata import STRATA
from ttf.page.strata import eligible, under_its_heading
from ttf.page.tables import CLUSTERED, Interval, Shown, texts
from ttf.page.trace import Trace, strata_in_words

_RATE = Interval(low="rate_ci_low_clustered", high="rate_ci_high_clustered")
_MEDIAN = Interval(low="median_ci_low_clustered_s", high="median_ci_high_clustered_s")


def tables(trace: Trace) -> dict[str, Shown]:
    every = trace.table("strata")
    found = eligible(every)
    found = pl.concat([every.filter(stratum_by="all"), found]) if found.height else found
    named = texts(found, ("stratum_by", "stratum"), under_its_heading)
    columns = {
        "stratum": "Stratum",
        "jobs": None,
        "ended": None,
        "failures": None,
        "failure_share": CLUSTERED,
        **dict.fromkeys(("gpu_hours", "failed_gpu_hours_share", "infra_failures")),
        "failures_per_1000_node_days": _RATE,
        "failure_median_s": _MEDIAN,
    }
    # Of no failure nothing but an upper bound is known.
    bound = pl.when(infra_failures=0).then("rate_ci_high").otherwise("rate_ci_high_clustered")
    shown = strata_in_words(found).with_columns(stratum=named, rate_ci_high_clustered=bound)
    return {"strata": Shown(shown, columns, STRATA, "stratum_by")}
