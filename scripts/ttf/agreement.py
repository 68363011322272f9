"""Two sources for one time: what the instances say of a job against what the job's own record says."""

import polars as pl

QUANTILES = {"difference_p01_s": 0.01, "difference_p05_s": 0.05, "difference_median_s": 0.5} | {
    "difference_p95_s": 0.95,
    "difference_p99_s": 0.99,
}


def runtime_agreement(jobs: pl.DataFrame) -> pl.DataFrame:
    """Start, end and run time of successful jobs: how often the two sources agree and by how much they differ.

    Only jobs whose times come from their instances and whose own record has both times. Difference = the instances'
    time - the record's, seconds. Columns: time, n, equal, equal_share, difference_*_s, difference_mean_s, reason.
    """
    has_both = {"runtime_from", "task_start_s", "task_end_s"} <= set(jobs.columns)
    compared = (
        jobs.filter(
            (pl.col("outcome") == "success")
            & (pl.col("runtime_from") == "instance")
            & pl.col("task_start_s").is_not_null()
            & pl.col("task_end_s").is_not_null()
        )
        if has_both
        else jobs.clear()
    )
    reason = None if compared.height else "no successful job has its times from two sources"
    rows = []
    for time in ("start", "end", "runtime"):
        if not compared.height:
            rows.append({"time": time, "n": 0, "equal": 0, "reason": reason})
            continue
        start = pl.col("start_s") - pl.col("task_start_s")
        end = pl.col("end_s") - pl.col("task_end_s")
        difference = compared.select({"start": start, "end": end, "runtime": end - start}[time]).to_series()
        equal = int((difference == 0).sum())
        rows.append(
            {"time": time, "n": compared.height, "equal": equal, "equal_share": equal / compared.height}
            | {name: float(difference.quantile(q, "nearest")) for name, q in QUANTILES.items()}
            | {"difference_mean_s": difference.sum() / compared.height, "reason": None}
        )
    schema = {"time": pl.String, "n": pl.Int64, "equal": pl.Int64, "equal_share": pl.Float64}
    schema |= dict.fromkeys((*QUANTILES, "difference_mean_s"), pl.Float64) | {"reason": pl.String}
    return pl.DataFrame(rows, schema=schema)
