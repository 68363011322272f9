"""Table of the strata that have enough jobs and failures."""

import polars as pl

from ttf.analyses.outcomes.describe_strata import STRATA
from ttf.display.metrics import FEWEST_FAILURES
from ttf.display.report_tables import CLUSTERED, Interval, PageTable, format_rows
from ttf.display.report_trace import Trace, label_strata
from ttf.engine import words

FEWEST_JOBS, MAX_STRATA = 30, 24
_RATE = Interval(low="rate_ci_low_clustered", high="rate_ci_high_clustered")
_MEDIAN = Interval(low="median_ci_low_clustered_s", high="median_ci_high_clustered_s")


def tables(trace: Trace) -> dict[str, PageTable]:
    strata = trace.table("strata")
    eligible_strata = select_eligible(strata)
    eligible_strata = (
        pl.concat([strata.filter(stratum_by="all"), eligible_strata]) if eligible_strata.height else eligible_strata
    )
    labels = format_rows(eligible_strata, ("stratum_by", "stratum"), stratum_name)
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
    # Without a failure, only an upper bound is known.
    high_bound = pl.when(infra_failures=0).then("rate_ci_high").otherwise("rate_ci_high_clustered")
    rows = label_strata(eligible_strata).with_columns(stratum=labels, rate_ci_high_clustered=high_bound)
    return {"strata": PageTable(rows, columns, STRATA, "stratum_by")}


def select_eligible(table: pl.DataFrame) -> pl.DataFrame:
    """Return the largest strata with enough jobs and failures, in the order of the table."""
    is_large = (pl.col("jobs") >= FEWEST_JOBS) & (pl.col("failures") >= FEWEST_FAILURES)
    strata = table.with_row_index("row").filter(is_large, pl.col("stratum_by") != "all")
    return strata.sort("jobs", "row", descending=[True, False]).head(MAX_STRATA).sort("row").drop("row")


def format_stratum(stratum_by: str, stratum: str) -> str:
    """Return the name of a stratum with its unit: 5–8 GPUs."""
    if stratum_by != "gpus" or stratum == "0":
        return "no GPU" if stratum_by == "gpus" else stratum
    return f"{stratum_name(stratum_by, stratum)}{words.NO_BREAK}GPU{'' if stratum == '1' else 's'}"


def stratum_name(stratum_by: str, stratum: str) -> str:
    """Return the name of a stratum for a column whose heading names the unit: 5–8."""
    return "–".join(map(words.group_thousands, stratum.split("-"))) if stratum_by == "gpus" else stratum
