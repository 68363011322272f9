"""Waits of attempts, retries of jobs, and run time of failed attempts."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ttf.analyses.queue.describe_attempts import delays, restarts, retries
from ttf.engine.storage.tables import BLOCK_ROWS, read_blocks_with_attempts
from ttf.records.clusters import add_level_names, level_names
from ttf.records.inputs import Inputs

JOBS = ("user", "account", "outcome", "gpu_milli", "size", "attempts", "submit_s", "cluster", "group", "block")
ATTEMPTS = ("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes")
START_ORDER_COLUMNS = ("account", "submit_s", "start_s", "gpu_milli", "size")


def compute(inputs: Inputs, block_rows: int = BLOCK_ROWS) -> dict[str, pl.DataFrame]:
    window, levels = inputs.settings.window, level_names(inputs.scan("jobs"))
    blocks = read_blocks_with_attempts(inputs.scan("jobs", JOBS), inputs.scan("attempts", ATTEMPTS), block_rows)
    attempt_tables = build_tables((summarise_block(*block, levels, window) for block in blocks), window)
    out_of_order = delays.build_out_of_order(inputs.read("jobs", START_ORDER_COLUMNS))
    return attempt_tables | {"out_of_order": out_of_order} | restarts.compute_restarts(inputs)


def summarise_block(
    jobs: pl.DataFrame, attempts: pl.DataFrame, levels: Sequence[str | None], window: Sequence[int] | None
) -> dict[str, pl.DataFrame]:
    """Return, by name, counts of a block of jobs and attempts for `build_tables`. levels: `level_names` of all jobs."""
    jobs = add_level_names(jobs, levels)
    ordered = delays.order_attempts(jobs, attempts)
    waits, started = delays.compute_waits(ordered), retries.list_started_attempts(ordered)
    return {
        "accounts": jobs.group_by("account").agg(n=pl.len().cast(pl.Int64)),
        "waits": delays.count_waits(waits),
        "waits_by_nodes": delays.count_waits_by_nodes(waits),
        "ended": retries.count_ended_jobs(jobs),
        "failed": started.filter("failed").select("user", "bucket", "runtime_s", "gpu_milli", "failed", "is_proxy"),
        "trials": retries.count_failed_attempts(jobs, started),
        "outcomes": retries.sum_outcomes(jobs, started, window),
    }


def build_tables(blocks: Iterable[Mapping[str, pl.DataFrame]], window: Sequence[int] | None) -> dict[str, pl.DataFrame]:
    """Build the tables except OUT_OF_ORDER, by name, from the summaries of all blocks."""
    blocks = list(blocks)
    summaries = {name: pl.concat(block[name] for block in blocks) for name in blocks[0]}
    # An attempt without an outcome of its own counts as failed.
    basis = retries.failure_basis(summaries["failed"])
    return {
        "delays": delays.build_delays(summaries["waits"], delays.largest_accounts(summaries["accounts"])),
        "delay_by_nodes": delays.build_delay_by_nodes(summaries["waits_by_nodes"]),
        "retries": retries.build_retries(summaries["ended"]),
        "runtime_to_failure": retries.build_runtime_to_failure(summaries["failed"]),
        "failed_attempts": retries.build_failed_attempts(summaries["trials"], summaries["failed"]),
        "outcomes_window": retries.build_outcomes_window(summaries["outcomes"], basis, window),
    }
