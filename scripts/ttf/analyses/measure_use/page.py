"""The tables of GPU and host use."""

from collections.abc import Callable

import polars as pl

from ttf.analyses.measure_use import GPU_USE, HOST_USE, USE
from ttf.report.tables import html_table
from ttf.report.trace import Trace


def tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """GPU use by size, outcome and servers; host use. A table with nothing in it is left out."""
    shown = {}
    gpus = trace.table("gpu_use").filter(pl.col("n") > 0)
    if gpus.height:
        servers = pl.concat_str(
            pl.lit(" on "),
            "servers",
            pl.when(pl.col("servers") == 1).then(pl.lit(" server")).otherwise(pl.lit(" servers")),
        )
        named = gpus.filter(pl.col("dedicated").is_null() | (pl.col("job_gpus") == "8")).with_columns(
            job_gpus=pl.concat_str("job_gpus", servers.fill_null(""))
        )
        columns = ("job_gpus", "outcome", "jobs", *USE, "coverage_share")
        shown["gpu-use"] = html_table(named, columns, identifier("gpu-use"), contract=GPU_USE)
    hosts = trace.table("host_use").filter(pl.col("n") > 0)
    if hosts.height:
        named = hosts.with_columns(
            resource=pl.col("resource").replace({"cpu": "CPU"}),
            machine_minutes=pl.col("machine_minutes").replace({"held": "with a GPU held"}),
        )
        columns = ("resource", "machine_minutes", *USE)
        shown["host-use"] = html_table(named, columns, identifier("host-use"), contract=HOST_USE)
    return shown
