"""The numbers of raw rows, jobs, outcomes, run times and correlations."""

import polars as pl

from ttf.jobs import OUTCOMES, at_time_limit, observed_s
from ttf.numbers.metrics import FEWEST_ENDED, Metrics
from ttf.stats.counts import Counted, Rows, counts
from ttf.stats.median import median_interval
from ttf.stats.shares import wilson_interval


def of_rows(metrics: Metrics, account: pl.DataFrame) -> None:
    """Raw rows read, kept and put aside."""
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
        "gpu_jobs": (pl.col("gpu_milli") > 0).sum(),
        "seen": observed_s().count(),
        "seen_s": observed_s().sum(),
        "timeouts": ((pl.col("outcome") == "failure") & at_time_limit("status_raw") & observed_s().is_not_null()).sum(),
        **{f"{name}_s": seconds.sum() for name, seconds in of_outcome.items()},
    }
    if "runtime_from" in jobs.collect_schema():
        sums |= {"fallback": (pl.col("runtime_from") == "task").sum(), "negative": pl.col("negative_queue").sum()}
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
    if "fallback" in found:
        metrics.put("data.runtime_from_task", found["fallback"], "jobs", "jobs.parquet", n)
        metrics.put("data.negative_queue", found["negative"], "jobs", "jobs.parquet", n)
    # Failures by a time limit among those of known duration, which survival and the mean time to failure count.
    metrics.put("survival.timeouts", found["timeouts"], "failures", "jobs.parquet", found["seen"])
    if total := found["seen_s"]:
        for name in of_outcome:
            metrics.put(f"data.{name}_time_share", found[f"{name}_s"] / total, "share", "jobs.parquet", found["seen"])
    queue = Counted.of(counts(jobs, queue_s=pl.col("queue_s")), "queue_s")
    if queue.size:
        metrics.put("queue.median", queue.median(), "s", "jobs.parquet", queue.size)
        metrics.put("queue.p90", queue.percentile(90), "s", "jobs.parquet", queue.size)


def of_agreement(metrics: Metrics, agreement: pl.DataFrame) -> None:
    """How often the instances' times and the job's own record agree, and by how much they differ."""
    source = "tables/runtime_agreement.csv"
    for row in agreement.iter_rows(named=True):
        if row["n"]:
            for name, unit in (("equal_share", "share"), ("difference_median_s", "s"), ("difference_p95_s", "s")):
                metrics.put(f"agreement.{row['time']}.{name}", row[name], unit, source, row["n"])


def of_outcomes(metrics: Metrics, outcomes: pl.DataFrame) -> None:
    """Jobs, shares and run times by outcome; the share of failures among the jobs that ended, with its interval.

    timeouts: failures that a time limit ended; timeout_share: of the failures. failure_share_without_timeout: the other
    failures among the jobs that ended otherwise, (failures - timeouts) / (ended - timeouts).
    """
    source = "tables/outcomes.csv"
    jobs, at_limit = dict.fromkeys(OUTCOMES, 0), None
    for row in outcomes.iter_rows(named=True):
        outcome = row["outcome"]
        jobs[outcome] = row["jobs"]
        at_limit = row["at_time_limit"] if outcome == "failure" else at_limit
        metrics.put(f"outcomes.{outcome}.jobs", row["jobs"], "jobs", source)
        metrics.put(f"outcomes.{outcome}.jobs_share", row["jobs_share"], "share", source, outcomes["jobs"].sum())
        metrics.put(f"outcomes.{outcome}.gpu_hours", row["gpu_hours"], "GPU hours", source, row["n"])
        metrics.put(f"outcomes.{outcome}.gpu_hours_share", row["gpu_hours_share"], "share", source, row["n"])
        for name in ("runtime_mean_s", "runtime_median_s", "runtime_p90_s"):
            metrics.put(f"outcomes.{outcome}.{name}", row[name], "s", source, row["n"])
        metrics.put(f"outcomes.{outcome}.with_runtime", row["n"], "jobs", source, row["jobs"])
    ended = jobs["success"] + jobs["failure"]
    metrics.put("outcomes.ended", ended, "jobs", source)
    if every := sum(jobs.values()):
        metrics.put("outcomes.ended_share", ended / every, "share", source, every)
    if ended:
        low, high = wilson_interval([jobs["failure"]], [ended])
        metrics.put("outcomes.failure_share", jobs["failure"] / ended, "share", source, ended)
        metrics.put("outcomes.failure_share_low", float(low[0]), "share", source, ended)
        metrics.put("outcomes.failure_share_high", float(high[0]), "share", source, ended)
    if unknown := jobs["unknown"]:
        # Whatever became of those that ended with no result recorded.
        every = ended + unknown
        metrics.put("outcomes.failure_share_at_least", jobs["failure"] / every, "share", source, every)
        metrics.put("outcomes.failure_share_at_most", (jobs["failure"] + unknown) / every, "share", source, every)
    metrics.put("outcomes.timeouts", at_limit, "jobs", source, jobs["failure"])
    if at_limit:
        metrics.put("outcomes.timeout_share", at_limit / jobs["failure"], "share", source, jobs["failure"])
        # Time limits leave the failures and the jobs that ended alike.
        rest = ended - at_limit
        without = (jobs["failure"] - at_limit) / rest if rest else None
        metrics.put("outcomes.failure_share_without_timeout", without, "share", source, rest)


def of_median_run_times(metrics: Metrics, jobs: Rows) -> None:
    """The interval of the median run time of successes and of failures."""
    for outcome in ("success", "failure"):
        times = Counted.of(counts(jobs.filter(pl.col("outcome") == outcome), time=pl.col("runtime_s")), "time")
        for end, value in zip(("low", "high"), median_interval(times.size, times.at), strict=True):
            metrics.put(f"outcomes.{outcome}.runtime_median_{end}_s", value, "s", "jobs.parquet", times.size)


def of_failure_share(metrics: Metrics, shares: pl.DataFrame) -> None:
    """Per feature, the values with the highest and the lowest failure share (FEWEST_ENDED jobs or more ended)."""
    source = "tables/failure_share.csv"
    counted = shares.filter(pl.col("ended") >= FEWEST_ENDED).sort("failure_share", maintain_order=True)
    for (feature,), rows in counted.group_by(["feature"], maintain_order=True):
        metrics.put(f"failure_share.{feature}.values", rows.height, "values", source)
        if rows.height < 2:
            continue
        for end, row in (("lowest", rows.row(0, named=True)), ("highest", rows.row(-1, named=True))):
            metrics.put(f"failure_share.{feature}.{end}.value", row["value"], "label", source, row["ended"])
            for name in ("failure_share", "ci_low", "ci_high"):
                metrics.put(f"failure_share.{feature}.{end}.{name}", row[name], "share", source, row["ended"])


def of_run_times(metrics: Metrics, groups: pl.DataFrame) -> None:
    """Mean run time by GPU type, for success and failure: the longest and the shortest mean of FEWEST_ENDED or more."""
    source = "tables/runtime_by_group.csv"
    types = groups.filter((pl.col("feature") == "gpu_type") & pl.col("cutoff_s").is_null())
    for outcome_set in ("success", "failure"):
        rows = types.filter((pl.col("outcome_set") == outcome_set) & (pl.col("jobs") >= FEWEST_ENDED))
        rows = rows.sort("runtime_mean_s", maintain_order=True)
        if rows.height < 2:
            continue
        for end, row in (("shortest", rows.row(0, named=True)), ("longest", rows.row(-1, named=True))):
            key = f"runtime_by_gpu_type.{outcome_set}.{end}"
            metrics.put(f"{key}.value", row["value"], "label", source, row["jobs"])
            metrics.put(f"{key}.runtime_mean_s", row["runtime_mean_s"], "s", source, row["jobs"])


def of_correlations(metrics: Metrics, correlations: pl.DataFrame) -> None:
    """Without cut-off, per outcome set and feature: Pearson over group means and Spearman over jobs."""
    source = "tables/correlations.csv"
    chosen = correlations.filter(
        pl.col("cutoff_s").is_null()
        & (
            ((pl.col("unit") == "group_mean") & (pl.col("method") == "pearson"))
            | ((pl.col("unit") == "job") & (pl.col("method") == "spearman"))
        )
    )
    for row in chosen.iter_rows(named=True):
        if row["estimate"] is not None:
            key = f"correlations.{row['outcome_set']}.{row['feature']}.{row['unit']}"
            for name in ("estimate", "ci_low", "ci_high", "p_value", "p_adjusted"):
                metrics.put(f"{key}.{name}", row[name], "r" if "p_" not in name else "p", source, row["n"])
            metrics.put(f"{key}.reject", row["reject"], "truth", source, row["n"])
