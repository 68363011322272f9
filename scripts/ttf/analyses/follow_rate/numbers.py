"""The numbers of the failure rate over time."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics, ends

PER_1000 = {"failures_per_1000_node_days": "failures per 1000 node days"} | ends("failures per 1000 node days")


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    of_over_time(metrics, given["failure_rate_over_time"])


def of_over_time(metrics: Metrics, over_time: pl.DataFrame) -> None:
    """The rolling windows of the failure rate: how many, how long, and the lowest and the highest of them."""
    source = "tables/failure_rate_over_time.csv"
    every = over_time.filter((pl.col("by") == "all") & pl.col("ci_high").is_not_null())
    if not every.height:
        metrics.put("sizes.over_time.reason", over_time["reason"][0] or "no node was at work", "label", source)
        return
    metrics.put("sizes.over_time.windows", every.height, "windows", source)
    metrics.put("sizes.over_time.window_days", every["window_days"][0], "days", source)
    metrics.put("sizes.over_time.failures_in_windows", int((every["failures"] > 0).sum()), "windows", source)
    for name, unit in (("runs_before", "runs"), ("days_before", "days")):
        metrics.put(f"sizes.over_time.{name}", every[name][0] or None, unit, source)
    ranked = every.sort("failures_per_1000_node_days", "to_day")
    for end, row in (("lowest", ranked.row(0, named=True)), ("highest", ranked.row(-1, named=True))):
        metrics.put(f"sizes.over_time.{end}.window", row["window"], "label", source)
        metrics.put_row(f"sizes.over_time.{end}", row, PER_1000, source, row["failures"])
    causes = over_time.filter(pl.col("by") != "all")
    metrics.put("sizes.over_time.by", causes["by"].first(), "label", source)
