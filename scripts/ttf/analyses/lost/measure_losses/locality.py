"""GPU time that jobs on the fewest nodes would have saved: prioritised locality of Jeon et al. (ATC'19)."""

import polars as pl

from ttf.analyses.lost.measure_losses import LOCALITY
from ttf.records.jobs import GPU_BUCKETS, gpu_bucket, whole_gpus
from ttf.records.runs import GPU_HOUR

JOB_COLUMNS = ("gpu_type", "gpu_milli", "size", "runtime_s", "nodes", "gpu_used_milli")
_KEYS = ("gpus", "gpu_type")

NO_USE = "the trace has no GPU use of jobs, and does not tell which jobs do the same work"
NO_PAIR = "no jobs of one size are known to have run on the fewest nodes and on more"
NO_SAVING = "jobs on more nodes used their GPUs no less"


def locality(jobs: pl.LazyFrame) -> pl.DataFrame:
    """Return LOCALITY: a row for all sizes, and one for each class of sizes; without GPU use one row with the reason.

    jobs: those of JOB_COLUMNS that the trace has.

    A job's work is its GPU time times its GPU use. The use expected of jobs on more nodes is that of the jobs on the
    fewest, of the same GPUs and GPU type. Saved is their GPU time, times one less their work over the expected work.
    """
    if "gpu_used_milli" not in jobs.collect_schema():
        return LOCALITY.frame([{"gpu_bucket": "all", "reason": NO_USE}])
    time, work = (
        pl.col(name) * pl.col("size").cast(pl.Int128) * pl.col("runtime_s") for name in ("gpu_milli", "gpu_used_milli")
    )
    by_nodes = (
        jobs.filter(whole_gpus() > 1, pl.col("nodes", "runtime_s") > 0, pl.col("gpu_used_milli").is_not_null())
        .group_by("gpu_type", "nodes", gpus=whole_gpus())
        .agg(n=pl.len().cast(pl.Int64), time=time.sum(), work=work.sum())
        .sort("nodes")
    )
    sums = pl.col("n", "time", "work")
    groups = by_nodes.group_by(_KEYS).agg(sums.sum(), (sums.sum() - sums.first()).name.prefix("spread_"))
    fewest_time, fewest_work = (pl.col(name) - pl.col(f"spread_{name}") for name in ("time", "work"))
    pairs = groups.filter(pl.col("spread_n") > 0).with_columns(
        expected=pl.col("spread_time") * fewest_work // fewest_time, gpu_bucket=gpu_bucket(pl.col("gpus"))
    )
    classes = pairs.drop(_KEYS).group_by("gpu_bucket").agg(pl.all().sum()).collect()
    parts = {"all": classes} | {
        name: classes.filter(gpu_bucket=index) for index, name in enumerate(GPU_BUCKETS) if index
    }
    rows = [part.sum().row(0, named=True) | {"gpu_bucket": name} for name, part in parts.items()]
    return LOCALITY.frame(row | _saved_cells(row) for row in rows)


def _saved_cells(row: dict) -> dict:
    if row["spread_work"] >= row["expected"]:
        return {"reason": NO_SAVING if row["n"] else NO_PAIR}
    saved = row["spread_time"] * (1 - row["spread_work"] / row["expected"])
    return {"saved_gpu_hours": saved / GPU_HOUR, "saved_share": saved / row["time"]}
