"""The numbers of run times and delays by kind of job, of requests and use, and of recurrence."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import FEWEST_ENDED, Metrics, ends_of


def numbers(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """Medians at both ends of the job sizes, the longest delays, what was asked for and not used, who comes again.

    And when jobs are submitted, what for, by whom, how many wait longer than they run, and the load of the machines.
    """
    source = "tables/percentiles.csv"
    times = tables["percentiles"].filter((pl.col("outcome_set") == "all") & (pl.col("n") >= FEWEST_ENDED))
    for quantity, name in (("runtime_s", "runtime"), ("queue_s", "queue")):
        sizes = times.filter((pl.col("quantity") == quantity) & (pl.col("group_by") == "gpus"))
        for end, row in ends_of(sizes, "smallest", "largest"):
            metrics.put(f"workload.{name}.{end}.gpus", row["group"], "label", source, row["n"])
            metrics.put(f"workload.{name}.{end}.median_s", row["p50_s"], "s", source, row["n"])
            metrics.put(f"workload.{name}.{end}.p90_s", row["p90_s"], "s", source, row["n"])
    source = "tables/request_use.csv"
    shares = dict.fromkeys(("asked_more_share", "used_more_share", "used_median_share"), "share")
    for row in tables["request_use"].filter(pl.col("n") > 0).iter_rows(named=True):
        metrics.put_row(f"workload.{row['resource']}", row, shares, source, row["n"])
    source = "tables/recurrence.csv"
    for row in tables["recurrence"].filter(pl.col("at_least") == 5).iter_rows(named=True):
        metrics.put(f"workload.recurrence.{row['group_by']}.share", row["jobs_share"], "share", source, row["n"])
        metrics.put(f"workload.recurrence.{row['group_by']}.groups", row["groups"], "groups", source, row["n"])
    _of_submissions(metrics, tables["submissions"])
    _of_population(metrics, tables)
    source = "tables/wait_share.csv"
    for row in tables["wait_share"].iter_rows(named=True):
        units = {"over_half_share": "share", "limit_s": "s"}
        metrics.put_row(f"workload.wait.{row['group']}", row, units, source, row["n"])
    source = "tables/percentiles.csv"
    by_request = times.filter((pl.col("quantity") == "queue_s") & (pl.col("group_by") == "gpu_request"))
    for row in by_request.iter_rows(named=True):
        name = row["group"].replace(" ", "_")
        metrics.put(f"workload.queue.{name}.p90_s", row["p90_s"], "s", source, row["n"])
    source = "tables/machine_load.csv"
    for row in tables["machine_load"].filter((pl.col("group_by") == "all") & (pl.col("n") > 0)).iter_rows(named=True):
        loads = dict.fromkeys(("mean", "p50", "p95"), row["unit"])
        metrics.put_row(f"workload.machines.{row['quantity']}", row, loads, source, row["n"])
        metrics.put("workload.machines.nodes", row["nodes"], "machines", source, row["n"])


def _of_submissions(metrics: Metrics, table: pl.DataFrame) -> None:
    source = "tables/submissions.csv"
    known = table.filter((pl.col("by") == "hour") & pl.col("jobs_per_hour").is_not_null())
    if not known.height:
        return
    n, ordered = known["n"][0], known.sort("jobs_per_hour", maintain_order=True)
    metrics.put("workload.submissions.zone", known["zone"][0], "label", source, n)
    for name, row in (("fewest", ordered.row(0, named=True)), ("most", ordered.row(-1, named=True))):
        metrics.put(f"workload.submissions.{name}.hour", int(row["value"]), "hour", source, n)
        metrics.put(f"workload.submissions.{name}.jobs_per_hour", row["jobs_per_hour"], "jobs/h", source, row["jobs"])
    days = table.filter((pl.col("by") == "weekday") & pl.col("jobs_per_hour").is_not_null())
    for name, chosen in (("weekend", ["Saturday", "Sunday"]), ("workday", None)):
        part = days.filter(pl.col("value").is_in(chosen or ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]))
        if hours := int(part["clock_hours"].sum()):
            rate = int(part["jobs"].sum()) / hours
            metrics.put(f"workload.submissions.{name}.jobs_per_hour", rate, "jobs/h", source, int(part["jobs"].sum()))


def _of_population(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    source = "tables/roles.csv"
    if tables["roles"].height:
        first = tables["roles"].row(0, named=True)
        metrics.put("workload.roles.first", first["role"], "label", source, first["n"])
        metrics.put("workload.roles.first_share", first["jobs_share"], "share", source, first["n"])
        metrics.put("workload.roles.count", first["roles"], "roles", source, first["n"])
    source = "tables/activity.csv"
    for row in tables["activity"].filter(pl.col("top_share") == 0.05).iter_rows(named=True):
        name = f"workload.activity.{row['ranked_by']}"
        metrics.put(f"{name}.owners_in_top", row["owners_in_top"], "users", source, row["owners"])
        metrics.put(f"{name}.share", row[f"{row['ranked_by']}_share"], "share", source, row["n"])
        metrics.put("workload.activity.owners", row["owners"], "users", source, row["n"])
    source = "tables/gangs.csv"
    for row in tables["gangs"].filter(pl.col("at_least") == 2).iter_rows(named=True):
        metrics.put("workload.gangs.jobs_share", row["jobs_share"], "share", source, row["n"])
        metrics.put("workload.gangs.instances_share", row["instances_share"], "share", source, row["instances"])
