"""Two sources for one time: what the instances say of a job against what the job's own record says."""

import math

import polars as pl

from ttf.stages import RUNTIME_AGREEMENT

QUANTILES = {"difference_p01_s": 0.01, "difference_p05_s": 0.05, "difference_median_s": 0.5} | {
    "difference_p95_s": 0.95,
    "difference_p99_s": 0.99,
}


def runtime_agreement(jobs: pl.LazyFrame) -> pl.DataFrame:
    """Start, end and run time of successful jobs: how often the two sources agree and by how much they differ.

    Only jobs whose times come from their instances and whose own record has both times. Difference = the instances'
    time - the record's, seconds. Columns: time, n, equal, equal_share, difference_*_s, difference_mean_s, reason.
    """
    has_both = {"runtime_from", "task_start_s", "task_end_s"} <= set(jobs.collect_schema().names())
    compared = (
        jobs.filter(
            (pl.col("outcome") == "success")
            & (pl.col("runtime_from") == "instance")
            & pl.col("task_start_s").is_not_null()
            & pl.col("task_end_s").is_not_null()
        )
        if has_both
        else pl.LazyFrame(schema=dict.fromkeys(("start_s", "end_s", "task_start_s", "task_end_s"), pl.Int64))
    )
    start = pl.col("start_s") - pl.col("task_start_s")
    end = pl.col("end_s") - pl.col("task_end_s")
    times = {"start": start, "end": end, "runtime": end - start}
    # Millions of jobs differ by some thousand whole numbers of seconds.
    counted = [compared.group_by(difference=difference).len("jobs").sort("difference") for difference in times.values()]
    found = zip(times, pl.collect_all(counted, engine="streaming"), strict=True)
    rows = [{"time": time} | _agreement(differences) for time, differences in found]
    return RUNTIME_AGREEMENT.frame(rows)


def _agreement(differences: pl.DataFrame) -> dict[str, int | float | str | None]:
    """The columns of a time from its differences, ascending, and the number of jobs with each."""
    n = differences["jobs"].sum()
    if not n:
        return {"n": 0, "equal": 0, "reason": "no successful job has its times from two sources"}
    equal = differences.filter(pl.col("difference") == 0)["jobs"].sum()
    up_to = differences["jobs"].cum_sum()
    return (
        {"n": n, "equal": equal, "equal_share": equal / n}
        # The nearest rank.
        | {
            name: float(differences["difference"][up_to.search_sorted(math.floor((n - 1) * q + 0.5), side="right")])
            for name, q in QUANTILES.items()
        }
        | {"difference_mean_s": (differences["difference"] * differences["jobs"]).sum() / n, "reason": None}
    )
