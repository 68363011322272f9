"""Every GPU hour of a trace in one account: what attempts used, by how they ended, and what nobody used."""

from pathlib import Path

import polars as pl

from ttf.analyses.account_gpu_hours import LEDGER
from ttf.analyses.account_gpu_hours.rows import ledger, named, notes_of
from ttf.analyses.account_gpu_hours.spent import Months, in_use, spent, timed
from ttf.analyses.account_gpu_hours.unused import NOTHING, Away, Steps, account_of, away, intervals, waiting
from ttf.analyses.reconstruct_occupancy.holdings import GPU, holdings
from ttf.inputs import Inputs
from ttf.outages.records import of_nodes
from ttf.runs import runs

JOBS = (
    *("job_id", "task", "user", "account", "partition", "outcome", "gpu_milli", "size"),
    *("submit_s", "eligible_s", "start_s", "end_s", "runtime_s", "trace_end_s"),
)


def compute(given: Inputs) -> dict:
    settings = given.settings
    jobs = given.scan("jobs", JOBS)
    attempts = given.read("attempts") if "attempts" in given else None
    of_jobs = runs(jobs, attempts, given.scan("lives_infra", ["event", "state", "basis"]))
    of_jobs = timed(_with_partition(of_jobs, jobs))
    about = of_jobs.select(pl.col("start_s").min(), pl.col("until_s").max(), pl.col("basis").first())
    first_s, last_s, basis = about.collect(engine="streaming").row(0)
    if first_s is None:
        return {"ledger": LEDGER.frame([])}
    months = Months(first_s, last_s)
    sums = spent(of_jobs, months, settings.checkpoint_interval_s, settings.restart_s)
    there, waits, unused = _there(given, jobs, months), waiting(jobs), {}
    if there.capacity_milli:
        unused = account_of(Steps.of(*in_use(of_jobs)), there.capacity_milli, there.steps, waits, months.edges_s)
        unused = named(unused, "outages" in given, waits is not None)
    notes = notes_of(settings.checkpoint_interval_s, settings.restart_s, attempts is not None, there.unsized)
    return {"ledger": ledger(sums, unused, months.names, basis, notes, settings.prices, settings.owners)}


def _with_partition(of_jobs: pl.LazyFrame, jobs: pl.LazyFrame) -> pl.LazyFrame:
    if "partition" not in jobs.collect_schema():
        return of_jobs.with_columns(partition=pl.lit(None, pl.String))
    partitions = jobs.with_row_index("job").select(pl.col("job").cast(pl.Int64), "partition")
    return of_jobs.join(partitions, on="job", how="left", validate="m:1")


def _there(given: Inputs, jobs: pl.LazyFrame, months: Months) -> Away:
    """How many GPUs there are, and which were away: by the servers' outages, where the trace has any."""
    if "placements" in given and "outages" in given:
        with given.scratch() as folder:
            return _servers(given, jobs, months, folder)
    if "occupancy_basis" in given:
        gpus = given["occupancy_basis"]["gpus"].sum()
    else:
        gpus = given.read("nodes", ["gpu_count"])["gpu_count"].sum() if "nodes" in given else 0
    return Away(gpus * GPU, [NOTHING] * 3, 0)


def _servers(given: Inputs, jobs: pl.LazyFrame, months: Months, folder: Path) -> Away:
    attempts = given.scan("attempts") if "attempts" in given else None
    held, _ = holdings(given.scan("placements"), jobs, given.read("nodes"), attempts, folder)
    outages, exposure = given.read("outages"), given.read("exposure") if "exposure" in given else None
    watched = of_nodes(outages if exposure is None else exposure)["node"].unique()
    return away(held, intervals(outages, exposure, months.begin_s, months.end_s), watched)
