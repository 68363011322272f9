"""The numbers of what comes before the analyses: rows, quality, jobs, and whether two sources of times agree."""

import polars as pl

from ttf.inputs import Inputs
from ttf.jobs import at_time_limit, observed_s
from ttf.numbers.metrics import Metrics
from ttf.stats.counts import Counted, Rows, counts


def of_rows(metrics: Metrics, account: pl.DataFrame) -> None:
    """Raw rows read, kept and excluded."""
    source = "quality/row_account.csv"
    for name in ("rows_read", "rows_kept", "rows_quarantined"):
        metrics.put(f"data.{name}", int(account[name].sum()), "rows", source)


def of_jobs(metrics: Metrics, jobs: Rows, nodes: pl.DataFrame) -> None:
    """Jobs, users, nodes, GPUs, and the time from the first submission to the trace's end."""
    of_outcome = {name: pl.when(pl.col("outcome") == name).then(observed_s()) for name in ("running", "unknown")}
    sums = {
        "jobs": pl.len(),
        "first": pl.col("submit_s").min(),
        "last": pl.col("trace_end_s").max(),
        "equal_times": (pl.col("submit_s") == pl.col("start_s")).sum(),
        "gpu_jobs": (pl.col("gpu_milli") > 0).sum(),
        "seen": observed_s().count(),
        "seen_s": observed_s().sum(),
        "timeouts": ((pl.col("outcome") == "failure") & at_time_limit("status_raw") & observed_s().is_not_null()).sum(),
        **{f"{name}_s": seconds.sum() for name, seconds in of_outcome.items()},
    }
    if "runtime_from" in jobs.collect_schema():
        sums |= {f"runtime_from_{name}": (pl.col("runtime_from") == name).sum() for name in ("task", "siblings")}
        sums |= {name: pl.col(name).sum() for name in ("negative_queue", "negative_run")}
        sums["retried"] = (pl.col("attempts") > 1).sum()
    found = jobs.lazy().select(**sums).collect(engine="streaming").row(0, named=True)
    n = found["jobs"]
    users = jobs.lazy().group_by("user").agg(jobs=pl.len()).drop_nulls().collect(engine="streaming")
    metrics.put("data.jobs", n, "jobs", "jobs.parquet")
    if found["first"] is not None and found["last"] is not None:
        metrics.put("data.span_s", found["last"] - found["first"], "s", "jobs.parquet", n)
    metrics.put("data.users", users.height or None, "users", "jobs.parquet", int(users["jobs"].sum()))
    metrics.put("data.nodes", nodes.height or None, "nodes", "nodes.parquet")
    metrics.put("data.gpus", int(nodes["gpu_count"].sum()) or None, "GPUs", "nodes.parquet", nodes.height)
    metrics.put("data.gpu_jobs", found["gpu_jobs"], "jobs", "jobs.parquet", n)
    metrics.put("data.jobs_without_gpu", n - found["gpu_jobs"], "jobs", "jobs.parquet", n)
    for name in ("runtime_from_task", "runtime_from_siblings", "negative_queue", "negative_run", "retried"):
        if name in found:
            metrics.put(f"data.{name}", found[name], "jobs", "jobs.parquet", n)
    # Failures by a time limit among those of known duration, which survival and the mean time to failure count.
    metrics.put("survival.timeouts", found["timeouts"], "failures", "jobs.parquet", found["seen"])
    if total := found["seen_s"]:
        for name in of_outcome:
            metrics.put(f"data.{name}_time_share", found[f"{name}_s"] / total, "share", "jobs.parquet", found["seen"])
    queue = Counted.of(counts(jobs, queue_s=pl.col("queue_s")), "queue_s")
    if queue.size:
        metrics.put("queue.median", queue.median(), "s", "jobs.parquet", queue.size)
        metrics.put("queue.p90", queue.percentile(90), "s", "jobs.parquet", queue.size)
    elif found["equal_times"]:
        why = "every start equals its submission, so no waiting is computed"
        metrics.put("queue.reason", why, "label", "jobs.parquet", found["equal_times"])


def of_agreement(metrics: Metrics, agreement: pl.DataFrame) -> None:
    """How often the instances' times and the job's own record agree, and by how much they differ."""
    source = "tables/runtime_agreement.csv"
    units = {"equal_share": "share", "difference_median_s": "s", "difference_p95_s": "s"}
    metrics.put_rows("agreement.{time}", agreement.filter(pl.col("n") > 0), units, source)


def of_quality(metrics: Metrics, anomalies: pl.DataFrame, statistics: pl.DataFrame) -> None:
    """What was checked, how much of it was wrong, and how much the suggested schema would let in."""
    source = "quality/anomalies.csv"
    metrics.put("quality.anomalies", anomalies.height, "anomalies", source)
    metrics.put("quality.rows_aside", int(anomalies["rows"].sum()), "rows", source)
    suggested = anomalies.filter(~pl.col("suggestion").str.starts_with("none").fill_null(True))
    metrics.put("quality.suggestions", suggested.height, "suggestions", source)
    metrics.put("quality.rows_suggested", int(suggested["rows"].sum()), "rows", source)
    worst = anomalies.sort("rows", descending=True, maintain_order=True).head(1)
    units = {"table": "label", "sentence": "label", "rows": "rows", "share": "share"}
    metrics.put_rows("quality.worst", worst, units, source, None)
    source = "quality/statistics.csv"
    stored = statistics.filter(pl.col("stored_as").is_not_null())
    metrics.put("quality.tables", statistics["table"].n_unique(), "tables", source)
    metrics.put("quality.columns", statistics.height, "columns", source)
    metrics.put("quality.columns_stored", stored.height, "columns", source)
    empty = stored.filter((pl.col("blank") == pl.col("rows")) & (pl.col("rows") > 0))
    metrics.put("quality.columns_blank", empty.height, "columns", source, stored.height)


def of_outages(metrics: Metrics, outages: pl.DataFrame, exposure: pl.DataFrame | None) -> None:
    """Outages, the units that had one, and how many were watched."""
    source = "outages.parquet"
    metrics.put("data.outages", outages.height, "outages", source)
    metrics.put("data.units_with_outage", outages["unit_id"].n_unique(), "units", source, outages.height)
    if exposure is not None:
        metrics.put("data.units_watched", exposure["unit_id"].n_unique(), "units", "exposure.parquet")


def of_stages(metrics: Metrics, given: Inputs) -> None:
    if "row_account" in given:
        of_rows(metrics, given["row_account"])
        of_quality(metrics, given["anomalies"], given["statistics"])
    if "nodes" in given:
        of_jobs(metrics, given.scan("jobs"), given.read("nodes"))
        of_agreement(metrics, given["runtime_agreement"])
    if "size_unit" in given:
        source = "tables/size_unit.csv"
        for row in given["size_unit"].filter("used").iter_rows(named=True):
            metrics.put("data.size_unit", row["unit"], "label", source, row["jobs"])
    if "outages" in given:
        exposure = given.read("exposure", ["unit_id"]) if "exposure" in given else None
        of_outages(metrics, given.read("outages", ["unit_id"]), exposure)
