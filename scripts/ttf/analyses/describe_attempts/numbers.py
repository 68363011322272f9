"""The numbers of delays of attempts, retries, run time to failure, overtaking and outcomes in a window."""

from datetime import UTC, datetime

import polars as pl

from ttf.analyses.describe_attempts.delays import ALL, ATTEMPTS, SCOPES
from ttf.inputs import Inputs
from ttf.jobs import gpus_of
from ttf.numbers.metrics import FEWEST_ENDED, Metrics, ends, ends_of

# A step at 3 minutes is named where its span holds so many times as many delays as those beside it, and so many at all.
STEP_RATIO = 2
STEP_SHARE = 0.02


def numbers(metrics: Metrics, given: Inputs) -> None:
    """First against later delays, the step at 3 minutes, who overtakes; what is tried again, and how it fails."""
    _delays(metrics, given["delays"])
    shares = dict.fromkeys(("out_of_order_share", "overtaken_share"), "share")
    scopes = given["out_of_order"].filter(pl.col("gpu_bucket") == ALL, pl.col("n") > 1, pl.col("scope").is_in(SCOPES))
    metrics.put_rows("queueing.{scope}", scopes, shares, "tables/out_of_order.csv")
    _retries(metrics, given["retries"])
    _failures(metrics, given["runtime_to_failure"], given["failed_attempts"])
    _window(metrics, given["outcomes_window"])


def _delays(metrics: Metrics, table: pl.DataFrame) -> None:
    source = "tables/delays.csv"
    of_all = table.filter(pl.col("which").is_in(ATTEMPTS), group_by=ALL, gpu_bucket=ALL, zeros_kept=True)
    key = "queueing.{which}"
    metrics.put_rows(key, of_all, dict.fromkeys(("negative", "unknown", "zeros"), "attempts"), source, None)
    metrics.put_rows(key, of_all, {"p50_s": "s", "p90_s": "s", "within_600_s_share": "share"}, source)
    steep = pl.col("step_180_s_share") >= pl.max_horizontal(STEP_SHARE, STEP_RATIO * pl.col("beside_180_s_share"))
    units = {"step_share": ("step_180_s_share", "share"), "beside_share": ("beside_180_s_share", "share")}
    metrics.put_rows(key, of_all.filter(pl.col("n") >= FEWEST_ENDED, steep), units, source)


def _retries(metrics: Metrics, table: pl.DataFrame) -> None:
    source = "tables/retries.csv"
    units = {"retries_mean": "retries", "retried_share": "share", "unsuccessful_share": "share"}
    units |= ends("share")
    metrics.put_rows("retries", table.filter(group_by="all"), units, source)
    sizes = table.filter((pl.col("group_by") == "gpu_count") & (pl.col("n") >= FEWEST_ENDED))
    for end, row in ends_of(sizes, "smallest", "largest"):
        metrics.put(f"retries.{end}.gpus", int(row["group"]), "GPUs", source, row["n"])
        shares = dict.fromkeys(("retries_mean", "unsuccessful_share"), "") | ends("share")
        metrics.put_row(f"retries.{end}", row, shares, source, row["n"])


def _failures(metrics: Metrics, rtf: pl.DataFrame, failed: pl.DataFrame) -> None:
    source = "tables/runtime_to_failure.csv"
    whole = rtf.row(0, named=True)
    metrics.put_row("rtf", whole, {"basis": "label", "trials": "attempts"}, source)
    metrics.put_row("rtf", whole, dict.fromkeys(("mean_s", "p50_s", "p90_s", "p95_s"), "s"), source, whole["n"])
    if whole["gpu_hours"]:
        metrics.put("rtf.gpu_hours", whole["gpu_hours"], "GPU-hours", source, whole["n"])
    # Of the sizes whose share of GPU time is known: the one with the most.
    sizes = rtf.slice(1).filter(pl.col("gpu_hours_share") > 0)
    if sizes.height >= 2:
        most = sizes.sort("gpu_hours", descending=True, maintain_order=True).row(0, named=True)
        metrics.put("rtf.most.gpus", metrics.unit.worded(gpus_of(most["gpu_bucket"])), "label", source, most["trials"])
        shares = dict.fromkeys(("trials_share", "rtf_share", "gpu_hours_share"), "share")
        metrics.put_row("rtf.most", most, shares, source, most["trials"])
    for row in failed.filter(pl.col("n") > 0).iter_rows(named=True):
        units = {f"at_least_{row['at_least']}": ("groups_share", "share"), "mean": ("trials_mean", "attempts")}
        units[f"trials_of_{row['at_least']}"] = ("trials_share", "share")
        metrics.put_row(f"failed_attempts.{row['group_by']}", row, units, "tables/failed_attempts.csv", row["n"])


def _window(metrics: Metrics, table: pl.DataFrame) -> None:
    source = "tables/outcomes_window.csv"
    if not table["n"].sum():
        return
    for (window,), part in table.filter(pl.col("unit") == "job").group_by("window", maintain_order=True):
        metrics.put(f"outcomes.{window}.jobs", int(part["n"].sum()), "jobs", source)
        for end in ("from", "to"):
            metrics.put(f"outcomes.{window}.{end}", _moment(part[f"window_{end}_s"][0]), "time", source)
        shares = {"n_share": "share", "gpu_hours_share": "share"}
        metrics.put_rows("outcomes.{window}.{outcome}", part, shares, source)


def _moment(seconds: int | None) -> str | None:
    """A moment in words, or in seconds where the calendar does not reach."""
    if seconds is None:
        return None
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:,} s"
