"""What the jobs are like: run times and delays by kind of job, what they asked for and used, who does it again."""

import numpy as np
import polars as pl

from ttf.jobs import GPU_BUCKETS, gpu_bucket, whole_gpus
from ttf.stats.exact import parts_of, percentile, total
from ttf.stats.order import order_by

PERCENTS = (25, 50, 75, 80, 90, 95, 99)
# Run time, queueing delay, and time from the first start to the last end where attempts make that another.
QUANTITIES = ("runtime_s", "queue_s", "wall_s")
OUTCOME_SETS = {
    "all": pl.lit(True),
    **{name: pl.col("outcome") == name for name in ("success", "failure", "cancelled")},
}
# What an instance asked for, told apart by whether it shares a GPU with others.
GPU_SHARES = ("no GPU", "share of a GPU", "whole GPUs")
# Milli-GPU per instance: from (included) and to (not included).
REQUEST_BUCKETS = {
    "below 25 %": (1, 250),
    "25 to below 50 %": (250, 500),
    "50 to below 100 %": (500, 1000),
    "100 %": (1000, 1001),
    "above 100 %": (1001, None),
}
MOST_ACCOUNTS = 20
# Jobs of one recurrence group.
RECURRENCES = (1, 2, 5, 10, 100)

PERCENTILE_SCHEMA = {
    "quantity": pl.String,
    "outcome_set": pl.String,
    "group_by": pl.String,
    "group": pl.String,
    "n": pl.Int64,
    "mean_s": pl.Float64,
    **{f"p{percent}_s": pl.Float64 for percent in PERCENTS},
}
REQUEST_SCHEMA = {
    "group_by": pl.String,
    "group": pl.String,
    "gpu_request": pl.String,
    "jobs": pl.Int64,
    "n": pl.Int64,
    "jobs_share": pl.Float64,
}
USE_SCHEMA = {
    "resource": pl.String,
    "n": pl.Int64,
    "asked_more": pl.Int64,
    "asked_more_share": pl.Float64,
    "used_more": pl.Int64,
    "used_more_share": pl.Float64,
    "used_median_share": pl.Float64,
    "reason": pl.String,
}
RECURRENCE_SCHEMA = {
    "group_by": pl.String,
    "at_least": pl.Int64,
    "groups": pl.Int64,
    "jobs": pl.Int64,
    "n": pl.Int64,
    "jobs_share": pl.Float64,
}
# Resource -> what was asked for and what was used, per instance.
RESOURCES = {
    "cpu": ("cpu_milli", "cpu_used_milli"),
    "gpu": ("gpu_milli", "gpu_used_milli"),
    "memory": ("mem_mib", "mem_used_mib"),
}


def percentiles(jobs: pl.DataFrame) -> pl.DataFrame:
    """Mean and percentiles of QUANTITIES by kind of job, with PERCENTILE_SCHEMA.

    jobs: the common job record; wall_s where the format has it. Groups: all; gpu_type; gpus (GPU_BUCKETS);
    gpu_request (GPU_SHARES, per instance); account (the MOST_ACCOUNTS with the most jobs). n: jobs of the group and
    outcome set with a known value; a group without any has no row. A percentile is linear between ranks, rank 0 the
    smallest and rank n - 1 the largest, as in NumPy.
    """
    codes = {name: _codes(labels) for name, labels in _groups(jobs).items()}
    sets = jobs.select("outcome").with_columns(**OUTCOME_SETS)
    rows = []
    for quantity in (name for name in QUANTITIES if name in jobs.columns):
        known = np.flatnonzero(jobs[quantity].is_not_null().to_numpy())
        values = jobs[quantity].drop_nulls().to_numpy()
        # Negative times do not occur: formats blank them.
        order = order_by(values)
        values, known = values[order], known[order]
        for outcome_set in OUTCOME_SETS:
            keep = sets[outcome_set].to_numpy()[known]
            part_of_set, of_set = values[keep], known[keep]
            for group_by, (labels, code) in codes.items():
                named = {"quantity": quantity, "outcome_set": outcome_set, "group_by": group_by}
                for group, part in parts_of(part_of_set, code[of_set]):
                    about = {"group": labels[group], "n": part.size, "mean_s": total(part) / part.size}
                    rows.append(named | about | {f"p{p}_s": percentile(part, p) for p in PERCENTS})
    return pl.DataFrame(rows, schema=PERCENTILE_SCHEMA)


def _groups(jobs: pl.DataFrame) -> dict[str, pl.Series]:
    """Each way to tell jobs apart: a label per job, null where the job is in no group."""
    accounts = jobs["account"].drop_nulls().value_counts().sort("count", "account", descending=[True, False])
    labels = jobs.select(
        "gpu_type",
        gpus=gpu_bucket(whole_gpus()).replace_strict(dict(enumerate(GPU_BUCKETS)), return_dtype=pl.String),
        gpu_request=pl.when(pl.col("gpu_milli") >= 1000)
        .then(pl.lit("whole GPUs"))
        .when(pl.col("gpu_milli") > 0)
        .then(pl.lit("share of a GPU"))
        .otherwise(pl.lit("no GPU")),
        account=pl.when(pl.col("account").is_in(accounts["account"].head(MOST_ACCOUNTS).implode())).then("account"),
    )
    everybody = pl.Series("all", ["all"]).new_from_index(0, jobs.height)
    return {"all": everybody, **{name: labels[name] for name in labels.columns}}


def _codes(labels: pl.Series) -> tuple[list[str], np.ndarray]:
    """(labels in order, code per job); -1 where there is none. Buckets keep their order, others go by text."""
    names = labels.drop_nulls().unique().sort().to_list()
    for order in (GPU_BUCKETS, GPU_SHARES):
        if set(names) <= set(order):
            names = [name for name in order if name in names]
    # 16 bits are sorted fastest.
    kind = pl.Int16 if len(names) < 2**15 else pl.Int64
    code = labels.replace_strict(names, range(len(names)), default=-1, return_dtype=kind)
    return names, code.fill_null(-1).to_numpy()


def gpu_requests(jobs: pl.DataFrame) -> pl.DataFrame:
    """How jobs that asked for a GPU share out over what each instance asked for: over all, and by GPU type.

    REQUEST_SCHEMA; n: the group's jobs that asked for a GPU.
    """
    asked = jobs.select("gpu_type", "gpu_milli").filter(pl.col("gpu_milli") > 0)
    bucket = [
        pl.when((pl.col("gpu_milli") >= low) & (pl.col("gpu_milli") < high if high else True)).then(pl.lit(name))
        for name, (low, high) in REQUEST_BUCKETS.items()
    ]
    labelled = asked.select("gpu_type", gpu_request=pl.coalesce(bucket))
    rows = []
    for group_by, group, part in [
        ("all", "all", labelled),
        *(
            ("gpu_type", kind, labelled.filter(pl.col("gpu_type") == kind))
            for kind in labelled["gpu_type"].drop_nulls().unique().sort()
        ),
    ]:
        counts = dict(part["gpu_request"].value_counts().iter_rows())
        rows += [
            (group_by, group, name, counts.get(name, 0), part.height, counts.get(name, 0) / part.height)
            for name in REQUEST_BUCKETS
            if part.height
        ]
    return pl.DataFrame(rows, schema=REQUEST_SCHEMA, orient="row")


def request_against_use(jobs: pl.DataFrame) -> pl.DataFrame:
    """Of each resource: how many jobs asked for more than they used, and how many used more, with USE_SCHEMA.

    n: jobs with a request and a measured use of the resource, both per instance. used_median_share: the median of use
    over request, where the request is not nought. A resource whose use the trace does not measure has a reason.
    """
    rows = []
    for resource, (asked, used) in RESOURCES.items():
        if used not in jobs.columns:
            rows.append({"resource": resource, "n": 0, "reason": "the trace does not measure its use"})
            continue
        both = jobs.select(asked=asked, used=used).drop_nulls()
        if not both.height:
            rows.append({"resource": resource, "n": 0, "reason": "no job has both a request and a measured use"})
            continue
        more, less = (both["asked"] > both["used"]).sum(), (both["asked"] < both["used"]).sum()
        positive = both.filter(pl.col("asked") > 0)
        rows.append(
            {
                "resource": resource,
                "n": both.height,
                "asked_more": more,
                "asked_more_share": more / both.height,
                "used_more": less,
                "used_more_share": less / both.height,
                "used_median_share": (positive["used"] / positive["asked"]).median(),
            }
        )
    return pl.DataFrame(rows, schema=USE_SCHEMA)


def recurrence(jobs: pl.DataFrame) -> pl.DataFrame:
    """How many jobs belong to groups of at least so many jobs, with RECURRENCE_SCHEMA.

    group_by: recurrence_group where the trace has one, and user. n: jobs with a known group or user.
    """
    rows = []
    for group_by in ("recurrence_group", "user"):
        if group_by not in jobs.columns or not jobs[group_by].count():
            continue
        sizes = jobs[group_by].drop_nulls().value_counts()["count"].cast(pl.Int64)
        n = int(sizes.sum())
        for at_least in RECURRENCES:
            chosen = sizes.filter(sizes >= at_least)
            rows.append((group_by, at_least, chosen.len(), int(chosen.sum()), n, int(chosen.sum()) / n))
    return pl.DataFrame(rows, schema=RECURRENCE_SCHEMA, orient="row")
