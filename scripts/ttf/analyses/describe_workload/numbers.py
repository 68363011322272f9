"""The numbers of run times and delays by kind of job, of requests and use, of submissions, users and machines."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.describe_workload.population import WEEKDAYS
from ttf.numbers.metrics import FEWEST_ENDED, Metrics, ends_of


def numbers(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    source = "tables/percentiles.csv"
    times = tables["percentiles"].filter(pl.col("outcome_set") == "all", pl.col("n") >= FEWEST_ENDED)
    units = {"gpus": ("group", "label"), "median_s": ("p50_s", "s"), "p90_s": "s"}
    for row in (
        tables["percentiles"].filter(outcome_set="all", quantity="queue_s", group_by="all").iter_rows(named=True)
    ):
        of_all = {"median_s": ("p50_s", "s"), "p90_s": "s"}
        metrics.put_row("workload.queue.all", row, of_all, source, row["n"])
    for quantity, name in (("runtime_s", "runtime"), ("queue_s", "queue")):
        for end, row in ends_of(times.filter(quantity=quantity, group_by="gpus"), "smallest", "largest"):
            metrics.put_row(f"workload.{name}.{end}", row, units, source, row["n"])
    by_request = times.filter(quantity="queue_s", group_by="gpu_request")
    by_request = by_request.with_columns(pl.col("group").str.replace_all(" ", "_"))
    metrics.put_rows("workload.queue.{group}", by_request, {"p90_s": "s"}, source)
    shares = dict.fromkeys(("asked_more_share", "used_more_share", "used_median_share"), "share")
    used = tables["request_use"].filter(pl.col("n") > 0)
    metrics.put_rows("workload.{resource}", used, shares, "tables/request_use.csv")
    units = {"share": ("jobs_share", "share"), "groups": "groups"}
    repeated = tables["recurrence"].filter(at_least=5)
    metrics.put_rows("workload.recurrence.{group_by}", repeated, units, "tables/recurrence.csv")
    units = {"over_half_share": "share", "limit_s": "s"}
    metrics.put_rows("workload.wait.{group}", tables["wait_share"], units, "tables/wait_share.csv")
    for row in tables["machine_load"].filter(pl.col("group_by") == "all", pl.col("n") > 0).iter_rows(named=True):
        loads = dict.fromkeys(("mean", "p50", "p95"), row["unit"])
        source = "tables/machine_load.csv"
        metrics.put_row(f"workload.machines.{row['quantity']}", row, loads, source, row["n"])
        metrics.put("workload.machines.nodes", row["nodes"], "machines", source, row["n"])
    _of_submissions(metrics, tables["submissions"])
    _of_population(metrics, tables)


def _of_submissions(metrics: Metrics, table: pl.DataFrame) -> None:
    source = "tables/submissions.csv"
    known = table.filter(pl.col("jobs_per_hour").is_not_null())
    hours = known.filter(by="hour").sort("jobs_per_hour", maintain_order=True)
    if not hours.height:
        return
    n = hours["n"][0]
    metrics.put("workload.submissions.zone", hours["zone"][0], "label", source, n)
    for name, row in (("fewest", hours.row(0, named=True)), ("most", hours.row(-1, named=True))):
        metrics.put(f"workload.submissions.{name}.hour", int(row["value"]), "hour", source, n)
        metrics.put(f"workload.submissions.{name}.jobs_per_hour", row["jobs_per_hour"], "jobs/h", source, row["jobs"])
    for name, days in (("weekend", WEEKDAYS[5:]), ("workday", WEEKDAYS[:5])):
        jobs, such_hours = known.filter(pl.col("value").is_in(days)).select("jobs", "clock_hours").sum().row(0)
        if such_hours:
            metrics.put(f"workload.submissions.{name}.jobs_per_hour", jobs / such_hours, "jobs/h", source, jobs)


def _of_population(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    units = {"first": ("role", "label"), "first_share": ("jobs_share", "share"), "count": ("roles", "roles")}
    metrics.put_rows("workload.roles", tables["roles"].head(1), units, "tables/roles.csv")
    source = "tables/activity.csv"
    for row in tables["activity"].filter(top_share=0.05).iter_rows(named=True):
        key = f"workload.activity.{row['ranked_by']}"
        metrics.put(f"{key}.owners_in_top", row["owners_in_top"], "users", source, row["owners"])
        metrics.put(f"{key}.share", row[f"{row['ranked_by']}_share"], "share", source, row["n"])
        metrics.put("workload.activity.owners", row["owners"], "users", source, row["n"])
    gangs = tables["gangs"].filter(at_least=2)
    metrics.put_rows("workload.gangs", gangs, {"jobs_share": "share"}, "tables/gangs.csv")
    metrics.put_rows("workload.gangs", gangs, {"instances_share": "share"}, "tables/gangs.csv", "instances")
