"""Simulate outages of many units over some time, in many replicates at once.

`simulate_renewals` simulates independent units that alternate between up and down times drawn from a distribution. They
are stationary from the first moment: the initial state is drawn, and the residual time is that of a random moment (Cox
1962, Renewal Theory, section 5.4). `resample_blocks` joins the trace's own days or weeks of all units in random order
(Kuensch 1989), which keeps simultaneous failures together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from ttf.analyses.shared.outages.units_down import expand_ranges
from ttf.stats.basics.order import sort_order

# Units of all replicates in one batch: some 100 MB.
MOST_UNITS = 1 << 19
# Points that represent a distribution of observed times, and of times under way at a random moment.
POINTS, LENGTH_BIASED_POINTS = 4096, 1 << 16
# With fewer observed times the distribution is taken as exponential.
FEWEST_TIMES = 10
# Starts and ends of simulated outages (Int64 each); replicate r lasts from r to r + 1 horizons.
Spans = tuple[np.ndarray, np.ndarray]
Resampled = Iterator[tuple[np.ndarray, np.ndarray, slice, int]]


@dataclass(frozen=True)
class Exponential:
    """Exponential times. mean: in s."""

    mean: float

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.exponential(self.mean, n)

    # The residual time at a random moment has the same distribution.
    draw_residual = draw

    def left_longer(self, time_s: float) -> float:
        """Return P(residual time > time_s)."""
        return float(np.exp(-time_s / self.mean))


@dataclass(frozen=True)
class Empirical:
    """Times drawn from equally likely values (s)."""

    values: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return self.values[rng.integers(len(self.values), size=n)]

    def draw_residual(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Draw residual times at a random moment: long times are under way more often."""
        return self._length_biased[rng.integers(len(self._length_biased), size=n)] * rng.random(n)

    @cached_property
    def _length_biased(self) -> np.ndarray:
        """Equally likely times under way at a random moment, computed once, not for each draw."""
        cumulative = np.cumsum(self.values)
        targets = (np.arange(LENGTH_BIASED_POINTS) + 0.5) / LENGTH_BIASED_POINTS * cumulative[-1]
        return self.values[np.minimum(np.searchsorted(cumulative, targets, side="right"), len(cumulative) - 1)]

    def left_longer(self, time_s: float) -> float:
        """Return P(residual time > time_s): the mean time beyond it over the mean."""
        return float(np.maximum(self.values - time_s, 0).sum() / self.values.sum())


TimeDistribution = Exponential | Empirical


def fit_distribution(time_s: np.ndarray, ended: np.ndarray, mean_s: float) -> TimeDistribution:
    """Return the distribution of observed times, some censored, scaled to a mean.

    Kaplan and Meier's estimate at POINTS equally likely points; its open rest lies beyond all times, by exponential
    times. The mean is an argument because units that fail often have most of the complete times. With fewer than
    FEWEST_TIMES complete times the distribution is exponential.
    """
    if ended.sum() < FEWEST_TIMES:
        return Exponential(mean_s)
    times, index = np.unique(time_s, return_inverse=True)
    n_seen, n_ended = np.bincount(index), np.bincount(index, weights=ended)
    at_risk = n_seen[::-1].cumsum()[::-1]
    cumulative = 1 - np.cumprod(1 - n_ended / at_risk)
    points = (np.arange(POINTS) + 0.5) / POINTS
    indices = np.searchsorted(cumulative, points)
    is_beyond = indices >= len(times)
    values = times[np.minimum(indices, len(times) - 1)].astype(float)
    open_share = 1 - cumulative[-1]
    if is_beyond.any():
        values[is_beyond] += mean_s * np.log(open_share / (1 - points[is_beyond]))
    return Empirical(values * (mean_s / values.mean()))


NO_OUTAGE = "no outage began while its unit was watched"
ALWAYS_DOWN = "the units were down all the time"
NO_TIME_DOWN = "no outage took any time"


def no_times_reason(n_began: int, down_share: float) -> str | None:
    """Return why units with this many outages and share of down time cannot be simulated; None if they can."""
    if down_share >= 1:
        return ALWAYS_DOWN
    if not n_began:
        return NO_OUTAGE
    return None if down_share else NO_TIME_DOWN


def fit_times(spans: pl.DataFrame, exposure: pl.DataFrame) -> tuple[TimeDistribution, TimeDistribution]:
    """Return (up, repair): the time from a repair to the next outage, and from an outage to its repair.

    Their means are time up and time down over the outages that began, so the share of down time is that of the trace.
    spans: of `ttf.analyses.shared.outages.units_down.list_spans`. `no_times_reason` must be None.
    """
    watched_s = int((exposure["until_s"] - exposure["from_s"]).sum())
    down_s, n_began = int((spans["end_s"] - spans["start_s"]).sum()), int(spans["inside"].sum())
    next_start_s = pl.col("start_s").shift(-1).over("unit")
    up = (
        spans.sort("unit", "start_s")
        .with_columns(next_start_s=pl.when(next_start_s <= pl.col("until_s")).then(next_start_s))
        .filter(pl.col("repaired") & (pl.col("end_s") < pl.col("until_s")))
        .select(
            time_s=pl.coalesce("next_start_s", "until_s") - pl.col("end_s"), ended=pl.col("next_start_s").is_not_null()
        )
    )
    repair = spans.filter("inside").select(time_s=pl.col("end_s") - pl.col("start_s"), ended="repaired")
    return (
        fit_distribution(up["time_s"].to_numpy(), up["ended"].to_numpy(), (watched_s - down_s) / n_began),
        fit_distribution(repair["time_s"].to_numpy(), repair["ended"].to_numpy(), down_s / n_began),
    )


def batches(units: int, replicates: int) -> Iterator[int]:
    """Yield numbers of replicates that sum to `replicates`, each small enough to hold in memory."""
    size = max(1, MOST_UNITS // max(units, 1))
    for first in range(0, replicates, size):
        yield min(size, replicates - first)


def simulate_renewals(
    rng: np.random.Generator,
    units: int,
    replicates: int,
    horizon_s: int,
    up: TimeDistribution,
    repair: TimeDistribution,
) -> Spans:
    """Simulate independent units that alternate between up and down, stationary from the first moment."""
    n = units * replicates
    is_down = rng.random(n) < repair.mean / (up.mean + repair.mean)
    time_s = np.where(is_down, 0.0, up.draw_residual(rng, n))
    origin = np.arange(n) // units * horizon_s
    length_s = np.where(is_down, repair.draw_residual(rng, n), repair.draw(rng, n))
    rounds = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    while (rows := np.flatnonzero(time_s < horizon_s)).size:
        origin, time_s, length_s = origin[rows], time_s[rows], length_s[rows]
        end = time_s + length_s
        rounds.append((origin + time_s.astype(np.int64), origin + np.minimum(end, horizon_s).astype(np.int64)))
        time_s, length_s = end + up.draw(rng, len(end)), repair.draw(rng, len(end))
    start, end = (np.concatenate(column) for column in zip(*rounds, strict=True))
    return start, end


def time_down(spans: Spans, replicates: int, horizon_s: int) -> np.ndarray:
    """Return the seconds with 0, 1, 2 ... units down at once, over all replicates (Int64)."""
    # One integer for each start and end sorts at a fraction of the cost of sorting by several columns.
    keys = np.concatenate([spans[0] << 1 | 1, spans[1] << 1])
    keys.sort()
    down, length = np.cumsum(((keys & 1) << 1) - 1)[:-1], np.diff(keys >> 1)
    rows = np.flatnonzero(length)
    time = np.bincount(down[rows], weights=length[rows], minlength=1).astype(np.int64)
    time[0] = replicates * horizon_s - time[1:].sum()
    return time


def count_shortfalls(spans: Spans, spares: int, replicates: int, horizon_s: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each replicate the seconds with more units down than spares, and the unit-seconds beyond them.

    Pairing the nth start of a replicate with its nth end keeps the number down at any moment. Then one unit more than
    the spares is down from each start to the end of the pair `spares` earlier.
    """
    start, end = np.sort(spans[0])[spares:], np.sort(spans[1])[: max(len(spans[1]) - spares, 0)]
    excess = np.maximum(end - start, 0)
    shortage = np.append(np.minimum(excess[:-1], np.diff(start)), excess[-1:])
    first = np.searchsorted(start, np.arange(replicates + 1) * horizon_s)
    shortage_s, excess_s = (np.diff(np.append(0, np.cumsum(time))[first]) for time in (shortage, excess))
    return shortage_s, excess_s


@dataclass(frozen=True)
class Blocks:
    """Whole days, or weeks, of a trace: the starts and ends of its outages, sorted by block and time.

    at_s: from the block's begin. step: 1 or -1. began: for a start, whether the outage began there. first: first row of
    each block, and the number of rows. watched: (blocks, units), whether the unit was watched throughout.
    """

    unit: np.ndarray
    at_s: np.ndarray
    step: np.ndarray
    began: np.ndarray
    first: np.ndarray
    watched: np.ndarray
    length_s: int

    @cached_property
    def units(self) -> np.ndarray:
        """Return the number of units of each block watched throughout."""
        return self.watched.sum(axis=1)


def build_blocks(spans: pl.DataFrame, exposure: pl.DataFrame, length_s: int) -> Blocks:
    """Return the whole blocks of this length from the begin of the watch on; `spans`: of units_down.list_spans."""
    origin, end_of_watch = exposure.select(pl.col("from_s").min(), pl.col("until_s").max()).row(0)
    number = (end_of_watch - origin) // length_s
    unit, start, end = (spans[name].to_numpy().astype(np.int64) for name in ("unit", "start_s", "end_s"))
    start, end = start - origin, end - origin
    first = start // length_s
    row, block = expand_ranges(first, np.maximum((end - 1) // length_s, first))
    begin = block * length_s
    at_s = np.concatenate([np.maximum(start[row] - begin, 0), np.minimum(end[row] - begin, length_s)])
    began = np.concatenate([(start[row] >= begin) & spans["inside"].to_numpy()[row], np.zeros(len(row), bool)])
    block, step = np.tile(block, 2), np.repeat(np.array([1, -1], np.int32), len(row))
    order = sort_order(block, at_s)
    names = exposure["unit_id"].unique().sort()
    watched = np.zeros((number, len(names)), bool)
    units = names.search_sorted(exposure["unit_id"])
    for column, from_s, until_s in zip(units, exposure["from_s"] - origin, exposure["until_s"] - origin, strict=True):
        watched[-(-from_s // length_s) : until_s // length_s, column] = True
    first_rows = np.searchsorted(block[order], np.arange(number + 1))
    unit = np.tile(unit[row], 2)
    return Blocks(unit[order], at_s[order], step[order], began[order], first_rows, watched, length_s)


def select_initially_up(blocks: Blocks) -> Blocks:
    """Return the same blocks with only the units that were up at the begin of each block, as a run takes them."""
    watched = blocks.watched.copy()
    block = np.repeat(np.arange(len(blocks.units)), np.diff(blocks.first))
    down = np.flatnonzero(((blocks.at_s == 0) & (blocks.step > 0) & ~blocks.began)[: len(block)])
    watched[block[down], blocks.unit[down]] = False
    return replace(blocks, watched=watched)


def resample_blocks(rng: np.random.Generator, blocks: Blocks, units: int, replicates: int, horizon_s: int) -> Resampled:
    """Yield blocks of the trace drawn at random, each with the first `units` of its units in a random order.

    Yields for replicates with the same block: their numbers; whether the unit is taken (replicates, rows of the block);
    these rows; and the seconds of the block before the horizon. Blocks with fewer units are left out; at least one has
    enough.
    """
    eligible, all_units = np.flatnonzero(blocks.units >= units), blocks.watched.shape[1]
    n_blocks, begin = -(-horizon_s // blocks.length_s), 0
    drawn, order = np.zeros((replicates, n_blocks), np.int64), np.tile(np.arange(all_units), (replicates, 1))
    for size in batches(all_units, replicates):
        batch, begin = slice(begin, begin + size), begin + size
        drawn[batch] = eligible[rng.integers(len(eligible), size=(size, n_blocks))]
        rng.permuted(order[batch], axis=1, out=order[batch])
    is_first, rest_s = order < units, horizon_s - (n_blocks - 1) * blocks.length_s
    for part, seconds in ((drawn[:, :-1], blocks.length_s), (drawn[:, -1:], rest_s)):
        for block in np.unique(part):
            replicate = np.flatnonzero(part == block) // part.shape[1]
            first, end = blocks.first[block : block + 2]
            rows = slice(first, first + np.searchsorted(blocks.at_s[first:end], seconds))
            is_taken, watched = is_first[replicate], blocks.watched[block]
            if blocks.units[block] < all_units:
                ranks = order[replicate]
                last = np.partition(ranks[:, watched], units - 1, axis=1)[:, units - 1 : units]
                is_taken = (ranks <= last) & watched
            yield replicate, is_taken.take(blocks.unit[rows], axis=1), rows, seconds


def count_block_shortfalls(
    drawn: Resampled, blocks: Blocks, spares: int, replicates: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same as `count_shortfalls` for blocks drawn by `resample_blocks`."""
    shortage_s, excess_s = np.zeros(replicates), np.zeros(replicates)
    for replicate, is_taken, rows, seconds in drawn:
        excess = is_taken * blocks.step[rows]
        np.cumsum(excess, axis=1, out=excess)
        excess -= spares
        np.maximum(excess, 0, out=excess)
        at_s = np.append(blocks.at_s[rows], seconds).astype(float)
        time = at_s[1:] - at_s[:-1]
        np.add.at(shortage_s, replicate, (excess > 0) @ time)
        np.add.at(excess_s, replicate, excess @ time)
    return shortage_s, excess_s
