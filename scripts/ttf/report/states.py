"""The tables of jobs by state and by size."""

from collections.abc import Callable

import polars as pl

from ttf.charts.text import gpus_label
from ttf.report import words
from ttf.report.tables import Mean, html_table
from ttf.report.trace import Trace

_KINDS = {"job": "By job, its last state", "attempt": "By attempt"}
_POPULATIONS = {"all": "All", "gpu": "With a GPU", "no_gpu": "Without"}


def states_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """States, sizes and the summary; a table with nothing in it is left out."""
    tables = {}
    states = trace.table("states")
    if states.height:
        by_proxy = pl.lit("every failure (a proxy: no cause is recorded)")
        infra = pl.when(infra_basis="proxy").then(by_proxy).otherwise(pl.lit("laid to infrastructure"))
        named = states.with_columns(
            state=pl.when(kind="infra").then(infra).otherwise(pl.col("state").fill_null("not told")),
            unit=pl.col("unit").replace_strict(_KINDS),
        )
        columns = {
            "state": ("State", None),
            "count": ("Number", words.count),
            "count_share": ("Share", words.share),
            "with_gpu": ("With a GPU", words.count),
            "with_gpu_share": ("Share", words.share),
            "gpu_hours": ("GPU hours", words.number),
            "gpu_hours_share": ("Share", words.share),
        }
        tables["states"] = html_table(named, columns, identifier("states"), group="unit")
    mix = trace.table("size_mix")
    if mix.height:
        labels = [gpus_label(low, high) for low, high in mix.select("gpus_low", "gpus_high").iter_rows()]
        columns = {
            "gpus": ("GPUs", str),
            "jobs": ("Number", words.count),
            "jobs_share": ("Share", words.share),
            "jobs_up_to_share": ("up to here", words.share),
            "gpu_hours": ("GPU hours", words.number),
            "gpu_hours_share": ("Share", words.share),
            "gpu_hours_up_to_share": ("up to here", words.share),
        }
        named = mix.with_columns(gpus=pl.Series(labels, dtype=pl.String))
        tables["size-mix"] = html_table(named, columns, identifier("size-mix"))
    summary = trace.table("cluster_summary").filter(pl.col("jobs") > 0)
    if summary.height:
        columns = {
            "population": ("Which", None),
            "jobs": ("Number", words.count),
            "jobs_per_day": ("a day", words.number),
            "runtime_mean_s": Mean("Run time, mean", words.duration, "runtime_n"),
            "runtime_median_s": ("median", words.duration),
            "runtime_max_s": ("longest", words.duration),
            "queue_mean_s": Mean("Delay, mean", words.duration, "queue_n"),
            "queue_median_s": ("median", words.duration),
            "gpus_mean": ("GPUs, mean", words.number),
            "gpus_max": ("most", words.count),
        }
        named = summary.with_columns(population=pl.col("population").replace_strict(_POPULATIONS))
        tables["cluster-summary"] = html_table(named, columns, identifier("cluster-summary"))
    return tables
