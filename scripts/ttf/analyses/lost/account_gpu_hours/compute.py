"""Every GPU hour of a trace in one account: what attempts used, by how they ended, and what nobody used."""

from pathlib import Path

import polars as pl

from ttf.analyses.lost.account_gpu_hours import LEDGER, LEDGER_SUMMARY
from ttf.analyses.lost.account_gpu_hours.ledger_rows import ledger, named, notes_of, summarise_ledger
from ttf.analyses.lost.account_gpu_hours.spent import Months, put_together, spent, timed
from ttf.analyses.lost.account_gpu_hours.unused import (
    NOTHING,
    Away,
    account_by_windows,
    away,
    changes_of,
    intervals,
    waiting,
)
from ttf.analyses.queue.reconstruct_occupancy.holdings import GPU, holdings
from ttf.engine.size_unit import GPU as GPU_UNIT
from ttf.records.inputs import Inputs
from ttf.records.outages.outage_records import of_nodes
from ttf.records.runs import held, in_blocks, runs, where_starts_are

JOBS = (
    *("job_id", "task", "user", "account", "partition", "outcome", "gpu_milli", "size", "attempts"),
    *("submit_s", "eligible_s", "start_s", "end_s", "runtime_s", "trace_end_s"),
)
OF_RUNS = ("account", "partition", "outcome", "gpu_milli", "size")
TIMES = ("start_s", "end_s", "runtime_s", "trace_end_s")
ATTEMPTS = ("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli")


def compute(given: Inputs) -> dict:
    settings = given.settings
    jobs = given.scan("jobs", JOBS)
    attempts = given.scan("attempts", ATTEMPTS) if "attempts" in given else None
    lives = given.scan("lives_infra", ["event", "state", "basis"])
    in_use = held(jobs, attempts)
    if in_use.is_empty():
        return {"ledger": LEDGER.frame([]), "ledger_summary": LEDGER_SUMMARY.frame([{}])}
    months = Months(in_use["start_s"].min(), in_use["until_s"].max())
    told = months.begin_s, settings.checkpoint_interval_s, settings.restart_s
    blocks = in_blocks(given.scan("jobs", [*OF_RUNS, *(TIMES if attempts is None else [])]), attempts, lives)
    sums = put_together(of_block(*block, *told) for block in blocks)
    there, waits, unused = _there(given, months), waiting(jobs), {}
    # Of a record whose start is cut off nobody knows what the GPUs did before.
    begin_s, _ = where_starts_are(in_use["start_s"], months.end_s)
    if there.capacity_milli and begin_s == months.begin_s:
        used = changes_of(in_use["start_s"], in_use["until_s"], in_use["gpu_milli"])
        unused = account_by_windows(used, there.capacity_milli, there.changes, waits, months.edges_s)
        unused = named(unused, "outages" in given, waits is not None)
    basis = lives.head(1).select("basis").collect().item()
    notes = notes_of(settings.checkpoint_interval_s, settings.restart_s, attempts is not None, there.unsized)
    prices = settings.prices if given.unit == GPU_UNIT else {}  # of a GPU hour
    table = ledger(sums, unused, months.names, basis, notes, prices, settings.owners)
    return {"ledger": table, "ledger_summary": summarise_ledger(table)}


def of_block(
    jobs: pl.DataFrame,
    attempts: pl.DataFrame | None,
    infra_lives: pl.DataFrame,
    begin_s: int,
    checkpoint_interval_s: int,
    restart_s: int,
) -> pl.DataFrame:
    """GPU time of some jobs (`ttf.records.runs.Block`) of a trace that begins at begin_s."""
    of_jobs = runs(jobs, attempts, infra_lives).collect()
    partition = jobs["partition"].gather(of_jobs["job"]) if "partition" in jobs.columns else pl.lit(None, pl.String)
    of_jobs = timed(of_jobs.lazy().with_columns(partition=partition)).collect()
    until_s = max(of_jobs["until_s"].max() or begin_s, begin_s + 1)
    return spent(of_jobs.lazy(), Months(begin_s, until_s), checkpoint_interval_s, restart_s)


def _there(given: Inputs, months: Months) -> Away:
    """How many GPUs there are, and which were away: by the servers' outages, where the trace has any.

    Nothing where sizes are not told in GPUs: no table says how many jobs of one node a node takes.
    """
    if given.unit != GPU_UNIT:
        return Away(0, [NOTHING] * 3, 0)
    if "placements" in given and "outages" in given:
        with given.scratch() as folder:
            return _servers(given, months, folder)
    if "occupancy_basis" in given:
        gpus = given["occupancy_basis"]["gpus"].sum()
    else:
        gpus = given.read("nodes", ["gpu_count"])["gpu_count"].sum() if "nodes" in given else 0
    return Away(gpus * GPU, [NOTHING] * 3, 0)


def _servers(given: Inputs, months: Months, folder: Path) -> Away:
    attempts = given.scan("attempts") if "attempts" in given else None
    held, _ = holdings(given.scan("placements"), given.scan("jobs"), given.read("nodes"), attempts, folder)
    outages, exposure = given.read("outages"), given.read("exposure") if "exposure" in given else None
    watched = of_nodes(outages if exposure is None else exposure)["node"].unique()
    return away(held, intervals(outages, exposure, months.begin_s, months.end_s), watched)
