"""Compute the measured GPU use of Philly's jobs from the telemetry of their GPUs while they held them.

The telemetry has 45 million rows. It is read once, some million rows at a time, in any order. In each piece, the
readings are cumulated along each machine's time; the sum over an interval is the difference of two cumulative sums.
All numbers are integers, so the size of the pieces does not change the result.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

GPUS = tuple(f"gpu{index}_mpct" for index in range(8))
CHUNK_ROWS = 2_000_000
MINUTE_S = 60
# One number holds a machine's code and a time; times have up to 37 bits (MAX_SECOND in ttf/raw_tables.py).
_TIME_BITS = 37


def gpu_use(held: pl.DataFrame, telemetry: pl.LazyFrame, chunk_rows: int = CHUNK_ROWS) -> pl.DataFrame:
    """Sum and count the readings within intervals, per owner of the intervals.

    held: owner, machine, gpu (index), start_s, end_s of each GPU allocation. A reading counts from the minute in which
    the interval starts to before its end, as in the trace's own notebook; a blank reading does not count.
    telemetry: time_s, machine, GPUS (thousandths of a percent).
    Returns owner, readings, util_mpct_sum; owners without readings are omitted.
    """
    held, machines = sort_intervals(held)
    sums, readings = np.zeros(held.height, np.int64), np.zeros(held.height, np.int64)
    for rows, values, first, last in match_readings(held, machines, telemetry, chunk_rows):
        sums[rows] += _sum_ranges(values.fill_null(0), first, last)
        readings[rows] += _sum_ranges(values.is_not_null().cast(pl.Int64), first, last)
    return (
        held.select("owner", readings=readings, util_mpct_sum=sums)
        .group_by("owner")
        .agg(pl.col("readings", "util_mpct_sum").sum())
        .filter(pl.col("readings") > 0)
        .sort("owner")
    )


def sort_intervals(held: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the non-empty intervals on measured GPUs, from whole minutes on, and a table of machine and code.

    The intervals are sorted by GPU, `code` of the machine and start.
    """
    machines = held.select("machine").unique().sort("machine").with_row_index("code").cast({"code": pl.Int64})
    held = held.filter(pl.col("gpu") < len(GPUS), pl.col("start_s") < pl.col("end_s")).join(machines, on="machine")
    held = held.with_columns(start_s=pl.col("start_s") // MINUTE_S * MINUTE_S)
    return held.sort("gpu", "code", "start_s", maintain_order=True), machines


def match_readings(
    held: pl.DataFrame, machines: pl.DataFrame, telemetry: pl.LazyFrame, chunk_rows: int
) -> Iterator[tuple[np.ndarray, pl.Series, np.ndarray, np.ndarray]]:
    """Yield, by piece and GPU: rows of `held`, readings, and for each row the slice (first, stop) of its readings.

    held, machines: from `sort_intervals`. Every reading within an interval occurs once.
    """
    gpu, code, start, end = (held[name].to_numpy() for name in ("gpu", "code", "start_s", "end_s"))
    for offset in range(0, telemetry.select(pl.len()).collect().item(), chunk_rows):
        rows = _sort_telemetry(telemetry.slice(offset, chunk_rows), machines)
        if not rows.height:
            continue
        keys, times, codes = (rows[name].to_numpy() for name in ("key", "time_s", "code"))
        is_touched = (end > times.min()) & (start <= times.max()) & (code >= codes.min()) & (code <= codes.max())
        for index, name in enumerate(GPUS):
            own_rows = np.flatnonzero(is_touched & (gpu == index))
            if own_rows.size:
                first = np.searchsorted(keys, combine_key(code[own_rows], start[own_rows]))
                last = np.searchsorted(keys, combine_key(code[own_rows], end[own_rows]))
                yield own_rows, rows[name], first, last


def _sort_telemetry(telemetry: pl.LazyFrame, machines: pl.DataFrame) -> pl.DataFrame:
    """Return the telemetry of these machines with the `code` of each, sorted by `key` (code and time)."""
    return (
        telemetry.select("time_s", "machine", *GPUS)
        .join(machines.lazy(), on="machine")
        .drop("machine")
        .with_columns(key=combine_key(pl.col("code"), pl.col("time_s")))
        .sort("key")
        .collect()
    )


def combine_key(code, time_s):
    """Combine a machine's code and a time into one number, in the order of both."""
    return code * (1 << _TIME_BITS) + time_s


def _sum_ranges(values: pl.Series, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the sum of values[first:last] for each pair of indices."""
    running = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values.to_numpy(), out=running[1:])
    return running[last] - running[first]
