"""Placements -> which GPUs of which servers were busy when, as tables: some servers, then some time, at once.

Nothing is kept for the next run: where no table says what servers hold, later placements change what all of them held,
and with it the load at every moment before. A million jobs (2.9 million placements) take about 3 s of processor time.
"""

from pathlib import Path

import polars as pl

from ttf.analyses.queue.reconstruct_occupancy.delay_causes import DelayCauses
from ttf.analyses.queue.reconstruct_occupancy.holdings import holdings
from ttf.analyses.queue.reconstruct_occupancy.occupancy import LoadOverTime, Occupancy, basis
from ttf.analyses.queue.reconstruct_occupancy.servers import SIZES, server_sharing, sizes_of, sweep_servers, windows
from ttf.records.clusters import Level
from ttf.records.inputs import Inputs
from ttf.records.jobs import whole_gpus

# What is read of the jobs with GPUs; eligible_s where the format has it.
JOBS = ["account", "submit_s", "start_s", "end_s", "gpu_milli", "size", "outcome", "trace_end_s"]


def compute(given: Inputs) -> dict:
    attempts = given.scan("attempts") if "attempts" in given else None
    with given.scratch() as folder:
        return occupancy_tables(given.scan("placements"), given.scan("jobs"), given.read("nodes"), attempts, folder)


def occupancy_tables(
    placements: pl.LazyFrame, jobs: pl.LazyFrame, nodes: pl.DataFrame, attempts: pl.LazyFrame | None, folder: Path
) -> dict[str, pl.DataFrame]:
    """Each table by its name. The inputs: see `holdings`; folder: an empty one, for what is spilled."""
    held, attempt_milli = holdings(placements, jobs, nodes, attempts, folder)
    sizes = sizes_of(attempt_milli)
    del attempt_milli
    servers = sweep_servers(held, sizes, SIZES, folder)
    there = jobs.collect_schema().names()
    columns = [*JOBS, *(name for name in ("eligible_s",) if name in there)]
    level = Level.of(jobs)
    by_load, load = Occupancy(servers), LoadOverTime(held, servers)
    causes = DelayCauses(held, servers, folder, level.by)
    read = jobs.filter(whole_gpus() > 0).select(*columns, alike=level.number)
    for some in read.collect_batches(maintain_order=False, engine="streaming"):
        load.add_jobs(some)
        causes.add_jobs(some)
    for window in windows(held, servers):
        by_load.add(window)
        load.add(window)
        causes.add(window)
    (occupancy, fragmentation), over_time = by_load.tables(), load.table()
    return {
        "occupancy_basis": basis(held, servers, over_time),
        "server_sharing": server_sharing(sizes, servers),
        "occupancy": occupancy,
        "fragmentation": fragmentation,
        "load_over_time": over_time,
        "delay_causes": causes.table(),
    }
