"""How often jobs are tried, how long attempts run until they fail, and how often the same job fails."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_attempts import FAILED_ATTEMPTS, OUTCOMES_WINDOW, RETRIES, RUNTIME_TO_FAILURE
from ttf.analyses.queue.describe_attempts.delays import ALL
from ttf.engine.exact_sums import percentile, total
from ttf.records.clusters import CLUSTER_COLUMNS, with_levels
from ttf.records.jobs import GPU_BUCKETS, OUTCOMES, gpu_bucket, whole_gpus
from ttf.records.runs import gpu_time
from ttf.stats.basics.normal import Z_95
from ttf.stats.clustered import beside, by_cluster, clustered_shares, in_strata, with_limits
from ttf.stats.shares import part_of, with_wilson

# Outcomes of jobs that have ended.
ENDED = ("success", "failure", "cancelled", "unknown")
# Failed attempts of one job or user.
AT_LEAST = (1, 2, 5, 10)
RECORDED, PROXY = "recorded", "proxy"
_MILLI_S_AN_HOUR = 3_600_000
CONFIDENCE = 0.95


def tries(placed: pl.DataFrame) -> pl.DataFrame:
    """One row per attempt that started, by job and in sequence; placed: of `delays.placed`.

    failed: the attempt ended in failure; one without an outcome of its own (Philly gives only the last one of a job an
    outcome) counts as failed, as it was tried again, and is by_proxy. gpu_milli: of the attempt, else of its job, else
    0.
    """
    by_proxy = pl.col("outcome").is_null()
    return placed.filter(pl.col("start_s").is_not_null()).select(
        "job",
        "user",
        "submit_s",
        "bucket",
        "runtime_s",
        gpu_milli=pl.coalesce("gpu_milli", "job_gpu_milli", pl.lit(0, dtype=pl.Int64)),
        outcome=pl.col("outcome").fill_null("failure"),
        failed=by_proxy | (pl.col("outcome") == "failure"),
        by_proxy=by_proxy,
    )


def basis_of(tries: pl.DataFrame) -> str:
    """By what an attempt counts as failed: a recorded outcome, or (of any attempt) by proxy."""
    return PROXY if tries["by_proxy"].any() else RECORDED


def ended(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs that ENDED after at least one attempt, n of each kind: gpus, retries, failed, CLUSTER_COLUMNS."""
    chosen = jobs.filter(pl.col("outcome").is_in(ENDED) & (pl.col("attempts") > 0))
    kinds = {"gpus": whole_gpus(), "retries": pl.col("attempts") - 1, "failed": pl.col("outcome") == "failure"}
    return chosen.group_by(*CLUSTER_COLUMNS, **kinds).agg(n=pl.len().cast(pl.Int64))


def retries(ended: pl.DataFrame) -> pl.DataFrame:
    """Retries and unsuccessful jobs by GPUs of the job (RETRIES); of `ended` jobs.

    The interval of the mean is blank for one job, and never below 0. Cancelled and unknown jobs stand in the
    denominator, as in ATC'19's table 6. A job without a GPU is under `all` only.
    """
    gpus, n = pl.col("gpus"), pl.col("n")
    # A power of two has no bit in common with the number before it.
    is_power = (gpus > 0) & ((gpus & (gpus - 1)) == 0)
    ended = ended.with_columns(
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
    for by in ("all", "gpus", "gpu_count"):
        known = ended.filter(pl.col(by) >= 0).with_columns(key=by)
        counts = known.group_by("key").agg(**sums).sort("key")
        parts.append(_with_clustered(counts.with_columns(group_by=pl.lit(by)), known))
    rows = []
    for row in pl.concat(parts).iter_rows(named=True):
        n, sum_, squares = row["n"], row["retries"], row["squares"]
        labels = {"all": ALL, "gpu_count": str(row["key"])}
        about = row | {"group": labels.get(row["group_by"]) or list(GPU_BUCKETS)[row["key"]]}
        about |= {"retries_mean": sum_ / n, "retried_share": row["retried"] / n}
        about |= with_wilson("unsuccessful_share", row["failures"], n)
        if n > 1:
            half = Z_95 * math.sqrt((n * squares - sum_ * sum_) / (n * n * (n - 1)))
            about |= {"retries_ci_low": max(sum_ / n - half, 0.0), "retries_ci_high": sum_ / n + half}
        else:
            about["reason"] = "; ".join(filter(None, ("one job: no interval of the mean", row["reason"])))
        rows.append(about)
    return RETRIES.frame(rows)


def _with_clustered(counts: pl.DataFrame, ended: pl.DataFrame) -> pl.DataFrame:
    """The counts by `key` with the clustered intervals of the mean and of the share, and in `reason` why they lack."""
    n = pl.col("n")
    sums = {"n": n.sum(), "retries": (pl.col("retries") * n).sum(), "failed": n.filter("failed").sum()}
    strata, rows, clusters = in_strata(by_cluster(ended, ["key"], **sums), ["key"], "n")
    of_retries, of_failures, n = (rows[name].to_numpy().astype(float) for name in ("retries", "failed", "n"))
    mean = with_limits(strata, *clusters.ratio(of_retries, n, CONFIDENCE))
    share = with_limits(strata, *clusters.proportion(of_failures, n, CONFIDENCE))
    mean = mean.select("key", pl.col("^ci_.*$").name.prefix("retries_"), why_not_of_mean="why_not")
    exact = counts.with_columns(ci_low=pl.lit(0.0), reason=pl.lit(None, dtype=pl.String))
    found = beside(exact, share, ["key"]).join(mean, on="key", how="left", maintain_order="left")
    of_mean = pl.when(pl.col("n") > 1).then("why_not_of_mean")
    # Mostly one reason for both.
    reason = pl.when((pl.col("reason") == of_mean).fill_null(False)).then("reason")
    either = pl.concat_str("reason", "mean: " + of_mean, separator="; ", ignore_nulls=True)
    reason = reason.otherwise(pl.when(either != "").then(either))
    return found.with_columns(reason=reason).drop("ci_low", "why_not_of_mean")


def runtime_to_failure(tries: pl.DataFrame) -> pl.DataFrame:
    """How long failed attempts (of `tries`) ran, by GPUs of their job (RUNTIME_TO_FAILURE).

    basis `proxy`: an attempt that was followed by another counts as failed, whatever ended it (preemption looks alike);
    so does the last one of a failed job. Shares are of all failed attempts, also of jobs without a known number of
    GPUs.
    """
    failed = tries.filter("failed")
    all_s = all_gpu = 0
    rows = []
    for place, name in enumerate((ALL, *GPU_BUCKETS), start=-1):
        part = failed if name == ALL else failed.filter(pl.col("bucket") == place)
        known = part.drop_nulls("runtime_s")
        times = np.sort(known["runtime_s"].to_numpy())
        gpu = known.select(gpu_time().sum()).item() or 0
        sum_s = total(times)
        if name == ALL:
            all_s, all_gpu = sum_s, gpu
        row = {"gpu_bucket": name, "basis": basis_of(tries), "trials": part.height, "n": times.size}
        row |= {"rtf_total_s": sum_s, "gpu_hours": gpu / _MILLI_S_AN_HOUR}
        row |= {"trials_share": part_of(part.height, failed.height), "rtf_share": part_of(sum_s, all_s)}
        row["gpu_hours_share"] = part_of(gpu, all_gpu)
        if times.size:
            row |= {"mean_s": sum_s / times.size} | {f"p{p}_s": percentile(times, p) for p in (50, 90, 95)}
        else:
            row["reason"] = "no failed attempt has a known run time" if part.height else "no attempt failed"
        rows.append(row)
    return RUNTIME_TO_FAILURE.frame(rows)


def trials(jobs: pl.DataFrame, tries: pl.DataFrame) -> pl.DataFrame:
    """The jobs with a failed attempt: how many of these (trials), the outcome, CLUSTER_COLUMNS."""
    by_job = tries.filter("failed").group_by("job", maintain_order=True).agg(trials=pl.len().cast(pl.Int64))
    return by_job.hstack(jobs.select("outcome", *CLUSTER_COLUMNS)[by_job["job"]]).drop("job")


def failed_attempts(by_job: pl.DataFrame, tries: pl.DataFrame) -> pl.DataFrame:
    """How many failed attempts one job or one user has (FAILED_ATTEMPTS); of `trials` and the failed ones of `tries`.

    failed_job: jobs that failed after an attempt; job: all with a failed attempt, also those that went on to succeed.
    A user is a cluster.
    """
    failed = tries.filter("failed")
    of_failed = by_job.filter(pl.col("outcome") == "failure")
    by_user = failed.drop_nulls("user").group_by("user", maintain_order=True).agg(trials=pl.len().cast(pl.Int64))
    by_user = with_levels(by_user, {"user": ["user"]})
    basis = basis_of(tries)
    rows = []
    for group_by, counts in (("failed_job", of_failed), ("job", by_job), ("user", by_user)):
        trials = counts["trials"]
        n, sum_ = trials.len(), int(trials.sum())
        for at_least in AT_LEAST:
            chosen = trials.filter(trials >= at_least)
            row = {"group_by": group_by, "basis": basis, "at_least": at_least, "groups": chosen.len(), "n": n}
            # All have one, by definition: that share has no interval.
            shares = with_wilson("groups_share", chosen.len(), n) if at_least > 1 else {"groups_share": 1.0}
            shares |= {"trials_mean": part_of(sum_, n), "trials_share": part_of(int(chosen.sum()), sum_)}
            if n and at_least > 1:
                at = pl.DataFrame(
                    {"group_by": group_by, "ci_low": 0.0, "reason": None}, schema_overrides={"reason": pl.String}
                )
                alike = clustered_shares(counts, [], (pl.col("trials") >= at_least).sum(), pl.len())
                shares |= (
                    beside(at, alike.with_columns(group_by=pl.lit(group_by)), ["group_by"])
                    .drop("ci_low")
                    .row(0, named=True)
                )
            rows.append(row | {"trials": sum_} | (shares if n else {"reason": "no attempt failed"}))
    return FAILED_ATTEMPTS.frame(rows)


def outcome_sums(jobs: pl.DataFrame, tries: pl.DataFrame, window: Sequence[int] | None) -> pl.DataFrame:
    """unit (job or attempt), outcome, in_window; n, gpu (milli-GPU seconds), blank (attempts without a run time)."""
    timed = tries.select("job", "outcome", "submit_s", gpu=gpu_time(), blank=pl.col("runtime_s").is_null())
    of_job = timed.group_by("job").agg(gpu=pl.col("gpu").sum(), blank=pl.col("blank").sum())
    of_jobs = jobs.with_row_index("job").select("job", "outcome", "submit_s").join(of_job, on="job", how="left")
    is_in = pl.col("submit_s").is_between(*window, closed="left").fill_null(False) if window else pl.lit(False)
    sums = {"n": pl.len().cast(pl.Int64), "gpu": pl.col("gpu").sum(), "blank": pl.col("blank").sum().cast(pl.Int64)}
    return pl.concat(
        rows.group_by(pl.lit(unit).alias("unit"), "outcome", in_window=is_in).agg(**sums)
        for unit, rows in (("job", of_jobs), ("attempt", timed))
    )


def outcomes_window(sums: pl.DataFrame, basis: str, window: Sequence[int] | None) -> pl.DataFrame:
    """Jobs and attempts by outcome and GPU time, in the whole trace and in a window (OUTCOMES_WINDOW).

    sums: of `outcome_sums`; basis: `basis_of` the attempts. window: from (included) and to (not included), seconds on
    the trace's clock; a job is in it by its submission, an attempt by its job's. unit job: the GPU time is that of all
    attempts of the job. unit attempt: each by its own outcome; one without counts as a failure. A row per outcome that
    occurs in the trace (success and failure always).
    """
    bases = {"job": RECORDED, "attempt": basis}
    rows = []
    for name, span in [("all", None), *([("window", window)] if window else [])]:
        about = {"window": name} | ({"window_from_s": span[0], "window_to_s": span[1]} if span else {})
        for unit, of_unit in bases.items():
            frame = sums.filter(pl.col("unit") == unit)
            part = frame.filter("in_window") if span else frame
            occurring = set(frame["outcome"]) | {"success", "failure"}
            by_outcome = part.group_by("outcome").agg(pl.col("n", "gpu", "blank").sum())
            counts = {outcome: rest for outcome, *rest in by_outcome.iter_rows()}
            every, gpu_all = part["n"].sum(), sum(gpu for _, gpu, _ in counts.values())
            for outcome in (outcome for outcome in OUTCOMES if outcome in occurring):
                n, gpu, blank = counts.get(outcome, (0, 0, 0))
                reason = None if gpu_all else "no GPU time was seen" if every else f"no {unit} is in it"
                row = about | {"unit": unit, "outcome": outcome, "basis": of_unit, "n": n, "total": every}
                row |= {"n_share": part_of(n, every), "gpu_hours": gpu / _MILLI_S_AN_HOUR, "without_end": blank}
                rows.append(row | {"gpu_hours_share": part_of(gpu, gpu_all), "reason": reason})
    return OUTCOMES_WINDOW.frame(rows)
