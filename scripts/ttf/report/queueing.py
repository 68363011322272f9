"""The tables of the section on attempts: delays, overtaking, retries, run time to failure, outcomes in a window."""

from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import Interval, Mean, html_table, span
from ttf.report.trace import Trace
from ttf.stats.queueing import ALL

MOST_ACCOUNTS = 10
_WHICH = {"first": "First attempts", "later": "Later attempts"}
_GROUPS = {"failed_job": "A job that failed", "job": "A job with a failed attempt", "user": "A user with one"}
_DELAYS = {
    "n": ("n", words.count),
    "within_60_s_share": ("≤ 1 min", words.share),
    "within_600_s_share": ("≤ 10 min", words.share),
    "within_3600_s_share": ("≤ 60 min", words.share),
    "mean_s": Mean("Mean", words.duration, "n"),
    "p50_s": ("Median", words.duration),
    "p90_s": ("90 %", words.duration),
    "p95_s": ("95 %", words.duration),
}


def queueing_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """Delays by size and by account, overtaking, retries, failures, outcomes; one with nothing in it is left out."""
    tables = {}
    delays = trace.table("delays").with_columns(span("gpu_bucket")).filter(pl.col("zeros_kept") & (pl.col("n") > 0))
    by_size = delays.filter((pl.col("group_by") == ALL) & pl.col("which").is_in(list(_WHICH)))
    if by_size.height:
        named = by_size.with_columns(pl.col("which").replace_strict(_WHICH)).sort("which", maintain_order=True)
        columns = {"gpu_bucket": ("GPUs", None)} | _DELAYS
        tables["delays"] = html_table(named, columns, identifier("delays"), group="which")
    by_account = delays.filter(
        (pl.col("group_by") == "account") & (pl.col("which") == "every") & (pl.col("gpu_bucket") == ALL)
    ).head(MOST_ACCOUNTS)
    if by_account.height:
        columns = {"group": ("Account", None)} | _DELAYS
        tables["delays-by-account"] = html_table(by_account, columns, identifier("delay-accounts"))
    order = trace.table("out_of_order").filter(pl.col("n") > 1)
    if order.height:
        scopes = {"account": "Within an account", "cluster": "In the whole cluster"}
        columns = {
            "gpu_bucket": ("GPUs", None),
            "n": ("n", words.count),
            "out_of_order_share": ("Started out of order", words.share),
            "overtaken_share": ("Overtaken", words.share),
        }
        named = order.with_columns(pl.col("scope").replace_strict(scopes), span("gpu_bucket"))
        tables["out-of-order"] = html_table(named, columns, identifier("order"), group="scope")
    retries = trace.table("retries").with_columns(span("group")).filter(pl.col("group_by") != "gpu_count")
    if retries.height:
        columns = {
            "group": ("GPUs", None),
            "n": ("n", words.count),
            "retries_mean": Interval("Retries, mean", words.number, "retries_ci_low", "retries_ci_high"),
            "retried_share": ("Tried again", words.share),
            "unsuccessful_share": Interval("Unsuccessful", words.share, "ci_low", "ci_high"),
        }
        tables["retries"] = html_table(retries, columns, identifier("retries"))
    rtf = trace.table("runtime_to_failure").with_columns(span("gpu_bucket")).filter(pl.col("n") > 0)
    if rtf.height:
        columns = {
            "gpu_bucket": ("GPUs", None),
            "trials": ("Failed", words.count),
            "trials_share": ("Share", words.share),
            "n": ("n", words.count),
            "mean_s": Mean("Mean", words.duration, "n"),
            "p50_s": ("Median", words.duration),
            "p90_s": ("90 %", words.duration),
            "p95_s": ("95 %", words.duration),
            "rtf_share": ("Share of the time", words.share),
            "gpu_hours": ("GPU hours", words.number),
            "gpu_hours_share": ("Share", words.share),
        }
        tables["runtime-to-failure"] = html_table(rtf, columns, identifier("rtf"))
    failed = trace.table("failed_attempts").filter((pl.col("n") > 0) & (pl.col("at_least") > 1))
    if failed.height:
        columns = {
            "at_least": ("At least", words.count),
            "groups": ("Number", words.count),
            "n": ("of", words.count),
            "groups_share": Interval("Share", words.share, "ci_low", "ci_high"),
            "trials_share": ("Their share of the failed attempts", words.share),
        }
        named = failed.with_columns(pl.col("group_by").replace_strict(_GROUPS))
        tables["failed-attempts"] = html_table(named, columns, identifier("failed"), group="group_by")
    outcomes = trace.table("outcomes_window")
    if outcomes["n"].sum():
        columns = {
            "outcome": ("Outcome", None),
            "n": ("Number", words.count),
            "n_share": ("Share", words.share),
            "gpu_hours": ("GPU hours", words.number),
            "gpu_hours_share": ("Share", words.share),
            "without_end": ("Attempts without a time", words.count),
        }
        what = {"job": f"{trace.about['unit'].capitalize()}s", "attempt": "Attempts"}
        where = {"all": "in the whole trace", "window": "in the window"}
        names = [f"{what[unit]} {where[window]}" for window, unit in outcomes.select("window", "unit").iter_rows()]
        named = outcomes.with_columns(part=pl.Series(names))
        tables["outcomes-window"] = html_table(named, columns, identifier("window"), group="part")
    return tables
