"""The numbers of jobs by state and by size, and of the summary row."""

import polars as pl

from ttf.inputs import Inputs
from ttf.jobs import at_time_limit
from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    """The most frequent state, what is attributed to infrastructure, jobs of one GPU and large ones, the summary."""
    _of_states(metrics, given["states"])
    _of_sizes(metrics, given["size_mix"])
    source = "tables/cluster_summary.csv"
    for row in given["cluster_summary"].filter(pl.col("population") == "gpu").iter_rows(named=True):
        metrics.put("states.gpu.jobs", row["jobs"], "jobs", source)
        metrics.put("states.gpu.jobs_per_day", row["jobs_per_day"], "jobs a day", source, row["jobs"])
        metrics.put_row("states.gpu", row, {"gpus_mean": "GPUs", "gpus_max": "GPUs"}, source, row["jobs"])
        times = dict.fromkeys(("runtime_mean_s", "runtime_median_s", "runtime_max_s"), "s")
        metrics.put_row("states.gpu", row, times, source, row["runtime_n"])


def _of_states(metrics: Metrics, states: pl.DataFrame) -> None:
    source = "tables/states.csv"
    # Attempts where the trace has them: they stand after the jobs.
    unit = states["unit"].last()
    mine = states.filter(pl.col("unit") == unit)
    metrics.put("states.unit", unit, "label", source)
    most = mine.filter((pl.col("kind") == "state") & pl.col("state").is_not_null()).head(1)
    for row in most.iter_rows(named=True):
        metrics.put("states.most.state", row["state"], "label", source, row["n"])
        metrics.put("states.most.share", row["count_share"], "share", source, row["n"])
        metrics.put("states.most.gpu_hours_share", row["gpu_hours_share"], "share", source, row["n"])
    at_limit = mine.filter((pl.col("kind") == "state") & at_time_limit("state"))
    metrics.put("states.timeouts", int(at_limit["count"].sum()), "ends", source, mine["n"][0])
    for row in mine.filter(pl.col("kind") == "infra").iter_rows(named=True):
        metrics.put("states.infra.basis", row["infra_basis"], "label", source, row["n"])
        metrics.put("states.infra.count", row["count"], "ends", source, row["n"])
        metrics.put("states.infra.share", row["count_share"], "share", source, row["n"])
        metrics.put("states.infra.gpu_hours_share", row["gpu_hours_share"], "share", source, row["n"])


def _of_sizes(metrics: Metrics, mix: pl.DataFrame) -> None:
    source = "tables/size_mix.csv"
    sized = mix.filter(pl.col("gpus_high") > 0)
    if not sized.height:
        return
    n = sized["n"][0]
    metrics.put("states.sizes.jobs", n, "jobs", source)
    metrics.put("states.sizes.largest", sized["gpus_high"][-1], "GPUs", source, n)
    for name in ("jobs_share", "gpu_hours_share"):
        metrics.put(f"states.sizes.one.{name}", sized[name][0], "share", source, n)
    for row in sized.filter(pl.col("gpus_high") == 8).iter_rows(named=True):
        shares = {"jobs_up_to_share": "share", "gpu_hours_up_to_share": "share"}
        metrics.put_row("states.sizes.eight", row, shares, source, n)
