"""Reconstruct from placements which GPUs were busy when: a few servers at a time, then a window of time at a time.

Nothing is cached for the next run: if no table gives the size of servers, later placements change the inferred sizes,
and so the load at every earlier time. A million jobs (2.9 million placements) take about 3 s of processor time.
"""

from pathlib import Path

import polars as pl

from ttf.analyses.queue.reconstruct_occupancy.delay_causes import DelayCauses
from ttf.analyses.queue.reconstruct_occupancy.occupancy import LoadOverTime, Occupancy, summarise_basis
from ttf.analyses.queue.reconstruct_occupancy.servers import (
    SIZES,
    iter_windows,
    server_sharing,
    size_classes,
    sweep_servers,
)
from ttf.records.clusters import Level
from ttf.records.gpu_allocations import load_gpu_allocations
from ttf.records.inputs import Inputs
from ttf.records.jobs import whole_gpus

# Columns read of the jobs with GPUs, and eligible_s if the format has it.
JOBS = ["account", "submit_s", "start_s", "end_s", "gpu_milli", "size", "outcome", "trace_end_s"]


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    attempts = inputs.scan("attempts") if "attempts" in inputs else None
    with inputs.scratch() as folder:
        return occupancy_tables(inputs.scan("placements"), inputs.scan("jobs"), inputs.read("nodes"), attempts, folder)


def occupancy_tables(
    placements: pl.LazyFrame, jobs: pl.LazyFrame, nodes: pl.DataFrame, attempts: pl.LazyFrame | None, folder: Path
) -> dict[str, pl.DataFrame]:
    """Return each table by its name. Inputs: see `load_gpu_allocations`; folder: empty, for temporary files."""
    allocations, attempt_milli = load_gpu_allocations(placements, jobs, nodes, attempts, folder)
    sizes = size_classes(attempt_milli)
    del attempt_milli
    servers = sweep_servers(allocations, sizes, SIZES, folder)
    columns = [*JOBS, *(name for name in ("eligible_s",) if name in jobs.collect_schema().names())]
    level = Level.from_jobs(jobs)
    by_load, load = Occupancy(servers), LoadOverTime(allocations, servers)
    causes = DelayCauses(allocations, servers, folder, level.by)
    gpu_jobs = jobs.filter(whole_gpus() > 0).select(*columns, cluster=level.number)
    for batch in gpu_jobs.collect_batches(maintain_order=False, engine="streaming"):
        causes.add_jobs(batch)
    for window in iter_windows(allocations, servers):
        by_load.add(window)
        load.add(window)
        causes.add(window)
    (occupancy, fragmentation), over_time = by_load.tables(), load.table()
    return {
        "occupancy_basis": summarise_basis(allocations, servers, over_time),
        "server_sharing": server_sharing(sizes, servers),
        "occupancy": occupancy,
        "fragmentation": fragmentation,
        "load_over_time": over_time,
        "delay_causes": causes.table(),
    }
