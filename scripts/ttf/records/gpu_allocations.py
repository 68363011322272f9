"""Reconstruct GPU allocations of servers from the placements of a trace, on disk, for work on a few servers at a time.

All values are integers (seconds, milli-GPU), so the order of the rows does not matter.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ttf.engine.name_codes import NameNumbers
from ttf.engine.storage.spill import Spill

GPU = 1000  # milli-GPU
# About this many placements are processed together: all of a few servers.
BLOCK_ROWS = 100_000
# About this many starts and ends are processed together: a window of time.
WINDOW_ROWS = 200_000
# Every SAMPLE-th start and end is used to choose the window limits.
SAMPLE = 256


@dataclass(frozen=True)
class GpuAllocations:
    """GPU allocations: each part of an attempt that held GPUs of a server for a known time.

    by_server: server, attempt, start_s, end_s, gpu_milli and, if there are `accounts`, the account's index (-1: none);
    a server is in one part; start < end, gpu_milli > 0. cuts_s: starts and ends, ascending, that divide the time into
    windows with about equally many of them. known_milli: recorded size of each server, 0 if unknown or if the number is
    unused. names: of the server numbers. counts: of OCCUPANCY_BASIS.
    """

    by_server: Spill
    accounts: list[str]
    first_s: int
    last_s: int
    cuts_s: np.ndarray
    known_milli: np.ndarray
    names: NameNumbers
    counts: dict[str, int]

    @property
    def is_empty(self) -> bool:
        """Return whether no placement held a GPU for a known time."""
        return self.first_s == self.last_s

    def window_index(self, time_s: np.ndarray) -> np.ndarray:
        """Return the window index of each time; the first and last windows are unbounded."""
        return np.searchsorted(self.cuts_s, time_s, side="right")


def load_gpu_allocations(
    placements: pl.LazyFrame, jobs: pl.LazyFrame, nodes: pl.DataFrame, attempts: pl.LazyFrame | None, folder: Path
) -> tuple[GpuAllocations, np.ndarray]:
    """Load the GPU allocations; return them and the milli-GPU of each attempt over all its parts.

    A running placement without an end lasts to the trace's end. Other placements without an end are excluded, as are
    those without a start or with an end before it. A placement with blank GPUs gets its part of the attempt's GPUs (see
    `split_evenly`), or none without `attempts`.

    Parameters
    ----------
    placements : PLACEMENT_COLUMNS; attempt_id is the row of the attempt (or job), so no join by text is needed
    jobs, nodes : the common records
    attempts : job, gpu_milli; None if jobs are attempts
    folder : for temporary files
    """
    # Machines without GPUs cannot be busy.
    gpu_nodes = nodes.filter(pl.col("gpu_count") > 0).unique("node", keep="first", maintain_order=True)
    numbers = NameNumbers(*gpu_nodes["node"])
    accounts, account_by_attempt = _read_accounts(jobs, attempts)
    blank_shares = None if attempts is None else _BlankShares(placements, attempts)
    trace_end_s = jobs.select(pl.col("trace_end_s").max()).collect(engine="streaming").item()
    rows = placements.select(
        "attempt_id",
        "start_s",
        "gpu_milli",
        end_s=pl.coalesce("end_s", pl.when(pl.col("outcome") == "running").then(pl.lit(trace_end_s, dtype=pl.Int64))),
        node=numbers.encode(pl.col("node")),
    )
    n_rows, last_attempt = placements.select(pl.len(), pl.col("attempt_id").max()).collect(engine="streaming").row(0)
    by_server = Spill(folder / "by_server", max(1, -(-n_rows // BLOCK_ROWS)), 6 if accounts else 5)
    counts = dict.fromkeys(("placements", "left_out", "spread"), 0)
    attempt_milli = np.zeros(1 + (last_attempt or 0), np.int64)
    rows_held, servers, sample_s = 0, gpu_nodes.height, [np.zeros(0, np.int64)]
    first_s, last_s = [], []
    is_known = (pl.col("start_s") <= pl.col("end_s")).fill_null(False)
    is_held = (pl.col("start_s") < pl.col("end_s")).fill_null(False) & pl.col("node").is_not_null()
    # Keep the order: the first parts of an attempt get the remainder.
    for batch in rows.collect_batches(maintain_order=True, engine="streaming"):
        if blank_shares is not None:
            batch = blank_shares.fill_gpus(batch)
        batch = batch.filter(pl.col("gpu_milli") > 0)
        counts["placements"] += batch.height
        counts["left_out"] += int(batch.select(~is_known).to_series().sum())
        counts["spread"] += int(batch["spread"].sum()) if blank_shares is not None else 0
        batch = batch.filter(is_held)
        if batch.is_empty():
            continue
        node, attempt, start, end, gpu = (
            batch[name].to_numpy() for name in ("node", "attempt_id", "start_s", "end_s", "gpu_milli")
        )
        account_columns = [account_by_attempt[attempt]] if accounts else []
        by_server.add(node % by_server.parts, node, attempt, start, end, gpu, *account_columns)
        np.add.at(attempt_milli, attempt, gpu)
        rows_held, servers = rows_held + batch.height, max(servers, 1 + int(node.max()))
        first_s.append(int(start.min()))
        last_s.append(int(end.max()))
        sample_s += [start[::SAMPLE].copy(), end[::SAMPLE].copy()]
    known_milli = np.zeros(servers, np.int64)
    known_milli[: gpu_nodes.height] = gpu_nodes["gpu_count"].to_numpy() * GPU
    start_s, end_s = min(first_s, default=0), max(last_s, default=0)
    allocations = GpuAllocations(
        by_server,
        accounts,
        start_s,
        end_s,
        _window_cuts(np.concatenate(sample_s), start_s, end_s, -(-2 * rows_held // WINDOW_ROWS)),
        known_milli,
        numbers,
        counts,
    )
    return allocations, attempt_milli


def _read_accounts(jobs: pl.LazyFrame, attempts: pl.LazyFrame | None) -> tuple[list[str], np.ndarray]:
    """Return (account names, sorted; index of the account of each attempt_id, -1 for none)."""
    accounts = jobs.select("account").collect()["account"]
    names = accounts.drop_nulls().unique().sort()
    codes = accounts.cast(pl.Enum(names)).to_physical().cast(pl.Int32)
    if attempts is not None:
        codes = codes.gather(attempts.select("job").collect()["job"])
    return names.to_list(), codes.fill_null(-1).to_numpy()


def _window_cuts(times_s: np.ndarray, first_s: int, last_s: int, n_windows: int) -> np.ndarray:
    """Choose cuts that divide the times into about `n_windows` windows of equal count."""
    inner_s = np.sort(times_s[(first_s < times_s) & (times_s < last_s)])
    return np.unique(inner_s[np.arange(1, n_windows) * inner_s.size // n_windows]) if inner_s.size else inner_s


# np.add.at is many times as fast if both operands have the same type.
_INT32_ONE = np.int32(1)


class _BlankShares:
    """Fill blank GPUs of placements from their attempts; call for all rows, in order."""

    def __init__(self, placements: pl.LazyFrame, attempts: pl.LazyFrame) -> None:
        self._total = attempts.select(pl.col("gpu_milli").fill_null(0)).collect()["gpu_milli"].to_numpy()
        self._parts, self._counts = np.zeros((2, self._total.size), np.int32)
        blank = placements.filter(pl.col("gpu_milli").is_null()).select("attempt_id")
        for batch in blank.collect_batches(maintain_order=False, engine="streaming"):
            np.add.at(self._parts, batch["attempt_id"].to_numpy(), _INT32_ONE)

    def fill_gpus(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with gpu_milli filled from their attempt, and `spread`: whether it was blank."""
        is_blank = rows["gpu_milli"].is_null()
        blank_rows = rows.select("attempt_id").filter(is_blank)
        rank_in_batch = blank_rows.select(pl.int_range(pl.len()).over("attempt_id")).to_series().to_numpy()
        attempt = blank_rows["attempt_id"].to_numpy()
        ranks = self._counts[attempt] + rank_in_batch
        np.add.at(self._counts, attempt, _INT32_ONE)
        gpu_milli = rows["gpu_milli"].fill_null(0).to_numpy().copy()
        gpu_milli[is_blank.to_numpy()] = split_evenly(self._total[attempt], self._parts[attempt], ranks)
        return rows.with_columns(gpu_milli=pl.Series(gpu_milli), spread=is_blank)


def split_evenly(total: np.ndarray, parts: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Split GPUs into equal parts and return the part of each rank, from 0; the first ranks get the remainder.

    Whole GPUs stay whole. Slurm's accounting records the total GPUs of a run, but not their number per node.
    """
    unit_milli = np.where(total % GPU == 0, GPU, 1)
    share, remainder = np.divmod(total // unit_milli, parts)
    return (share + (rank < remainder)) * unit_milli
