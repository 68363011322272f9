"""The tables of GPU and host use, and of epochs to the lowest loss."""

from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import Interval, html_table
from ttf.report.trace import Trace

_USE = {
    "n": ("Readings", words.count),
    "mean_share": ("Mean", words.share),
    "zero_share": ("At nought", words.share),
    "p25_share": ("25 %", words.share),
    "p50_share": ("Median", words.share),
    "p75_share": ("75 %", words.share),
    "p90_share": ("90 %", words.share),
    "p95_share": ("95 %", words.share),
}


def utilisation_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """GPU use by size, outcome and servers; host use. A table with nothing in it is left out."""
    tables = {}
    gpus = trace.table("gpu_use").filter(pl.col("n") > 0)
    if gpus.height:
        servers = pl.concat_str(
            pl.lit(" on "),
            "servers",
            pl.when(pl.col("servers") == 1).then(pl.lit(" server")).otherwise(pl.lit(" servers")),
        )
        named = gpus.filter(pl.col("dedicated").is_null() | (pl.col("job_gpus") == "8")).with_columns(
            kind=pl.concat_str("job_gpus", servers.fill_null(""))
        )
        columns = {"kind": ("GPUs", None), "outcome": ("Outcome", None), "jobs": ("Jobs", words.count)} | _USE
        columns |= {"coverage_share": ("Measured", words.share)}
        tables["gpu-use"] = html_table(named, columns, identifier("gpu-use"))
    hosts = trace.table("host_use").filter(pl.col("n") > 0)
    if hosts.height:
        named = hosts.with_columns(
            resource=pl.col("resource").replace({"cpu": "CPU"}),
            machine_minutes=pl.col("machine_minutes").replace({"held": "with a GPU held"}),
        )
        columns = {"resource": ("Of", None), "machine_minutes": ("Machine-minutes", None)} | _USE
        tables["host-use"] = html_table(named, columns, identifier("host-use"))
    return tables


def epochs_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """Per outcome how many jobs needed all epochs, and their time after they had come near the lowest loss."""
    summary = trace.table("epochs_summary").filter(pl.col("n") > 0)
    if not summary.height:
        return {}
    columns = {
        "outcome": ("Outcome", None),
        "jobs_logged": ("Jobs logged", words.count),
        "n": ("with a loss", words.count),
        "needing_all": ("Lowest in the last epoch", words.count),
        "needing_all_share": Interval("Share", words.share, "ci_low", "ci_high"),
        "timed_jobs": ("Jobs timed", words.count),
        "after_near_share_mean": ("Time on the last 0.1 %, mean", words.share),
        "after_near_gpu_time_share": ("of all their GPU time", words.share),
    }
    return {"epochs": html_table(summary, columns, identifier("epochs"))}
