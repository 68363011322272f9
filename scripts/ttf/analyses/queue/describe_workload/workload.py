"""Tables of run times and delays by kind of job, requests and use, recurrence, and the share of time spent waiting."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_workload import GPU_REQUESTS, PERCENTILES, RECURRENCE, REQUEST_USE, WAIT_SHARE
from ttf.engine.counts import Rows, ValueCounts, count_rows, distinct_texts, most_frequent, text_codes
from ttf.engine.exact_sums import split_by_code
from ttf.records.jobs import GPU_BUCKETS, OUTCOMES, gpu_bucket, whole_gpus

PERCENTS = (25, 50, 75, 80, 90, 95, 99)
# Run time, queueing delay, and time from first start to last end: longer than the run time if a job was retried.
QUANTITIES = ("runtime_s", "queue_s", "wall_s")
ALL = "all"
OUTCOME_SETS = (ALL, "success", "failure", "cancelled")
# The request of an instance, by whether it shares a GPU with others.
GPU_SHARES = ("no GPU", "share of a GPU", "whole GPUs")
# Milli-GPU per instance: low (inclusive) and high (exclusive).
REQUEST_BUCKETS = {
    "below 25%": (1, 250),
    "25 to below 50%": (250, 500),
    "50 to below 100%": (500, 1000),
    "100%": (1000, 1001),
    "above 100%": (1001, None),
}
MOST_ACCOUNTS = 20
# Minimum number of jobs in a recurrence group.
RECURRENCES = (1, 2, 5, 10, 100)

# Resource -> columns of what was requested and what was used, per instance.
RESOURCES = {
    "cpu": ("cpu_milli", "cpu_used_milli"),
    "gpu": ("gpu_milli", "gpu_used_milli"),
    "memory": ("mem_mib", "mem_used_mib"),
}
USED_LESS, USED_MORE = pl.col("used") < pl.col("requested"), pl.col("used") > pl.col("requested")


def percentiles(jobs: Rows) -> pl.DataFrame:
    """Return mean and percentiles of QUANTITIES by kind of job and outcome (PERCENTILES).

    jobs: the common job record, with wall_s if the format has it. Groupings: all; gpu_type; gpus (GPU_BUCKETS);
    gpu_request (GPU_SHARES, per instance); account (the MOST_ACCOUNTS with the most jobs). A group without a known
    time has no row.
    """
    groupings = _groupings(jobs)
    rows = []
    for quantity in (name for name in QUANTITIES if name in jobs.collect_schema()):
        # Negative times do not occur: formats blank them.
        label_indices = {name: label_index for name, (_, label_index) in groupings.items()}
        time_counts = count_rows(jobs, time=pl.col(quantity), outcome=text_codes("outcome", OUTCOMES), **label_indices)
        times, n, outcome = (time_counts[name].to_numpy() for name in ("time", "n", "outcome"))
        for outcome_set in OUTCOME_SETS:
            is_in_set = np.ones(n.size, bool) if outcome_set == ALL else outcome == OUTCOMES.index(outcome_set)
            set_rows = np.flatnonzero(is_in_set)
            for group_by, (group_labels, _) in groupings.items():
                keys = {"quantity": quantity, "outcome_set": outcome_set, "group_by": group_by}
                for group, group_rows in split_by_code(set_rows, time_counts[group_by].to_numpy()[set_rows]):
                    group_times = ValueCounts(times[group_rows], n[group_rows])
                    row = keys | {"group": group_labels[group], "n": group_times.size, "mean_s": group_times.mean()}
                    rows.append(row | {f"p{p}_s": group_times.percentile(p) for p in PERCENTS})
    return PERCENTILES.frame(rows)


def _groupings(jobs: Rows) -> dict[str, tuple[Sequence[str], pl.Expr]]:
    """Map each grouping to its labels in order and to the index of a job's label, -1 if it has none."""
    types, accounts = distinct_texts(jobs, "gpu_type"), sorted(most_frequent(jobs, "account", MOST_ACCOUNTS))
    gpu_request = pl.when(pl.col("gpu_milli") >= 1000).then(2).when(pl.col("gpu_milli") > 0).then(1).otherwise(0)
    return {
        ALL: ([ALL], pl.lit(0)),
        "gpu_type": (types, text_codes("gpu_type", types)),
        "gpus": (list(GPU_BUCKETS), gpu_bucket(whole_gpus()).fill_null(-1)),
        "gpu_request": (GPU_SHARES, gpu_request),
        "account": (accounts, text_codes("account", accounts)),
    }


def gpu_requests(jobs: Rows) -> pl.DataFrame:
    """Count the jobs that request a GPU by the request per instance, overall and by GPU type (GPU_REQUESTS)."""
    types = distinct_texts(jobs, "gpu_type")
    requests = count_rows(
        jobs.lazy().filter(pl.col("gpu_milli") > 0),
        gpu_type=text_codes("gpu_type", types),
        gpu_milli=pl.col("gpu_milli"),
    )
    rows = []
    for group_by, group, group_requests in [
        (ALL, ALL, requests),
        *(("gpu_type", name, requests.filter(pl.col("gpu_type") == index)) for index, name in enumerate(types)),
    ]:
        n = int(group_requests["n"].sum())
        for name, (low, high) in REQUEST_BUCKETS.items():
            is_below_high = pl.col("gpu_milli") < high if high else True
            bucket_jobs = int(group_requests.filter(pl.col("gpu_milli") >= low, is_below_high)["n"].sum())
            if n:
                rows.append((group_by, group, name, bucket_jobs, n, bucket_jobs / n))
    return pl.DataFrame(rows, schema=GPU_REQUESTS.schema, orient="row")


def request_against_use(jobs: Rows) -> pl.DataFrame:
    """Count, for each resource, the jobs that requested more than they used and those that used more (REQUEST_USE)."""
    rows = []
    for resource, (requested_column, used_column) in RESOURCES.items():
        if used_column not in jobs.collect_schema():
            rows.append({"resource": resource, "n": 0, "reason": "the trace does not measure its use"})
            continue
        measured = count_rows(jobs, requested=pl.col(requested_column), used=pl.col(used_column))
        if not measured.height:
            rows.append({"resource": resource, "n": 0, "reason": "no job has both a request and a measured use"})
            continue
        n = int(measured["n"].sum())
        n_over, n_under = (int(measured.filter(comparison)["n"].sum()) for comparison in (USED_LESS, USED_MORE))
        requests = measured.filter(pl.col("requested") > 0)
        shares = requests.select("n", share=pl.col("used") / pl.col("requested")).sort("share")
        row = {"resource": resource, "n": n, "requested_more_share": n_over / n, "used_more_share": n_under / n}
        rows.append(
            row | {"used_median_share": ValueCounts.from_frame(shares, "share").median() if shares.height else None}
        )
    return REQUEST_USE.frame(rows)


def recurrence(jobs: Rows) -> pl.DataFrame:
    """Count the jobs in groups of at least RECURRENCES jobs, by recurrence_group and by user (RECURRENCE)."""
    rows = []
    for group_by in ("recurrence_group", "user"):
        if group_by not in jobs.collect_schema():
            continue
        # Sorting 64-bit hashes takes a fifth of the time of grouping by name, and less memory.
        members = pl.col(group_by).drop_nulls().hash().sort().rle().struct.field("len").cast(pl.Int64)
        sizes = count_rows(jobs.lazy().select(members), jobs=pl.col("len")).rename({"n": "groups"})
        member_jobs = pl.col("jobs") * pl.col("groups")
        n = sizes.select(member_jobs.sum()).item()
        for at_least in RECURRENCES if n else ():
            large_groups = sizes.filter(pl.col("jobs") >= at_least)
            groups, group_jobs = large_groups.select(pl.col("groups").sum(), member_jobs.sum()).row(0)
            rows.append((group_by, at_least, groups, group_jobs, n, group_jobs / n))
    return pl.DataFrame(rows, schema=RECURRENCE.schema, orient="row")


def wait_share(jobs: Rows) -> pl.DataFrame:
    """Count the jobs that wait for more than half of their time to completion: delay plus run time (WAIT_SHARE).

    run_length: `short` if a job ran no longer than the median (limit_s), else `long`. A group without jobs has no row.
    """
    queue, run = pl.col("queue_s"), pl.col("runtime_s")
    timed_jobs = jobs.lazy().select("queue_s", "runtime_s").filter(queue + run > 0)
    times = count_rows(timed_jobs, run=run)
    if not times.height:
        return WAIT_SHARE.frame([])
    limit = ValueCounts.from_frame(times, "run").median()
    wait_groups = timed_jobs.group_by(is_long=run > limit, is_over_half=queue > run)
    shares = wait_groups.agg(n=pl.len().cast(pl.Int64)).collect(engine="streaming")
    rows = []
    for group_by, group, group_shares in (
        ("all", "all", shares),
        ("run_length", "short", shares.filter(~pl.col("is_long"))),
        ("run_length", "long", shares.filter("is_long")),
    ):
        if not group_shares.height:
            continue
        n, jobs_over_half = int(group_shares["n"].sum()), int(group_shares.filter("is_over_half")["n"].sum())
        row = {"group_by": group_by, "group": group, "limit_s": limit if group_by == "run_length" else None, "n": n}
        rows.append(row | {"over_half_share": jobs_over_half / n})
    return WAIT_SHARE.frame(rows)
