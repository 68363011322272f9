"""Retries of jobs, run time of failed attempts, and failed attempts per job and user."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_attempts import FAILED_ATTEMPTS, OUTCOMES_WINDOW, RETRIES, RUNTIME_TO_FAILURE
from ttf.analyses.queue.describe_attempts.delays import ALL
from ttf.engine.exact_sums import percentile, total
from ttf.records.clusters import CLUSTER_COLUMNS, add_levels
from ttf.records.jobs import GPU_BUCKETS, OUTCOMES, gpu_bucket, whole_gpus
from ttf.records.runs import gpu_time
from ttf.stats.basics.normal import Z_95
from ttf.stats.clustered import add_limits, build_clusters, clustered_shares, join_clustered, sum_by_cluster
from ttf.stats.shares import add_wilson, divide

# Outcomes of ended jobs.
ENDED = ("success", "failure", "cancelled", "unknown")
# Numbers of failed attempts of a job or user.
LOWEST_COUNTS = (1, 2, 5, 10)
RECORDED, PROXY = "recorded", "proxy"
_MILLI_S_AN_HOUR = 3_600_000
CONFIDENCE = 0.95


def list_started_attempts(ordered: pl.DataFrame) -> pl.DataFrame:
    """List the attempts of `delays.order_attempts` that started.

    failed: the attempt ended in failure. An attempt without an outcome (Philly records only that of the last attempt)
    counts as failed, because it was retried, and is_proxy. gpu_milli: of the attempt, else of its job, else 0.
    """
    is_proxy = pl.col("outcome").is_null()
    return ordered.filter(pl.col("start_s").is_not_null()).select(
        "job",
        "user",
        "submit_s",
        "bucket",
        "runtime_s",
        gpu_milli=pl.coalesce("gpu_milli", "job_gpu_milli", pl.lit(0, dtype=pl.Int64)),
        outcome=pl.col("outcome").fill_null("failure"),
        failed=is_proxy | (pl.col("outcome") == "failure"),
        is_proxy=is_proxy,
    )


def failure_basis(started: pl.DataFrame) -> str:
    """Return how failed attempts are known: by recorded outcomes, or if any attempt has none, by proxy."""
    return PROXY if started["is_proxy"].any() else RECORDED


def count_ended_jobs(jobs: pl.DataFrame) -> pl.DataFrame:
    """Count the jobs that ended after at least one attempt: gpus, retries, failed, CLUSTER_COLUMNS, n."""
    ended_jobs = jobs.filter(pl.col("outcome").is_in(ENDED) & (pl.col("attempts") > 0))
    retries, has_failed = pl.col("attempts") - 1, pl.col("outcome") == "failure"
    keyed_jobs = ended_jobs.group_by(*CLUSTER_COLUMNS, gpus=whole_gpus(), retries=retries, failed=has_failed)
    return keyed_jobs.agg(n=pl.len().cast(pl.Int64))


def build_retries(ended_counts: pl.DataFrame) -> pl.DataFrame:
    """Build RETRIES: retries and unsuccessful jobs by GPUs of the job, from `count_ended_jobs`.

    The interval of the mean is blank for one job, and never below 0. Cancelled and unknown jobs count in the
    denominator, as in ATC'19's table 6. A job without a GPU is under `all` only.
    """
    gpus, n = pl.col("gpus"), pl.col("n")
    # A power of two shares no bit with the number below it.
    is_power = (gpus > 0) & ((gpus & (gpus - 1)) == 0)
    ended_counts = ended_counts.with_columns(
        all=pl.lit(0, dtype=pl.Int64),
        gpus=gpu_bucket(gpus).fill_null(-1).cast(pl.Int64),
        gpu_count=pl.when(is_power).then(gpus).otherwise(-1),
    )
    sums = {
        "n": n.sum(),
        "retries": (pl.col("retries") * n).sum(),
        "squares": (pl.col("retries").cast(pl.Int128) ** 2 * n).sum(),
        "retried": n.filter(pl.col("retries") > 0).sum(),
        "failures": n.filter("failed").sum(),
    }
    parts = []
    for column in ("all", "gpus", "gpu_count"):
        keyed = ended_counts.filter(pl.col(column) >= 0).with_columns(key=column)
        counts = keyed.group_by("key").agg(**sums).sort("key")
        parts.append(_add_clustered(counts.with_columns(group_by=pl.lit(column)), keyed))
    rows = []
    for row in pl.concat(parts).iter_rows(named=True):
        n, total, squares = row["n"], row["retries"], row["squares"]
        labels = {"all": ALL, "gpu_count": str(row["key"])}
        cells = row | {"group": labels.get(row["group_by"]) or list(GPU_BUCKETS)[row["key"]]}
        cells |= {"retries_mean": total / n, "retried_share": row["retried"] / n}
        cells |= add_wilson("unsuccessful_share", row["failures"], n)
        if n > 1:
            margin = Z_95 * math.sqrt((n * squares - total * total) / (n * n * (n - 1)))
            cells |= {"retries_ci_low": max(total / n - margin, 0.0), "retries_ci_high": total / n + margin}
        else:
            cells["reason"] = "; ".join(filter(None, ("one job: no interval of the mean", row["reason"])))
        rows.append(cells)
    return RETRIES.frame(rows)


def _add_clustered(counts: pl.DataFrame, ended_counts: pl.DataFrame) -> pl.DataFrame:
    """Add clustered intervals of the mean of retries and the share of failures by `key`, or why they are blank."""
    count = pl.col("n")
    sums = {"n": count.sum(), "retries": (pl.col("retries") * count).sum(), "failed": count.filter("failed").sum()}
    strata, rows, clusters = build_clusters(sum_by_cluster(ended_counts, ["key"], **sums), ["key"], "n")
    retries, failures, n = (rows[name].to_numpy().astype(float) for name in ("retries", "failed", "n"))
    mean = add_limits(strata, *clusters.ratio(retries, n, CONFIDENCE))
    share = add_limits(strata, *clusters.proportion(failures, n, CONFIDENCE))
    mean = mean.select("key", pl.col("^ci_.*$").name.prefix("retries_"), mean_why_not="why_not")
    exact = counts.with_columns(ci_low=pl.lit(0.0), reason=pl.lit(None, dtype=pl.String))
    rows_with_limits = join_clustered(exact, share, ["key"]).join(mean, on="key", how="left", maintain_order="left")
    mean_reason = pl.when(pl.col("n") > 1).then("mean_why_not")
    # Mostly both have the same reason.
    same_reason = pl.when((pl.col("reason") == mean_reason).fill_null(False)).then("reason")
    reasons = pl.concat_str("reason", "mean: " + mean_reason, separator="; ", ignore_nulls=True)
    reason = same_reason.otherwise(pl.when(reasons != "").then(reasons))
    return rows_with_limits.with_columns(reason=reason).drop("ci_low", "mean_why_not")


def build_runtime_to_failure(started: pl.DataFrame) -> pl.DataFrame:
    """Build RUNTIME_TO_FAILURE: run time of the failed attempts among `started`, by GPUs of their job.

    basis `proxy`: an attempt that was followed by another counts as failed, whatever ended it (preemption looks the
    same); so does the last one of a failed job. Shares are of all failed attempts, including jobs without a known
    number of GPUs.
    """
    failed = started.filter("failed")
    total_s = total_gpu = 0
    rows = []
    for index, name in enumerate((ALL, *GPU_BUCKETS), start=-1):
        part = failed if name == ALL else failed.filter(pl.col("bucket") == index)
        timed = part.drop_nulls("runtime_s")
        times = np.sort(timed["runtime_s"].to_numpy())
        gpu_milli_s = timed.select(gpu_time().sum()).item() or 0
        sum_s = total(times)
        if name == ALL:
            total_s, total_gpu = sum_s, gpu_milli_s
        row = {"gpu_bucket": name, "basis": failure_basis(started), "trials": part.height, "n": times.size}
        row["gpu_hours"] = gpu_milli_s / _MILLI_S_AN_HOUR
        row |= {"trials_share": divide(part.height, failed.height), "rtf_share": divide(sum_s, total_s)}
        row["gpu_hours_share"] = divide(gpu_milli_s, total_gpu)
        if times.size:
            row |= {"mean_s": sum_s / times.size} | {f"p{p}_s": percentile(times, p) for p in (50, 90, 95)}
        else:
            row["reason"] = "no failed attempt has a known run time" if part.height else "no attempt failed"
        rows.append(row)
    return RUNTIME_TO_FAILURE.frame(rows)


def count_failed_attempts(jobs: pl.DataFrame, started: pl.DataFrame) -> pl.DataFrame:
    """Count the failed attempts (trials) of each job that has one, with its outcome and CLUSTER_COLUMNS."""
    job_counts = started.filter("failed").group_by("job", maintain_order=True).agg(trials=pl.len().cast(pl.Int64))
    return job_counts.hstack(jobs.select("outcome", *CLUSTER_COLUMNS)[job_counts["job"]]).drop("job")


def build_failed_attempts(job_counts: pl.DataFrame, started: pl.DataFrame) -> pl.DataFrame:
    """Build FAILED_ATTEMPTS: failed attempts per job and per user.

    job_counts: from `count_failed_attempts`; started: the failed attempts. failed_job: jobs that failed after an
    attempt; job: all with a failed attempt, including those that succeeded later. A user is a cluster.
    """
    failed = started.filter("failed")
    failed_jobs = job_counts.filter(pl.col("outcome") == "failure")
    user_counts = failed.drop_nulls("user").group_by("user", maintain_order=True).agg(trials=pl.len().cast(pl.Int64))
    user_counts = add_levels(user_counts, {"user": ["user"]})
    basis = failure_basis(started)
    rows = []
    for group_by, counts in (("failed_job", failed_jobs), ("job", job_counts), ("user", user_counts)):
        failed_counts = counts["trials"]
        n, total = failed_counts.len(), int(failed_counts.sum())
        for at_least in LOWEST_COUNTS:
            selected = failed_counts.filter(failed_counts >= at_least)
            row = {"group_by": group_by, "basis": basis, "at_least": at_least, "groups": selected.len(), "n": n}
            # All have one by definition, so that share has no interval.
            shares: dict = add_wilson("groups_share", selected.len(), n) if at_least > 1 else {"groups_share": 1.0}
            shares |= {"trials_mean": divide(total, n), "trials_share": divide(int(selected.sum()), total)}
            if n and at_least > 1:
                exact = pl.DataFrame(
                    {"group_by": group_by, "ci_low": 0.0, "reason": None}, schema_overrides={"reason": pl.String}
                )
                clustered = clustered_shares(counts, [], (pl.col("trials") >= at_least).sum(), pl.len())
                shares |= (
                    join_clustered(exact, clustered.with_columns(group_by=pl.lit(group_by)), ["group_by"])
                    .drop("ci_low")
                    .row(0, named=True)
                )
            rows.append(row | {"trials": total} | (shares if n else {"reason": "no attempt failed"}))
    return FAILED_ATTEMPTS.frame(rows)


def sum_outcomes(jobs: pl.DataFrame, started: pl.DataFrame, window: Sequence[int] | None) -> pl.DataFrame:
    """Sum by unit, outcome and in_window: n, gpu (milli-GPU seconds), blank (attempts without a run time)."""
    attempt_rows = started.select("job", "outcome", "submit_s", gpu=gpu_time(), blank=pl.col("runtime_s").is_null())
    job_sums = attempt_rows.group_by("job").agg(gpu=pl.col("gpu").sum(), blank=pl.col("blank").sum())
    job_rows = jobs.with_row_index("job").select("job", "outcome", "submit_s").join(job_sums, on="job", how="left")
    is_in_window = pl.lit(False)
    if window:
        is_in_window = pl.col("submit_s").is_between(window[0], window[1], closed="left").fill_null(False)
    sums = {"n": pl.len().cast(pl.Int64), "gpu": pl.col("gpu").sum(), "blank": pl.col("blank").sum().cast(pl.Int64)}
    return pl.concat(
        rows.group_by(pl.lit(unit).alias("unit"), "outcome", in_window=is_in_window).agg(**sums)
        for unit, rows in (("job", job_rows), ("attempt", attempt_rows))
    )


def build_outcomes_window(sums: pl.DataFrame, basis: str, window: Sequence[int] | None) -> pl.DataFrame:
    """Build OUTCOMES_WINDOW: jobs and attempts by outcome and GPU time, in the whole trace and in a window.

    sums: from `sum_outcomes`; basis: `failure_basis` of the attempts. window: from (included) and to (not included), s
    on the trace's clock; a job is in it by its submission, an attempt by that of its job. unit job: GPU time of all
    attempts of the job. unit attempt: each by its own outcome; without one it counts as a failure. A row per outcome
    that occurs in the trace (success and failure always).
    """
    basis_by_unit = {"job": RECORDED, "attempt": basis}
    rows = []
    for name, span in [("all", None), *([("window", window)] if window else [])]:
        keys = {"window": name} | ({"window_from_s": span[0], "window_to_s": span[1]} if span else {})
        for unit, unit_basis in basis_by_unit.items():
            frame = sums.filter(pl.col("unit") == unit)
            part = frame.filter("in_window") if span else frame
            occurring = set(frame["outcome"]) | {"success", "failure"}
            outcome_sums = part.group_by("outcome").agg(pl.col("n", "gpu", "blank").sum())
            counts = {outcome: values for outcome, *values in outcome_sums.iter_rows()}
            total, total_gpu = int(part["n"].sum()), sum(gpu for _, gpu, _ in counts.values())
            for outcome in (outcome for outcome in OUTCOMES if outcome in occurring):
                n, gpu, blank = counts.get(outcome, (0, 0, 0))
                reason = None if total_gpu else "no GPU time was seen" if total else f"no {unit} is in it"
                row = keys | {"unit": unit, "outcome": outcome, "basis": unit_basis, "n": n, "total": total}
                row |= {"n_share": divide(n, total), "gpu_hours": gpu / _MILLI_S_AN_HOUR, "without_end": blank}
                rows.append(row | {"gpu_hours_share": divide(gpu, total_gpu), "reason": reason})
    return OUTCOMES_WINDOW.frame(rows)
