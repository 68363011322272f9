from collections.abc import Iterator, Sequence

import polars as pl

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
from ttf.engine.storage.partitions import partitions_of
from ttf.records.clusters import READ_OF_JOBS
from ttf.records.inputs import Inputs
from ttf.records.runs import Block, in_blocks, runs

# Of which runs are made.
JOBS = ("user", "account", "outcome", "gpu_milli", "size")
TIMES = ("start_s", "end_s", "runtime_s", "trace_end_s")
ATTEMPTS = ("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "node_list")
REASONS = ("attempt", "deterministic")
PARTS = ("attempt_id", "placement", "attempt", "node", "outcome", "own_outcome")
# Jobs looked at together for how failures repeat.
PARTITION_ROWS = 1 << 21


def compute(given: Inputs) -> dict:
    settings = given.settings.lost_work
    trials_s = [60 * minutes for minutes in settings["trial_minutes"]]
    jobs = given.scan("jobs", ["outcome", *OWNERS, "recurrence_group", "submit_s", *TIMES])
    begin_s = pl.min_horizontal(pl.col("submit_s").min(), pl.col("start_s").min())
    begin_s, end_s = jobs.select(begin_s, pl.col("trace_end_s").max()).collect(engine="streaming").row(0)
    told = settings["checkpoint_interval_s"], begin_s, trials_s
    parts = [of_block(*block, *told) for block in _blocks(given)]
    owners, losses = owner_counts(parts), loss_sums(parts, settings["preemption_window_s"])
    with given.scratch() as spilled:
        of_runs = pl.concat(part["times"] for part in parts)
        placements = given.scan("placements", PARTS) if "placements" in given else None
        attempt_jobs = given.read("attempts", ["job"])["job"] if "attempts" in given else None
        partitions = partitions_of([jobs], PARTITION_ROWS, spilled)
        of_repeats = repeats(jobs, of_runs, partitions, placements, attempt_jobs)
    alike = given.scan("jobs", ["outcome", *OWNERS, *READ_OF_JOBS])
    return {
        "lost_work": lost_work(losses),
        "lost_work_all": lost_work_all(losses),
        "lost_work_by_month": lost_work_by_month(losses, begin_s, end_s),
        "failures_by_owner": failures_by_owner(owners, settings["owners"], alike),
        "failure_concentration": concentration(owners),
        "repeats": of_repeats,
        "what_if": what_if(pl.concat(part["what_if"] for part in parts), trials_s),
    }


def _blocks(given: Inputs) -> Iterator[Block]:
    attempts = given.scan("attempts", ATTEMPTS) if "attempts" in given else None
    reasons = given.scan("reasons", REASONS) if "reasons" in given else None
    jobs = given.scan("jobs", [*JOBS, *(TIMES if attempts is None else [])])
    return in_blocks(jobs, attempts, given.scan("lives_infra", ["event", "state", "basis"]), reasons)


def of_block(
    jobs: pl.DataFrame,
    attempts: pl.DataFrame | None,
    infra_lives: pl.DataFrame,
    interval_s: int,
    begin_s: int | None,
    trials_s: Sequence[int],
) -> dict[str, pl.DataFrame]:
    """What the tables are put together from, of some jobs (`ttf.records.runs.Block`)."""
    of_jobs = runs(jobs, attempts, infra_lives).collect()
    return {
        **owner_sums(jobs, of_jobs),
        **loss_parts(of_jobs, interval_s, begin_s),
        "times": times_of_runs(of_jobs),
        "what_if": what_if_sums(of_jobs, trials_s),
    }
