"""The numbers that the report's prose uses, each with its unit, n and source: prose reads them from nowhere else."""

import polars as pl

from ttf.jobs import OUTCOMES, observed_s
from ttf.stats.shares import wilson_interval

# A value of a feature is named in the prose only if at least so many of its jobs ended; a job size, if so many failed.
FEWEST_ENDED = 30
FEWEST_FAILURES = 10


class Metrics(dict):
    """Key -> {value, unit, n, source}. A number that cannot be computed is left out: the prose then goes without it."""

    def put(self, key: str, value: float | int | str | None, unit: str, source: str, n: int | None = None) -> None:
        if value is not None:
            self[key] = {"value": value, "unit": unit, "n": n, "source": source}


def of_rows(metrics: Metrics, account: pl.DataFrame) -> None:
    """Raw rows read, kept and put aside."""
    source = "quality/row_account.csv"
    for name in ("rows_read", "rows_kept", "rows_quarantined"):
        metrics.put(f"data.{name}", int(account[name].sum()), "rows", source)


def of_lives(metrics: Metrics, lives: pl.DataFrame) -> None:
    """Of a component trace: units, lives, failures, and the time they took to repair where that was written down."""
    source = "lives.parquet"
    metrics.put("lives.units", lives["unit_id"].n_unique(), "units", source, lives.height)
    metrics.put("lives.lives", lives.height, "lives", source)
    metrics.put("lives.failures", int((lives["event"] == "failure").sum()), "failures", source, lives.height)
    metrics.put("lives.exposure_s", int(lives["duration_s"].sum()), "s", source, lives.height)
    if "repair_s" in lives.columns and (repairs := lives["repair_s"].drop_nulls()).len():
        metrics.put("repair.mean_s", repairs.sum() / repairs.len(), "s", source, repairs.len())
        metrics.put("repair.median_s", repairs.median(), "s", source, repairs.len())
        metrics.put("repair.p90_s", repairs.quantile(0.9, "linear"), "s", source, repairs.len())


def of_jobs(metrics: Metrics, jobs: pl.DataFrame, nodes: pl.DataFrame) -> None:
    """Jobs, users, nodes, GPUs, and the time from the first submission to the trace's end."""
    metrics.put("data.jobs", jobs.height, "jobs", "jobs.parquet")
    first, last = jobs["submit_s"].min(), jobs["trace_end_s"].max()
    if first is not None and last is not None:
        metrics.put("data.span_s", last - first, "s", "jobs.parquet", jobs.height)
    users = jobs["user"].drop_nulls().n_unique()
    metrics.put("data.users", users or None, "users", "jobs.parquet", jobs["user"].count())
    metrics.put("data.nodes", nodes.height or None, "nodes", "nodes.parquet")
    metrics.put("data.gpus", int(nodes["gpu_count"].sum()) or None, "GPUs", "nodes.parquet", nodes.height)
    gpu_jobs = int((jobs["gpu_milli"].fill_null(0) > 0).sum())
    metrics.put("data.gpu_jobs", gpu_jobs, "jobs", "jobs.parquet", jobs.height)
    if "runtime_from" in jobs.columns:
        fallback = int((jobs["runtime_from"] == "task").sum())
        metrics.put("data.runtime_from_task", fallback, "jobs", "jobs.parquet", jobs.height)
        negative = int(jobs["negative_queue"].sum())
        metrics.put("data.negative_queue", negative, "jobs", "jobs.parquet", jobs.height)
    seen = jobs.select("outcome", seen=observed_s()).filter(pl.col("seen").is_not_null())
    running = seen.filter(pl.col("outcome") == "running")
    if total := seen["seen"].sum():
        metrics.put("data.running_time_share", running["seen"].sum() / total, "share", "jobs.parquet", seen.height)
    queue = jobs["queue_s"].drop_nulls()
    if queue.len():
        metrics.put("queue.median", queue.median(), "s", "jobs.parquet", queue.len())
        metrics.put("queue.p90", queue.quantile(0.9, "linear"), "s", "jobs.parquet", queue.len())


def of_agreement(metrics: Metrics, agreement: pl.DataFrame) -> None:
    """How often the instances' times and the job's own record agree, and by how much they differ."""
    source = "tables/runtime_agreement.csv"
    for row in agreement.iter_rows(named=True):
        if row["n"]:
            for name, unit in (("equal_share", "share"), ("difference_median_s", "s"), ("difference_p95_s", "s")):
                metrics.put(f"agreement.{row['time']}.{name}", row[name], unit, source, row["n"])


def of_outcomes(metrics: Metrics, outcomes: pl.DataFrame) -> None:
    """Jobs, shares and run times by outcome; the share of failures among the jobs that ended, with its interval."""
    source = "tables/outcomes.csv"
    jobs = dict.fromkeys(OUTCOMES, 0)
    for row in outcomes.iter_rows(named=True):
        outcome = row["outcome"]
        jobs[outcome] = row["jobs"]
        metrics.put(f"outcomes.{outcome}.jobs", row["jobs"], "jobs", source)
        metrics.put(f"outcomes.{outcome}.jobs_share", row["jobs_share"], "share", source, outcomes["jobs"].sum())
        metrics.put(f"outcomes.{outcome}.gpu_hours", row["gpu_hours"], "GPU hours", source, row["n"])
        metrics.put(f"outcomes.{outcome}.gpu_hours_share", row["gpu_hours_share"], "share", source, row["n"])
        for name in ("runtime_mean_s", "runtime_median_s", "runtime_p90_s"):
            metrics.put(f"outcomes.{outcome}.{name}", row[name], "s", source, row["n"])
        metrics.put(f"outcomes.{outcome}.with_runtime", row["n"], "jobs", source, row["jobs"])
    ended = jobs["success"] + jobs["failure"]
    metrics.put("outcomes.ended", ended, "jobs", source)
    if ended:
        low, high = wilson_interval([jobs["failure"]], [ended])
        metrics.put("outcomes.failure_share", jobs["failure"] / ended, "share", source, ended)
        metrics.put("outcomes.failure_share_low", float(low[0]), "share", source, ended)
        metrics.put("outcomes.failure_share_high", float(high[0]), "share", source, ended)


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
    """Mean run time by GPU type, for success and failure: the types with the longest and the shortest."""
    source = "tables/runtime_by_group.csv"
    types = groups.filter((pl.col("feature") == "gpu_type") & pl.col("cutoff_s").is_null())
    for outcome_set in ("success", "failure"):
        rows = types.filter(pl.col("outcome_set") == outcome_set).sort("runtime_mean_s", maintain_order=True)
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


def of_survival(metrics: Metrics, summary: pl.DataFrame, survival: pl.DataFrame) -> None:
    """Over all lives: median time to failure, restricted mean, share without failure after an hour, a day, a year."""
    source = "tables/survival_summary.csv"
    failure = pl.col("event") == "failure"
    for row in summary.filter(failure & (pl.col("stratum_by") == "all")).iter_rows(named=True):
        metrics.put("survival.n", row["n"], "lives", source)
        metrics.put("survival.events", row["events"], "failures", source, row["n"])
        for name in ("median_s", "median_ci_low_s", "median_ci_high_s", "horizon_s", "restricted_mean_s"):
            metrics.put(f"survival.{name}", row[name], "s", source, row["n"])
        curve = survival.filter(failure & (pl.col("stratum_by") == "all"))
        for name, moment in (("1h", 3_600), ("1d", 86_400), ("1y", 31_536_000)):
            until = curve.filter(pl.col("time_s") <= moment)
            if until.height and row["horizon_s"] is not None and row["horizon_s"] >= moment:
                step = until.row(-1, named=True)
                for column in ("survival", "ci_low", "ci_high"):
                    metrics.put(f"survival.{name}.{column}", step[column], "share", "tables/survival.csv", row["n"])


def of_mttf(metrics: Metrics, mttf: pl.DataFrame, without_end: pl.DataFrame) -> None:
    """Mean time to failure over all lives and at the ends of the range of job sizes; what missing ends could change."""
    source = "tables/mttf.csv"
    at_95 = mttf.filter((pl.col("confidence") == 0.95) & (pl.col("event") == "failure"))
    for row in at_95.filter(pl.col("stratum_by") == "all").iter_rows(named=True):
        metrics.put("mttf.n", row["n"], "lives", source)
        metrics.put("mttf.events", row["events"], "failures", source, row["n"])
        for name in ("exposure_s", "mttf_s", "ci_low_s", "ci_high_s"):
            metrics.put(f"mttf.{name}", row[name], "s", source, row["n"])
        for name in ("gpu_days", "node_days"):
            metrics.put(f"mttf.{name}", row[name], name.replace("_", " "), source, row["n"])
            rate = f"failures_per_1000_{name}"
            metrics.put(f"mttf.{rate}", row[rate], f"failures per 1000 {name.replace('_', ' ')}", source, row["n"])
    sizes = at_95.filter((pl.col("stratum_by") == "gpu_count") & (pl.col("events") >= FEWEST_FAILURES)).with_columns(
        gpus=pl.col("stratum").cast(pl.Int64)
    )
    sizes = sizes.filter(pl.col("gpus") > 0).sort("gpus")
    if sizes.height >= 2:
        for end, row in (("smallest", sizes.row(0, named=True)), ("largest", sizes.row(-1, named=True))):
            metrics.put(f"mttf.{end}.gpus", row["gpus"], "GPUs", source, row["n"])
            metrics.put(f"mttf.{end}.events", row["events"], "failures", source, row["n"])
            for name in ("mttf_s", "ci_low_s", "ci_high_s"):
                metrics.put(f"mttf.{end}.{name}", row[name], "s", source, row["n"])
    source = "tables/failures_without_end.csv"
    for row in without_end.filter(pl.col("stratum_by") == "all").iter_rows(named=True):
        metrics.put("without_end.failures", row["failures"], "failures", source)
        metrics.put("without_end.without_end", row["without_end"], "failures", source, row["failures"])
        metrics.put("without_end.share", row["share_without_end"], "share", source, row["failures"])
        metrics.put("without_end.mttf_low_s", row["mttf_low_s"], "s", source, row["failures"])
        metrics.put("without_end.mttf_high_s", row["mttf_high_s"], "s", source, row["failures"])


def of_models(metrics: Metrics, models: pl.DataFrame) -> None:
    """The Weibull shape over all lives, with a 95 % interval on the log scale, and the model of lowest AIC."""
    source = "tables/lifetime_models.csv"
    overall = models.filter((pl.col("event") == "failure") & (pl.col("stratum_by") == "all") & pl.col("converged"))
    for row in overall.iter_rows(named=True):
        if row["best"]:
            metrics.put("models.best", row["model"], "label", source, row["n"])
        if row["model"] == "weibull":
            metrics.put("models.weibull.shape", row["shape"], "1", source, row["n"])
            metrics.put("models.weibull.scale_s", row["scale_s"], "s", source, row["n"])
            if row["shape"] and row["shape_se"] is not None:
                factor = 2.718281828459045 ** (1.959963984540054 * row["shape_se"] / row["shape"])
                metrics.put("models.weibull.shape_low", row["shape"] / factor, "1", source, row["n"])
                metrics.put("models.weibull.shape_high", row["shape"] * factor, "1", source, row["n"])
