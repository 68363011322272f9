"""The numbers of run times and delays by kind of job, of requests and use, and of recurrence."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import FEWEST_ENDED, Metrics


def of_workload(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """Medians at both ends of the job sizes, the longest delays, what was asked for and not used, who comes again."""
    source = "tables/percentiles.csv"
    times = tables["percentiles"].filter((pl.col("outcome_set") == "all") & (pl.col("n") >= FEWEST_ENDED))
    for quantity, name in (("runtime_s", "runtime"), ("queue_s", "queue")):
        sizes = times.filter((pl.col("quantity") == quantity) & (pl.col("group_by") == "gpus"))
        if sizes.height >= 2:
            for end, row in (("smallest", sizes.row(0, named=True)), ("largest", sizes.row(-1, named=True))):
                metrics.put(f"workload.{name}.{end}.gpus", row["group"], "label", source, row["n"])
                metrics.put(f"workload.{name}.{end}.median_s", row["p50_s"], "s", source, row["n"])
                metrics.put(f"workload.{name}.{end}.p90_s", row["p90_s"], "s", source, row["n"])
    source = "tables/request_use.csv"
    for row in tables["request_use"].iter_rows(named=True):
        if row["n"]:
            for name in ("asked_more_share", "used_more_share", "used_median_share"):
                metrics.put(f"workload.{row['resource']}.{name}", row[name], "share", source, row["n"])
    source = "tables/recurrence.csv"
    for row in tables["recurrence"].filter(pl.col("at_least") == 5).iter_rows(named=True):
        metrics.put(f"workload.recurrence.{row['group_by']}.share", row["jobs_share"], "share", source, row["n"])
        metrics.put(f"workload.recurrence.{row['group_by']}.groups", row["groups"], "groups", source, row["n"])
