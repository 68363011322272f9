"""The numbers of jobs by state and by size, and of the summary row."""

import polars as pl

from ttf.inputs import Inputs
from ttf.jobs import at_time_limit
from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    """The most frequent state, what is attributed to infrastructure, jobs of one GPU and large ones, the summary."""
    _of_states(metrics, given["states"])
    _of_sizes(metrics, given["size_mix"])
    source, of_gpu = "tables/cluster_summary.csv", given["cluster_summary"].filter(population="gpu")
    metrics.put_rows("states.gpu", of_gpu, {"jobs": "jobs"}, source, None)
    units = {"jobs_per_day": "jobs a day", "gpus_mean": "GPUs", "gpus_max": "GPUs"}
    metrics.put_rows("states.gpu", of_gpu, units, source, "jobs")
    times = dict.fromkeys(("runtime_mean_s", "runtime_median_s", "runtime_max_s"), "s")
    metrics.put_rows("states.gpu", of_gpu, times, source, "runtime_n")


def _of_states(metrics: Metrics, states: pl.DataFrame) -> None:
    source = "tables/states.csv"
    # Attempts where the trace has them: they stand after the jobs.
    unit = states["unit"].last()
    mine = states.filter(pl.col("unit") == unit)
    words, infra = mine.filter(kind="state"), mine.filter(kind="infra")
    metrics.put("states.unit", unit, "label", source)
    shares = {"share": ("count_share", "share"), "gpu_hours_share": "share"}
    metrics.put_rows("states.most", words.drop_nulls("state").head(1), {"state": "label"} | shares, source)
    at_limit = words.filter(at_time_limit("state"))
    metrics.put("states.timeouts", int(at_limit["count"].sum()), "ends", source, mine["n"][0])
    metrics.put_rows("states.infra", infra, {"basis": ("infra_basis", "label"), "count": "ends"} | shares, source)


def _of_sizes(metrics: Metrics, mix: pl.DataFrame) -> None:
    source = "tables/size_mix.csv"
    sized = mix.filter(pl.col("gpus_high") > 0)
    metrics.put_rows("states.sizes", sized.head(1), {"jobs": ("n", "jobs")}, source, None)
    shares = {"jobs_share": "share", "gpu_hours_share": "share"}
    metrics.put_rows("states.sizes.one", sized.head(1), shares, source)
    shares = {"jobs_up_to_share": "share", "gpu_hours_up_to_share": "share"}
    metrics.put_rows("states.sizes.eight", sized.filter(gpus_high=8), shares, source)
