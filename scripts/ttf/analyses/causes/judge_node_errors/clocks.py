"""Compare the clocks of logs and jobs by the time from errors to the ends of failed runs, and correct clear offsets.

Errors that end runs, and those that ending runs write, come within minutes of the ends. If logs and jobs have different
clocks, these pairs are all as far apart. So one lag is much more frequent than the same lag with ends of other days,
which holds for errors and failures at fixed times of the day as well.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import binom

from ttf.records.clusters import DAY_S
from ttf.records.node_errors import MOST_OFFSET_S
from ttf.stats.clustered import FEWEST

_STEP_S, _DAYS, _BLOCK_DAYS = 30, 7, 28
_FEWEST = 5
SIGNIFICANCE = 0.001
# Shorter lags may be those of hardware, so only errors of applications, which end at once, show them. Time zones differ
# by multiples.
LEAST_LAG_S = 900
_MOST_PAIRS = 2_000_000
AGREE, CORRECTED, NOT_CHECKED = "agree", "corrected", "not checked"


class Clocks(NamedTuple):
    """How the clocks of logs and jobs compare, number of units corrected, and the most frequent correction in s."""

    status: str
    units: int
    offset_s: int | None


def align_clocks(errors: pl.DataFrame, runs: pl.DataFrame, window_s: int) -> tuple[pl.DataFrame, Clocks]:
    """Return the errors with corrected time_s and last_s: of all units together, then by four weeks, then by unit.

    errors: unit, application, time_s, last_s. runs: `ttf.stats.matched_risk.RUNS`. window_s: longest time from an error
    to the failure.
    """
    ends = runs.filter("is_failed").select("unit", end_s="end_s").unique()
    before_s, is_checked = errors["time_s"], False
    block = pl.col("time_s") // (_BLOCK_DAYS * DAY_S)
    for key in (pl.lit(0, pl.Int64), block, pl.col("unit").cast(pl.Int64)):
        errors = errors.with_columns(group=key)
        lags = list(_find_lags(errors, ends, window_s))
        is_checked |= bool(lags)
        shifts = pl.DataFrame(lags, {"group": pl.Int64, "shift_s": pl.Int64}, orient="row")
        errors = errors.join(shifts, on="group", how="left", maintain_order="left")
        errors = errors.with_columns(pl.col("time_s", "last_s") + pl.col("shift_s").fill_null(0)).drop("shift_s")
    moved = errors.select("unit", offset_s=before_s - pl.col("time_s")).filter(pl.col("offset_s") != 0)
    status = CORRECTED if moved.height else AGREE if is_checked else NOT_CHECKED
    offsets_s = moved["offset_s"].mode().sort().to_list()
    return errors.drop("group"), Clocks(status, moved["unit"].n_unique(), next(iter(offsets_s), None))


def _find_lags(errors: pl.DataFrame, ends: pl.DataFrame, window_s: int) -> Iterator[tuple[int, int]]:
    """Yield each group whose clocks can be compared, with the correction of its time, 0 if they agree."""
    level, compared = SIGNIFICANCE / max(1, errors["group"].n_unique()), set()
    for is_application in (True, False):
        own = errors.filter(application=is_application).unique(["group", "unit", "time_s"], maintain_order=True)
        group, unit, lag_s = _pair_ends(own.sort("group", "unit", "time_s"), ends)
        for part in np.split(np.arange(group.size), np.flatnonzero(np.diff(group)) + 1):
            number = int(group[part[0]]) if part.size else None
            if number is None or number in compared:
                continue
            width_s = MOST_OFFSET_S if is_application else window_s
            start_s = _find_peak(lag_s[part], width_s, level)
            if start_s is None or not _is_spread(unit[part], lag_s[part] - start_s, width_s):
                continue
            whole_s = round(start_s / LEAST_LAG_S) * LEAST_LAG_S
            if abs(start_s - whole_s) <= width_s / 2:
                start_s = whole_s
            agrees = -width_s <= start_s <= window_s
            if agrees or is_application or abs(start_s) >= LEAST_LAG_S:
                compared.add(number)
                yield number, 0 if agrees else start_s


def _pair_ends(errors: pl.DataFrame, ends: pl.DataFrame) -> tuple[np.ndarray, ...]:
    """Return group, unit and time from the error to the end, of errors and ends on a unit within _DAYS and a half."""
    group, unit, time_s = (errors[name].to_numpy().astype(np.int64) for name in ("group", "unit", "time_s"))
    end_unit, end_s = (ends[name].to_numpy().astype(np.int64) for name in ("unit", "end_s"))
    low = min(time_s.min(initial=0), end_s.min(initial=0)) - (_DAYS + 1) * DAY_S
    span = max(time_s.max(initial=0), end_s.max(initial=0)) + (_DAYS + 1) * DAY_S - low
    keys = np.sort(end_unit * span + end_s - low)
    near = unit * span + time_s - low
    reach = _DAYS * DAY_S + DAY_S // 2
    first, last = np.searchsorted(keys, near - reach), np.searchsorted(keys, near + reach)
    stride = 1 + int((last - first).sum()) // _MOST_PAIRS
    first, count = first[::stride], (last - first)[::stride]
    row = np.repeat(np.arange(count.size), count)
    position = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count) + first[row]
    return group[::stride][row], unit[::stride][row], keys[position] - near[::stride][row]


def _is_spread(unit: np.ndarray, lag_s: np.ndarray, window_s: int) -> bool:
    """Return whether the pairs in the window are of enough units: one with another clock moves none but itself."""
    counts = np.bincount(unit[(lag_s >= 0) & (lag_s < window_s)])
    return counts.sum() ** 2 / (counts**2).sum() >= min(FEWEST, np.unique(unit).size / 2)


def _find_peak(lag_s: np.ndarray, window_s: int, level: float) -> int | None:
    """Return the start of the window of lags that is more frequent than with ends of other days; None if none is."""
    half, width = DAY_S // 2, max(1, window_s // _STEP_S)
    day = (lag_s + half) // DAY_S
    step = (lag_s + half - day * DAY_S) // _STEP_S

    def count(steps: np.ndarray) -> np.ndarray:
        sums = np.concatenate([[0], np.cumsum(np.bincount(steps, minlength=DAY_S // _STEP_S))])
        return sums[width:] - sums[:-width]

    n, other = count(step[day == 0]), count(step[day != 0])
    if n.max() < _FEWEST:
        return None
    # Days on which errors and failures are both frequent make all lags within a day more frequent.
    common = max(1.0, 2 * _DAYS * n.mean() / max(other.mean(), 1))
    p_values = np.where(n < _FEWEST, 1.0, binom.sf(n - 1, n + other, common / (common + 2 * _DAYS)))
    best = p_values.min()
    if best * n.size > level:
        return None
    # Lags of a sharp peak lie in many windows: the last one begins with them.
    peak = n[p_values == best].max()
    return int(np.flatnonzero((p_values == best) & (n == peak))[-1]) * _STEP_S - half
