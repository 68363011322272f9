"""Measured GPU use of Philly's jobs: the telemetry of the GPUs they held, over the minutes they held them.

The telemetry has 45 million rows. It is gone through once, some million rows at a time, in whatever order it has: for
each piece the readings are added up along each machine's time, and the sum over an interval is the difference of the
running sums at its ends. All of it is whole numbers, so the pieces add up to the same whatever their size.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

GPUS = tuple(f"gpu{index}_mpct" for index in range(8))
CHUNK_ROWS = 2_000_000
MINUTE_S = 60
# A machine's number and a time in one number: times have up to 37 bits (LATEST_SECOND in ttf/raw_tables.py).
_TIME_BITS = 37


def gpu_use(held: pl.DataFrame, telemetry: pl.LazyFrame, chunk_rows: int = CHUNK_ROWS) -> pl.DataFrame:
    """Sum and number of the readings that fall into intervals, per owner of them.

    held: owner, machine, gpu (index), start_s, end_s: who held which GPU from when to when. A reading counts from the
    minute the interval starts in to before its end (the rule of the trace's own notebook); a blank one does not.
    telemetry: time_s, machine, GPUS (thousandths of a percent).
    Returns owner, readings, util_mpct_sum; an owner without readings is not in it.
    """
    held, machines = by_gpu_and_start(held)
    sums, readings = np.zeros(held.height, np.int64), np.zeros(held.height, np.int64)
    for mine, values, first, last in pieces(held, machines, telemetry, chunk_rows):
        sums[mine] += _between(values.fill_null(0), first, last)
        readings[mine] += _between(values.is_not_null().cast(pl.Int64), first, last)
    return (
        held.select("owner", readings=readings, util_mpct_sum=sums)
        .group_by("owner")
        .agg(pl.col("readings", "util_mpct_sum").sum())
        .filter(pl.col("readings") > 0)
        .sort("owner")
    )


def by_gpu_and_start(held: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The intervals that hold a moment on a GPU that is measured, from whole minutes on, and machine, code.

    By GPU, `code` of the machine and start.
    """
    machines = held.select("machine").unique().sort("machine").with_row_index("code").cast({"code": pl.Int64})
    held = held.filter(pl.col("gpu") < len(GPUS), pl.col("start_s") < pl.col("end_s")).join(machines, on="machine")
    held = held.with_columns(start_s=pl.col("start_s") // MINUTE_S * MINUTE_S)
    return held.sort("gpu", "code", "start_s", maintain_order=True), machines


def pieces(
    held: pl.DataFrame, machines: pl.DataFrame, telemetry: pl.LazyFrame, chunk_rows: int
) -> Iterator[tuple[np.ndarray, pl.Series, np.ndarray, np.ndarray]]:
    """Piece by piece and GPU by GPU: rows of `held`, some readings, and for each row from where to where they are its.

    held, machines: of `by_gpu_and_start`. Every reading within an interval comes by once.
    """
    gpu, code, start, end = (held[name].to_numpy() for name in ("gpu", "code", "start_s", "end_s"))
    height = telemetry.select(pl.len()).collect().item()
    for offset in range(0, height, chunk_rows):
        rows = _by_machine_and_time(telemetry.slice(offset, chunk_rows), machines)
        if not rows.height:
            continue
        keys, times, codes = (rows[name].to_numpy() for name in ("key", "time_s", "code"))
        touched = (end > times.min()) & (start <= times.max()) & (code >= codes.min()) & (code <= codes.max())
        for index, name in enumerate(GPUS):
            mine = np.flatnonzero(touched & (gpu == index))
            if mine.size:
                first = np.searchsorted(keys, key_of(code[mine], start[mine]))
                last = np.searchsorted(keys, key_of(code[mine], end[mine]))
                yield mine, rows[name], first, last


def _by_machine_and_time(telemetry: pl.LazyFrame, machines: pl.DataFrame) -> pl.DataFrame:
    """The rows of the machines, with their `code` and `key`, in the order of `key`."""
    return (
        telemetry.select("time_s", "machine", *GPUS)
        .join(machines.lazy(), on="machine")
        .drop("machine")
        .with_columns(key=key_of(pl.col("code"), pl.col("time_s")))
        .sort("key")
        .collect()
    )


def key_of(code, time_s):
    """A machine and a time as one number, in the order of both."""
    return code * (1 << _TIME_BITS) + time_s


def _between(values: pl.Series, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Sums of values[first:last], for many intervals at once."""
    running = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values.to_numpy(), out=running[1:])
    return running[last] - running[first]
