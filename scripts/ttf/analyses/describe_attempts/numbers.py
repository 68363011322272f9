"""The numbers of delays of attempts, retries, run time to failure, overtaking and outcomes in a window."""

from datetime import UTC, datetime

import polars as pl

from ttf.analyses.describe_attempts.delays import ALL, ATTEMPTS, SCOPES
from ttf.inputs import Inputs
from ttf.jobs import gpus_of
from ttf.numbers.metrics import FEWEST_ENDED, Metrics, ends_of

# A step at 3 minutes is named where its span holds so many times as many delays as those beside it, and so many at all.
STEP_RATIO = 2
STEP_SHARE = 0.02


def numbers(metrics: Metrics, given: Inputs) -> None:
    """First against later delays, the step at 3 minutes, who overtakes; what is tried again, and how it fails."""
    _delays(metrics, given["delays"])
    source = "tables/out_of_order.csv"
    for row in given["out_of_order"].filter(pl.col("gpu_bucket") == ALL).iter_rows(named=True):
        if row["n"] > 1 and row["scope"] in SCOPES:
            shares = dict.fromkeys(("out_of_order_share", "overtaken_share"), "share")
            metrics.put_row(f"queueing.{row['scope']}", row, shares, source, row["n"])
    _retries(metrics, given["retries"])
    _failures(metrics, given["runtime_to_failure"], given["failed_attempts"])
    _window(metrics, given["outcomes_window"])


def _delays(metrics: Metrics, table: pl.DataFrame) -> None:
    source = "tables/delays.csv"
    of_all = table.filter((pl.col("group_by") == ALL) & (pl.col("gpu_bucket") == ALL) & pl.col("zeros_kept"))
    for row in of_all.iter_rows(named=True):
        if row["which"] in ATTEMPTS:
            key = f"queueing.{row['which']}"
            metrics.put_row(key, row, dict.fromkeys(("negative", "unknown", "zeros"), "attempts"), source)
            metrics.put_row(key, row, {"p50_s": "s", "p90_s": "s", "within_600_s_share": "share"}, source, row["n"])
            share, beside = row["step_180_s_share"], row["beside_180_s_share"]
            if row["n"] >= FEWEST_ENDED and share >= max(STEP_SHARE, STEP_RATIO * beside):
                metrics.put(f"{key}.step_share", share, "share", source, row["n"])
                metrics.put(f"{key}.beside_share", beside, "share", source, row["n"])


def _retries(metrics: Metrics, table: pl.DataFrame) -> None:
    source = "tables/retries.csv"
    for row in table.filter(pl.col("group_by") == "all").iter_rows(named=True):
        units = {"retries_mean": "retries", "retried_share": "share", "unsuccessful_share": "share"}
        metrics.put_row("retries", row, units, source, row["n"])
    sizes = table.filter((pl.col("group_by") == "gpu_count") & (pl.col("n") >= FEWEST_ENDED))
    for end, row in ends_of(sizes, "smallest", "largest"):
        metrics.put(f"retries.{end}.gpus", int(row["group"]), "GPUs", source, row["n"])
        shares = dict.fromkeys(("retries_mean", "unsuccessful_share", "ci_low", "ci_high"), "")
        metrics.put_row(f"retries.{end}", row, shares, source, row["n"])


def _failures(metrics: Metrics, rtf: pl.DataFrame, failed: pl.DataFrame) -> None:
    source = "tables/runtime_to_failure.csv"
    whole = rtf.row(0, named=True)
    metrics.put("rtf.basis", whole["basis"], "label", source)
    metrics.put("rtf.trials", whole["trials"], "attempts", source)
    metrics.put_row("rtf", whole, dict.fromkeys(("mean_s", "p50_s", "p90_s", "p95_s"), "s"), source, whole["n"])
    if whole["gpu_hours"]:
        metrics.put("rtf.gpu_hours", whole["gpu_hours"], "GPU hours", source, whole["n"])
    # Of the sizes whose share of GPU time is known: the one with the most.
    sizes = rtf.slice(1).filter(pl.col("gpu_hours_share") > 0)
    if sizes.height >= 2:
        most = sizes.sort("gpu_hours", descending=True, maintain_order=True).row(0, named=True)
        metrics.put("rtf.most.gpus", gpus_of(most["gpu_bucket"]), "label", source, most["trials"])
        shares = dict.fromkeys(("trials_share", "rtf_share", "gpu_hours_share"), "share")
        metrics.put_row("rtf.most", most, shares, source, most["trials"])
    source = "tables/failed_attempts.csv"
    for row in failed.filter(pl.col("n") > 0).iter_rows(named=True):
        key = f"failed_attempts.{row['group_by']}"
        metrics.put(f"{key}.mean", row["trials_mean"], "attempts", source, row["n"])
        metrics.put(f"{key}.at_least_{row['at_least']}", row["groups_share"], "share", source, row["n"])
        metrics.put(f"{key}.trials_of_{row['at_least']}", row["trials_share"], "share", source, row["n"])


def _window(metrics: Metrics, table: pl.DataFrame) -> None:
    source = "tables/outcomes_window.csv"
    if not table["n"].sum():
        return
    for (window,), part in table.filter(pl.col("unit") == "job").group_by("window", maintain_order=True):
        metrics.put(f"outcomes.{window}.jobs", int(part["n"].sum()), "jobs", source)
        for end in ("from", "to"):
            metrics.put(f"outcomes.{window}.{end}", _moment(part[f"window_{end}_s"][0]), "time", source)
        for row in part.iter_rows(named=True):
            shares = {"n_share": "share", "gpu_hours_share": "share"}
            metrics.put_row(f"outcomes.{window}.{row['outcome']}", row, shares, source, row["n"])


def _moment(seconds: int | None) -> str | None:
    """A moment in words, or in seconds where the calendar does not reach."""
    if seconds is None:
        return None
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:,} s"
