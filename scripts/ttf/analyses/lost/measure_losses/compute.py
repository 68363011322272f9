"""GPU time lost to failures: lost work, by owner, by repeated failure, and what trials would have saved."""

from collections.abc import Iterator, Sequence

import polars as pl

from ttf.analyses.lost.measure_losses.locality import JOB_COLUMNS, locality
from ttf.analyses.lost.measure_losses.lost_work import (
    loss_parts,
    loss_sums,
    lost_work,
    lost_work_all,
    lost_work_by_month,
)
from ttf.analyses.lost.measure_losses.owners import OWNERS, concentration, failures_by_owner, owner_counts, owner_sums
from ttf.analyses.lost.measure_losses.repeats import repeats, times_of_runs
from ttf.analyses.lost.measure_losses.what_if import what_if, what_if_sums
from ttf.engine.storage.partitions import choose_partitions
from ttf.records.clusters import JOB_CLUSTER_COLUMNS
from ttf.records.inputs import Inputs
from ttf.records.runs import Block, build_runs, iterate_blocks

# Columns from which runs are made.
JOBS = ("user", "account", "outcome", "gpu_milli", "size")
TIMES = ("start_s", "end_s", "runtime_s", "trace_end_s")
ATTEMPTS = ("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "node_list")
REASONS = ("attempt", "deterministic", "domain")
PARTS = ("attempt_id", "placement", "attempt", "node", "outcome", "own_outcome")
# Jobs in memory at once for repeated failures.
PARTITION_ROWS = 1 << 21


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    settings = inputs.settings.lost_work
    trials_s = [60 * minutes for minutes in settings["trial_minutes"]]
    jobs = inputs.scan("jobs", ["outcome", *OWNERS, "recurrence_group", "submit_s", *TIMES])
    begin_s = pl.min_horizontal(pl.col("submit_s").min(), pl.col("start_s").min())
    begin_s, end_s = jobs.select(begin_s, pl.col("trace_end_s").max()).collect(engine="streaming").row(0)
    interval_s = settings["checkpoint_interval_s"]
    parts = [sum_block(*block, interval_s, begin_s, trials_s) for block in _iterate_run_blocks(inputs)]
    owners, losses = owner_counts(parts), loss_sums(parts, settings["preemption_window_s"])
    with inputs.scratch() as scratch_folder:
        run_times = pl.concat(part["times"] for part in parts)
        placements = inputs.scan("placements", PARTS) if "placements" in inputs else None
        attempt_jobs = inputs.read("attempts", ["job"])["job"] if "attempts" in inputs else None
        partitions = choose_partitions([jobs], PARTITION_ROWS, scratch_folder)
        repeats_table = repeats(jobs, run_times, partitions, placements, attempt_jobs)
    clustered_jobs = inputs.scan("jobs", ["outcome", *OWNERS, *JOB_CLUSTER_COLUMNS])
    return {
        "lost_work": lost_work(losses),
        "lost_work_all": lost_work_all(losses),
        "lost_work_by_month": lost_work_by_month(losses, begin_s, end_s),
        "failures_by_owner": failures_by_owner(owners, settings["owners"], clustered_jobs),
        "failure_concentration": concentration(owners),
        "repeats": repeats_table,
        "locality": locality(inputs.scan("jobs", JOB_COLUMNS)),
        "what_if": what_if(pl.concat(part["what_if"] for part in parts), trials_s),
    }


def _iterate_run_blocks(inputs: Inputs) -> Iterator[Block]:
    attempts = inputs.scan("attempts", ATTEMPTS) if "attempts" in inputs else None
    reasons = inputs.scan("reasons", REASONS) if "reasons" in inputs else None
    jobs = inputs.scan("jobs", [*JOBS, *(TIMES if attempts is None else [])])
    return iterate_blocks(jobs, attempts, inputs.scan("durations_infra", ["event", "state", "basis"]), reasons)


def sum_block(
    jobs: pl.DataFrame,
    attempts: pl.DataFrame | None,
    infra_durations: pl.DataFrame,
    interval_s: int,
    begin_s: int | None,
    trials_s: Sequence[int],
) -> dict[str, pl.DataFrame]:
    """Return the partial sums of some jobs (`ttf.records.runs.Block`) from which the tables are made."""
    block_runs = build_runs(jobs, attempts, infra_durations).collect()
    return {
        **owner_sums(jobs, block_runs),
        **loss_parts(block_runs, interval_s, begin_s),
        "times": times_of_runs(block_runs),
        "what_if": what_if_sums(block_runs, trials_s),
    }
