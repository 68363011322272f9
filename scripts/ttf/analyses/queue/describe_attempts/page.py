"""Tables of the attempts: delays, overtaking, retries, run time to failure, outcomes in a window."""

from datetime import UTC, datetime

import polars as pl

from ttf.analyses.queue import describe_attempts as attempts
from ttf.analyses.queue.describe_attempts.delays import ALL
from ttf.display.report_tables import CLUSTERED, MEAN_OF_N, Interval, PageTable, format_range
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers
from ttf.records.jobs import bucket_label

MOST_ACCOUNTS = 10
MOST_CAUSES = 5
_ATTEMPT_LABELS = {"first": "First attempts", "later": "Later attempts"}
_GROUPS = {"failed_job": "A job that failed", "job": "A job with a failed attempt", "user": "A user with one"}
_SCOPES = {"account": "Within an account", "cluster": "In the whole cluster"}
_TIMES = {"n": None, "mean_s": MEAN_OF_N} | dict.fromkeys(("p50_s", "p90_s", "p95_s"))
_LIMIT_SHARES = dict.fromkeys(("n", "within_60_s_share", "within_600_s_share", "within_3600_s_share"))
_DELAYS = _LIMIT_SHARES | _TIMES
_ORDER = ("gpu_bucket", "n", "out_of_order_share", "overtaken_share")
_RETRIES = {
    "group": None,
    "n": None,
    "retries_mean": Interval(low="retries_ci_low_clustered", high="retries_ci_high_clustered"),
    "retried_share": None,
    "unsuccessful_share": CLUSTERED,
}
_TRIALS = dict.fromkeys(("gpu_bucket", "trials", "trials_share"))
_RTF = _TRIALS | _TIMES | dict.fromkeys(("rtf_share", "gpu_hours", "gpu_hours_share"))
_FAILED = {"at_least": None, "groups": None, "n": None, "groups_share": CLUSTERED, "trials_share": None}
_RESTARTS = {
    "phase": None,
    "n": None,
    **{f"p{p}_s": Interval(low=f"p{p}_ci_low_clustered_s", high=f"p{p}_ci_high_clustered_s") for p in (50, 90)},
}
_OUTCOMES = ("outcome", "n", "n_share", "gpu_hours", "gpu_hours_share", "without_end")


def context(trace: Trace, m: Numbers) -> dict:
    """Return the formatters `format_time` and `size_label` for the template."""
    return {"format_time": format_time, "size_label": lambda bucket: m.size.worded(bucket_label(bucket))}


def format_time(seconds: int) -> str:
    """Format a time as a date, or in seconds beyond the calendar."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:,} s"


def tables(trace: Trace) -> dict[str, PageTable]:
    delays = (
        trace.table("delays").with_columns(format_range("gpu_bucket")).filter(pl.col("zeros_kept") & (pl.col("n") > 0))
    )
    sizes = delays.filter((pl.col("group_by") == ALL) & pl.col("which").is_in(list(_ATTEMPT_LABELS)))
    sizes = sizes.with_columns(pl.col("which").replace_strict(_ATTEMPT_LABELS)).sort("which", maintain_order=True)
    shown = {"delays": PageTable(sizes, {"gpu_bucket": None} | _DELAYS, attempts.DELAYS, "which")}
    accounts = delays.filter(
        (pl.col("group_by") == "account") & (pl.col("which") == "every") & (pl.col("gpu_bucket") == ALL)
    ).head(MOST_ACCOUNTS)
    shown["delays-by-account"] = PageTable(accounts, {"group": None} | _DELAYS, attempts.DELAYS)
    order = trace.table("out_of_order").filter(pl.col("n") > 1)
    order = order.with_columns(pl.col("scope").replace_strict(_SCOPES), format_range("gpu_bucket"))
    shown["out-of-order"] = PageTable(order, _ORDER, attempts.OUT_OF_ORDER, "scope")
    retries = trace.table("retries").with_columns(format_range("group")).filter(pl.col("group_by") != "gpu_count")
    shown["retries"] = PageTable(retries, _RETRIES, attempts.RETRIES)
    rtf = trace.table("runtime_to_failure").with_columns(format_range("gpu_bucket")).filter(pl.col("n") > 0)
    shown["runtime-to-failure"] = PageTable(rtf, _RTF, attempts.RUNTIME_TO_FAILURE)
    failed = trace.table("failed_attempts").filter((pl.col("n") > 0) & (pl.col("at_least") > 1))
    failed = failed.with_columns(pl.col("group_by").replace_strict(_GROUPS))
    shown["failed-attempts"] = PageTable(failed, _FAILED, attempts.FAILED_ATTEMPTS, "group_by")
    outcomes = trace.table("outcomes_window")
    if outcomes["n"].sum():
        unit_labels = {"job": f"{trace.info['unit'].capitalize()}s", "attempt": "Attempts"}
        window_labels = {"all": "in the whole trace", "window": "in the window"}
        pairs = outcomes.select("window", "unit").iter_rows()
        names = [f"{unit_labels[unit]} {window_labels[window]}" for window, unit in pairs]
        labelled = outcomes.with_columns(part=pl.Series(names))
        shown["outcomes-window"] = PageTable(labelled, _OUTCOMES, attempts.OUTCOMES_WINDOW, "part")
    named_causes = trace.table("restarts")["cause"].unique(maintain_order=True).head(MOST_CAUSES + 1)
    causes = pl.col("cause").is_in(named_causes.implode())
    # By cause, the whole of the node and of the job.
    is_shown = (pl.col("cause") == ALL) | pl.col("phase").is_in(["outage to repair", "end to start"])
    restarts = trace.table("restarts").filter(causes & is_shown)
    shown["restarts"] = PageTable(restarts, _RESTARTS, attempts.RESTARTS, "cause")
    retries = trace.table("retry_success").filter(causes)
    shown["retry-success"] = PageTable(
        retries, {"retry": None, "n": None, "success_share": CLUSTERED}, attempts.RETRY_SUCCESS, "cause"
    )
    return shown
