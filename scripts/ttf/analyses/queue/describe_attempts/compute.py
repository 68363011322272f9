"""How long attempts wait, how often jobs are tried, how long attempts run until they fail."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ttf.analyses.queue.describe_attempts import delays, retries
from ttf.engine.storage.tables import BLOCK_ROWS, blocks_with_attempts
from ttf.records.clusters import level_names, with_level_names
from ttf.records.inputs import Inputs

JOBS = ("user", "account", "outcome", "gpu_milli", "size", "attempts", "submit_s", "cluster", "group", "block")
ATTEMPTS = ("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes")
OF_ORDER = ("account", "submit_s", "start_s", "gpu_milli", "size")


def compute(given: Inputs, size: int = BLOCK_ROWS) -> dict:
    window, levels = given.settings.window, level_names(given.scan("jobs"))
    blocks = blocks_with_attempts(given.scan("jobs", JOBS), given.scan("attempts", ATTEMPTS), size)
    attempt_tables = tables((of_block(*block, levels, window) for block in blocks), window)
    return attempt_tables | {"out_of_order": delays.out_of_order(given.read("jobs", OF_ORDER))}


def of_block(
    jobs: pl.DataFrame, attempts: pl.DataFrame, levels: Sequence[str | None], window: Sequence[int] | None
) -> dict[str, pl.DataFrame]:
    """What some jobs and their attempts add to the tables; see the functions that give it.

    levels: what the clusters and the groups of all jobs are, and the blocks (`ttf.records.clusters.level_names`).
    """
    jobs = with_level_names(jobs, levels)
    placed = delays.placed(jobs, attempts)
    waits, tries = delays.waits(placed), retries.tries(placed)
    return {
        "accounts": jobs.group_by("account").agg(n=pl.len().cast(pl.Int64)),
        "waits": delays.counted_waits(waits),
        "waits_by_nodes": delays.waits_by_nodes(waits),
        "ended": retries.ended(jobs),
        "failed": tries.filter("failed").select("user", "bucket", "runtime_s", "gpu_milli", "failed", "by_proxy"),
        "trials": retries.trials(jobs, tries),
        "outcomes": retries.outcome_sums(jobs, tries, window),
    }


def tables(blocks: Iterable[Mapping[str, pl.DataFrame]], window: Sequence[int] | None) -> dict[str, pl.DataFrame]:
    """The tables but one, by name, of what each of the blocks adds to them."""
    blocks = list(blocks)
    of = {name: pl.concat(block[name] for block in blocks) for name in blocks[0]}
    # An attempt without an outcome of its own failed, by proxy.
    basis = retries.basis_of(of["failed"])
    return {
        "delays": delays.delays(of["waits"], delays.busiest(of["accounts"])),
        "delay_by_nodes": delays.delay_by_nodes(of["waits_by_nodes"]),
        "retries": retries.retries(of["ended"]),
        "runtime_to_failure": retries.runtime_to_failure(of["failed"]),
        "failed_attempts": retries.failed_attempts(of["trials"], of["failed"]),
        "outcomes_window": retries.outcomes_window(of["outcomes"], basis, window),
    }
