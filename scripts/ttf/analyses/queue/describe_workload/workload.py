"""What the jobs are like: run times and delays by kind of job, requests and use, recurrence, how much is waiting."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_workload import GPU_REQUESTS, PERCENTILES, RECURRENCE, REQUEST_USE, WAIT_SHARE
from ttf.engine.counts import Counted, Rows, code, commonest, counts, labels
from ttf.engine.exact_sums import parts_of
from ttf.records.jobs import GPU_BUCKETS, OUTCOMES, gpu_bucket, whole_gpus

PERCENTS = (25, 50, 75, 80, 90, 95, 99)
# Run time, queueing delay, and time from the first start to the last end where attempts make that another.
QUANTITIES = ("runtime_s", "queue_s", "wall_s")
ALL = "all"
OUTCOME_SETS = (ALL, "success", "failure", "cancelled")
# What an instance asked for, by whether it shares a GPU with others.
GPU_SHARES = ("no GPU", "share of a GPU", "whole GPUs")
# Milli-GPU per instance: from (included) and to (not included).
REQUEST_BUCKETS = {
    "below 25%": (1, 250),
    "25 to below 50%": (250, 500),
    "50 to below 100%": (500, 1000),
    "100%": (1000, 1001),
    "above 100%": (1001, None),
}
MOST_ACCOUNTS = 20
# Jobs of one recurrence group.
RECURRENCES = (1, 2, 5, 10, 100)

# Resource -> what was asked for and what was used, per instance.
RESOURCES = {
    "cpu": ("cpu_milli", "cpu_used_milli"),
    "gpu": ("gpu_milli", "gpu_used_milli"),
    "memory": ("mem_mib", "mem_used_mib"),
}
USED_LESS, USED_MORE = pl.col("used") < pl.col("asked"), pl.col("used") > pl.col("asked")


def percentiles(jobs: Rows) -> pl.DataFrame:
    """Mean and percentiles of QUANTITIES by kind of job and outcome (PERCENTILES).

    jobs: the common job record; wall_s where the format has it. Groups: all; gpu_type; gpus (GPU_BUCKETS); gpu_request
    (GPU_SHARES, per instance); account (the MOST_ACCOUNTS with the most jobs). One without a known time has no row.
    """
    groups = _groups(jobs)
    rows = []
    for quantity in (name for name in QUANTITIES if name in jobs.collect_schema()):
        # Negative times do not occur: formats blank them.
        kinds = {name: place for name, (_, place) in groups.items()}
        found = counts(jobs, time=pl.col(quantity), outcome=code("outcome", OUTCOMES), **kinds)
        times, n, outcome = (found[name].to_numpy() for name in ("time", "n", "outcome"))
        for outcome_set in OUTCOME_SETS:
            in_set = np.ones(n.size, bool) if outcome_set == ALL else outcome == OUTCOMES.index(outcome_set)
            places = np.flatnonzero(in_set)
            for group_by, (names, _) in groups.items():
                named = {"quantity": quantity, "outcome_set": outcome_set, "group_by": group_by}
                for group, place in parts_of(places, found[group_by].to_numpy()[places]):
                    part = Counted(times[place], n[place])
                    about = {"group": names[group], "n": part.size, "mean_s": part.mean()}
                    rows.append(named | about | {f"p{p}_s": part.percentile(p) for p in PERCENTS})
    return PERCENTILES.frame(rows)


def _groups(jobs: Rows) -> dict[str, tuple[Sequence[str], pl.Expr]]:
    """Each way to divide jobs: the labels in order, and the place of a job's among them; -1 where it has none."""
    types, accounts = labels(jobs, "gpu_type"), sorted(commonest(jobs, "account", MOST_ACCOUNTS))
    gpu_request = pl.when(pl.col("gpu_milli") >= 1000).then(2).when(pl.col("gpu_milli") > 0).then(1).otherwise(0)
    return {
        ALL: ([ALL], pl.lit(0)),
        "gpu_type": (types, code("gpu_type", types)),
        "gpus": (list(GPU_BUCKETS), gpu_bucket(whole_gpus()).fill_null(-1)),
        "gpu_request": (GPU_SHARES, gpu_request),
        "account": (accounts, code("account", accounts)),
    }


def gpu_requests(jobs: Rows) -> pl.DataFrame:
    """How jobs that asked for a GPU share out over what each instance asked for: overall and by type (GPU_REQUESTS)."""
    types = labels(jobs, "gpu_type")
    asked = counts(
        jobs.lazy().filter(pl.col("gpu_milli") > 0), gpu_type=code("gpu_type", types), gpu_milli=pl.col("gpu_milli")
    )
    rows = []
    for group_by, group, part in [
        (ALL, ALL, asked),
        *(("gpu_type", name, asked.filter(pl.col("gpu_type") == place)) for place, name in enumerate(types)),
    ]:
        n = part["n"].sum()
        for name, (low, high) in REQUEST_BUCKETS.items():
            below = pl.col("gpu_milli") < high if high else True
            found = part.filter(pl.col("gpu_milli") >= low, below)["n"].sum()
            if n:
                rows.append((group_by, group, name, found, n, found / n))
    return pl.DataFrame(rows, schema=GPU_REQUESTS.schema, orient="row")


def request_against_use(jobs: Rows) -> pl.DataFrame:
    """Of each resource: how many jobs asked for more than they used, and how many used more (REQUEST_USE)."""
    rows = []
    for resource, (asked, used) in RESOURCES.items():
        if used not in jobs.collect_schema():
            rows.append({"resource": resource, "n": 0, "reason": "the trace does not measure its use"})
            continue
        both = counts(jobs, asked=pl.col(asked), used=pl.col(used))
        if not both.height:
            rows.append({"resource": resource, "n": 0, "reason": "no job has both a request and a measured use"})
            continue
        n = both["n"].sum()
        more, less = (both.filter(which)["n"].sum() for which in (USED_LESS, USED_MORE))
        shares = both.filter(pl.col("asked") > 0).select("n", share=pl.col("used") / pl.col("asked")).sort("share")
        row = {"resource": resource, "n": n, "asked_more": more, "asked_more_share": more / n}
        row |= {"used_more": less, "used_more_share": less / n}
        rows.append(row | {"used_median_share": Counted.of(shares, "share").median() if shares.height else None})
    return REQUEST_USE.frame(rows)


def recurrence(jobs: Rows) -> pl.DataFrame:
    """How many jobs belong to groups of at least so many jobs (RECURRENCE); of recurrence_group where there is one."""
    rows = []
    for group_by in ("recurrence_group", "user"):
        if group_by not in jobs.collect_schema():
            continue
        # No two names have the same 128 bits, which take less room than the names.
        bits = [pl.col(group_by).hash(seed).alias(f"{seed}") for seed in (0, 1)]
        sizes = (
            jobs.lazy()
            .filter(pl.col(group_by).is_not_null())
            .group_by(bits)
            .agg(jobs=pl.len().cast(pl.Int64))
            .group_by("jobs")
            .agg(groups=pl.len().cast(pl.Int64))
            .collect(engine="streaming")
        )
        members = pl.col("jobs") * pl.col("groups")
        n = sizes.select(members.sum()).item()
        for at_least in RECURRENCES if n else ():
            large = sizes.filter(pl.col("jobs") >= at_least)
            groups, found = large.select(pl.col("groups").sum(), members.sum()).row(0)
            rows.append((group_by, at_least, groups, found, n, found / n))
    return pl.DataFrame(rows, schema=RECURRENCE.schema, orient="row")


def wait_share(jobs: Rows) -> pl.DataFrame:
    """How many jobs wait for more than half of their time to completion: delay and run time together (WAIT_SHARE).

    run_length: `short` where a job ran no longer than the median (limit_s), else `long`. A group without jobs has no
    row.
    """
    queue, run = pl.col("queue_s"), pl.col("runtime_s")
    known = jobs.lazy().select("queue_s", "runtime_s").filter(queue + run > 0)
    times = counts(known, run=run)
    if not times.height:
        return WAIT_SHARE.frame([])
    limit = Counted.of(times, "run").median()
    found = known.group_by(is_long=run > limit, over=queue > run, share=queue / (queue + run))
    shares = found.agg(n=pl.len().cast(pl.Int64)).collect(engine="streaming").sort("share")
    rows = []
    for group_by, group, part in (
        ("all", "all", shares),
        ("run_length", "short", shares.filter(~pl.col("is_long"))),
        ("run_length", "long", shares.filter("is_long")),
    ):
        if not part.height:
            continue
        n, over = part["n"].sum(), part.filter("over")["n"].sum()
        row = {"group_by": group_by, "group": group, "limit_s": limit if group_by == "run_length" else None, "n": n}
        row |= {"over_half": over, "over_half_share": over / n}
        rows.append(row | {"wait_median_share": Counted.of(part, "share").median()})
    return WAIT_SHARE.frame(rows)
