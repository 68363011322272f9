"""Account of every GPU hour of a trace: use by attempts, by outcome, and unused time."""

from pathlib import Path

import polars as pl

from ttf.analyses.lost.account_gpu_hours import LEDGER, LEDGER_SUMMARY
from ttf.analyses.lost.account_gpu_hours.ledger_rows import build_ledger, category_notes, name_unused, summarise_ledger
from ttf.analyses.lost.account_gpu_hours.spent import merge_sums, sum_gpu_time, with_known_time
from ttf.analyses.lost.account_gpu_hours.unused import (
    NO_CHANGES,
    Unavailable,
    account_in_windows,
    measure_unavailable,
    unavailable_intervals,
    usage_changes,
    waiting_gpus,
)
from ttf.engine.size_unit import GPU as GPU_UNIT
from ttf.records.gpu_allocations import GPU, load_gpu_allocations
from ttf.records.inputs import Inputs
from ttf.records.months import Months
from ttf.records.outages.outage_records import select_nodes
from ttf.records.runs import build_runs, find_record_start, gpu_allocations, iterate_blocks

JOBS = (
    *("job_id", "task", "user", "account", "partition", "outcome", "gpu_milli", "size", "attempts"),
    *("submit_s", "eligible_s", "start_s", "end_s", "runtime_s", "trace_end_s"),
)
RUN_COLUMNS = ("account", "partition", "outcome", "gpu_milli", "size")
TIMES = ("start_s", "end_s", "runtime_s", "trace_end_s")
ATTEMPTS = ("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli")


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    settings = inputs.settings
    jobs = inputs.scan("jobs", JOBS)
    attempts = inputs.scan("attempts", ATTEMPTS) if "attempts" in inputs else None
    durations = inputs.scan("durations_infra", ["event", "state", "basis"])
    gpu_runs = gpu_allocations(jobs, attempts)
    if gpu_runs.is_empty():
        return {"ledger": LEDGER.frame([]), "ledger_summary": LEDGER_SUMMARY.frame([{}])}
    months = Months(*gpu_runs.select(pl.col("start_s").min(), pl.col("until_s").max()).row(0))
    block_options = months.begin_s, settings.checkpoint_interval_s, settings.restart_s
    blocks = iterate_blocks(
        inputs.scan("jobs", [*RUN_COLUMNS, *(TIMES if attempts is None else [])]), attempts, durations
    )
    gpu_time = merge_sums(sum_block(*block, *block_options) for block in blocks)
    supply, waiting_changes, unused = _gpu_supply(inputs, months), waiting_gpus(jobs), {}
    # If the start of the record is cut off, the earlier use of the GPUs is unknown.
    known_from_s, _ = find_record_start(gpu_runs["start_s"], months.end_s)
    if supply.capacity_milli and known_from_s == months.begin_s:
        usage = usage_changes(gpu_runs["start_s"], gpu_runs["until_s"], gpu_runs["gpu_milli"])
        unused = account_in_windows(usage, supply.capacity_milli, supply.changes, waiting_changes, months.edges_s)
        unused = name_unused(unused, "outages" in inputs, waiting_changes is not None)
    basis = durations.head(1).select("basis").collect().item()
    notes = category_notes(settings.checkpoint_interval_s, settings.restart_s, attempts is not None, supply.unsized)
    prices = settings.prices if inputs.unit == GPU_UNIT else {}  # prices are per GPU hour
    table = build_ledger(gpu_time, unused, months.month_names, basis, notes, prices, settings.owners)
    return {"ledger": table, "ledger_summary": summarise_ledger(table)}


def sum_block(
    jobs: pl.DataFrame,
    attempts: pl.DataFrame | None,
    infra_durations: pl.DataFrame,
    begin_s: int,
    checkpoint_interval_s: int,
    restart_s: int,
) -> pl.DataFrame:
    """Sum the GPU time of one block of jobs (`ttf.records.runs.Block`) of a trace that begins at `begin_s`."""
    block_runs = build_runs(jobs, attempts, infra_durations).collect()
    partition = jobs["partition"].gather(block_runs["job"]) if "partition" in jobs.columns else pl.lit(None, pl.String)
    block_runs = with_known_time(block_runs.lazy().with_columns(partition=partition)).collect()
    until_s = max(block_runs.select(pl.col("until_s").max()).item() or begin_s, begin_s + 1)
    return sum_gpu_time(block_runs.lazy(), Months(begin_s, until_s), checkpoint_interval_s, restart_s)


def _gpu_supply(inputs: Inputs, months: Months) -> Unavailable:
    """Return the GPU capacity and the unavailable GPUs; empty if job sizes are not in GPUs."""
    if inputs.unit != GPU_UNIT:
        return Unavailable(0, [NO_CHANGES] * 3, 0)
    if "placements" in inputs and "outages" in inputs:
        with inputs.scratch() as folder:
            return _measure_unavailable(inputs, months, folder)
    if "occupancy_basis" in inputs:
        gpus = inputs["occupancy_basis"]["gpus"]
    else:
        gpus = inputs.read("nodes", ["gpu_count"])["gpu_count"] if "nodes" in inputs else pl.Series([0])
    return Unavailable(int(gpus.sum()) * GPU, [NO_CHANGES] * 3, 0)


def _measure_unavailable(inputs: Inputs, months: Months, scratch_folder: Path) -> Unavailable:
    attempts = inputs.scan("attempts") if "attempts" in inputs else None
    allocations, _ = load_gpu_allocations(
        inputs.scan("placements"), inputs.scan("jobs"), inputs.read("nodes"), attempts, scratch_folder
    )
    outages, exposure = inputs.read("outages"), inputs.read("exposure") if "exposure" in inputs else None
    watched = select_nodes(outages if exposure is None else exposure)["node"].unique()
    spans = unavailable_intervals(outages, exposure, months.begin_s, months.end_s)
    return measure_unavailable(allocations, spans, watched)
