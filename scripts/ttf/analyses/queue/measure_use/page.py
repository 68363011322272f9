"""The tables of GPU and host activity."""

import polars as pl

from ttf.analyses.queue.measure_use import GPU_USE, HOST_USE, USE
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return GPU activity by size, outcome and servers, and host activity."""
    gpus = trace.table("gpu_use").filter(pl.col("n") > 0)
    servers = pl.concat_str(
        pl.lit(" on "), "servers", pl.when(servers=1).then(pl.lit(" server")).otherwise(pl.lit(" servers"))
    )
    gpus = gpus.filter(pl.col("dedicated").is_null() | (pl.col("job_gpus") == "8")).with_columns(
        job_gpus=pl.concat_str("job_gpus", servers.fill_null(""))
    )
    hosts = trace.table("host_use").filter(pl.col("n") > 0)
    hosts = hosts.with_columns(
        resource=pl.col("resource").replace({"cpu": "CPU"}),
        machine_minutes=pl.col("machine_minutes").replace({"held": "with a GPU held"}),
    )
    return {
        "gpu-use": PageTable(gpus, ("job_gpus", "outcome", "jobs", *USE, "coverage_share"), GPU_USE),
        "host-use": PageTable(hosts, ("resource", "machine_minutes", *USE), HOST_USE),
    }
