"""Simulated outages of many units over some time, many times over, all at once.

Two ways. `renewals`: independent units, each up and down in turn, with times drawn from a distribution; stationary from
the first moment on (who is down is drawn, and the time left is that of a random moment: Cox 1962, Renewal Theory,
section 5.4). `resampled`: the trace's own days or weeks of all units together, put behind each other at random (Kuensch
1989), which keeps what fails together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from ttf.analyses.shared.outages.units_down import expand_ranges
from ttf.stats.basics.order import order_by

# Units of all replicates that are worked on together: some 100 MB.
MOST_UNITS = 1 << 19
# Points that stand for a distribution of observed times.
POINTS, MET = 4096, 1 << 16
# Fewer observed times than that tell no shape.
FEWEST_TIMES = 10
# Starts and ends of simulated outages (Int64 each), where replicate r lasts from r to r + 1 horizons.
Spans = tuple[np.ndarray, np.ndarray]
Resampled = Iterator[tuple[np.ndarray, np.ndarray, slice, int]]


@dataclass(frozen=True)
class Exponential:
    """mean: in s."""

    mean: float

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.exponential(self.mean, n)

    # What is left, at a random moment, of the time under way.
    left = draw

    def left_longer(self, time_s: float) -> float:
        """P(what is left > time_s)."""
        return float(np.exp(-time_s / self.mean))


@dataclass(frozen=True)
class Drawn:
    """values: times (s) of which each is as likely."""

    values: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return self.values[rng.integers(len(self.values), size=n)]

    def left(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """What is left, at a random moment, of the time under way: long ones are met more often."""
        return self._met[rng.integers(len(self._met), size=n)] * rng.random(n)

    @cached_property
    def _met(self) -> np.ndarray:
        """Equally likely times under way at a random moment: looked up once, not for each draw."""
        ends = np.cumsum(self.values)
        at = (np.arange(MET) + 0.5) / MET * ends[-1]
        return self.values[np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)]

    def left_longer(self, time_s: float) -> float:
        """P(what is left > time_s): the mean of what lasts beyond it over the mean."""
        return float(np.maximum(self.values - time_s, 0).sum() / self.values.sum())


Times = Exponential | Drawn


def observed_times(time_s: np.ndarray, ended: np.ndarray, mean_s: float) -> Times:
    """The distribution of observed times of which some had not ended when last seen, scaled to a mean.

    Kaplan and Meier's estimate, at POINTS equally likely points; what it leaves open is longer than all, by exponential
    times. The mean is given because units that fail often have most of the times that were seen whole. Fewer than
    FEWEST_TIMES whole ones tell no shape: exponential.
    """
    if ended.sum() < FEWEST_TIMES:
        return Exponential(mean_s)
    times, place = np.unique(time_s, return_inverse=True)
    seen, ends = np.bincount(place), np.bincount(place, weights=ended)
    at_risk = seen[::-1].cumsum()[::-1]
    gone = 1 - np.cumprod(1 - ends / at_risk)
    points = (np.arange(POINTS) + 0.5) / POINTS
    met = np.searchsorted(gone, points)
    beyond = met >= len(times)
    values = times[np.minimum(met, len(times) - 1)].astype(float)
    open_share = 1 - gone[-1]
    if beyond.any():
        values[beyond] += mean_s * np.log(open_share / (1 - points[beyond]))
    return Drawn(values * (mean_s / values.mean()))


NO_OUTAGE = "no outage began while its unit was watched"
ALWAYS_DOWN = "the units were down all the time"
NO_TIME_DOWN = "no outage took any time"


def why_no_times(began: int, down_share: float) -> str | None:
    """Why units cannot be simulated of which so many outages began, down for this share of their time; else None."""
    if down_share >= 1:
        return ALWAYS_DOWN
    if not began:
        return NO_OUTAGE
    return None if down_share else NO_TIME_DOWN


def times_of(spans: pl.DataFrame, exposure: pl.DataFrame) -> tuple[Times, Times]:
    """(up, repair): from a repair to the next outage, and from an outage to its repair.

    Their means are time up and time down over the outages that began, so that the share of the time down is that of
    the trace. spans: of `ttf.analyses.shared.outages.units_down.spans_of`; `why_no_times` is None.
    """
    watched_s = (exposure["until_s"] - exposure["from_s"]).sum()
    down_s, began = (spans["end_s"] - spans["start_s"]).sum(), spans["inside"].sum()
    following = pl.col("start_s").shift(-1).over("unit")
    up = (
        spans.sort("unit", "start_s")
        .with_columns(following=pl.when(following <= pl.col("until_s")).then(following))
        .filter(pl.col("repaired") & (pl.col("end_s") < pl.col("until_s")))
        .select(pl.coalesce("following", "until_s") - pl.col("end_s"), ended=pl.col("following").is_not_null())
    )
    repair = spans.filter("inside").select(pl.col("end_s") - pl.col("start_s"), "repaired")
    return (
        observed_times(*(column.to_numpy() for column in up), (watched_s - down_s) / began),
        observed_times(*(column.to_numpy() for column in repair), down_s / began),
    )


def batches(units: int, replicates: int) -> Iterator[int]:
    """Numbers of replicates that add up to `replicates`, few enough to be held at a time."""
    size = max(1, MOST_UNITS // max(units, 1))
    for first in range(0, replicates, size):
        yield min(size, replicates - first)


def renewals(rng: np.random.Generator, units: int, replicates: int, horizon_s: int, up: Times, repair: Times) -> Spans:
    """Independent units that are up and down in turn, stationary from the first moment on."""
    n = units * replicates
    is_down = rng.random(n) < repair.mean / (up.mean + repair.mean)
    now = np.where(is_down, 0.0, up.left(rng, n))
    lasts, origin = np.where(is_down, repair.left(rng, n), repair.draw(rng, n)), np.arange(n) // units * horizon_s
    rounds = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    while (rows := np.flatnonzero(now < horizon_s)).size:
        origin, now, lasts = origin[rows], now[rows], lasts[rows]
        end = now + lasts
        rounds.append((origin + now.astype(np.int64), origin + np.minimum(end, horizon_s).astype(np.int64)))
        now, lasts = end + up.draw(rng, len(end)), repair.draw(rng, len(end))
    start, end = (np.concatenate(each) for each in zip(*rounds, strict=True))
    return start, end


def time_down(spans: Spans, replicates: int, horizon_s: int) -> np.ndarray:
    """Seconds with 0, 1, 2 ... units down at once, of all replicates together (Int64)."""
    # One whole number for each start and end: sorted at a fraction of the cost of sorting by several columns.
    keys = np.concatenate([spans[0] << 1 | 1, spans[1] << 1])
    keys.sort()
    down, length = np.cumsum(((keys & 1) << 1) - 1)[:-1], np.diff(keys >> 1)
    rows = np.flatnonzero(length)
    time = np.bincount(down[rows], weights=length[rows], minlength=1).astype(np.int64)
    time[0] = replicates * horizon_s - time[1:].sum()
    return time


def shortfalls(spans: Spans, spares: int, replicates: int, horizon_s: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each replicate the seconds with more units down than spares, and the unit-seconds beyond them.

    As many are down at any moment if the nth start of a replicate is paired with its nth end. Then one more than the
    spares is down from each start to the end of the pair that is `spares` before.
    """
    start, end = np.sort(spans[0])[spares:], np.sort(spans[1])[: max(len(spans[1]) - spares, 0)]
    lacking = np.maximum(end - start, 0)
    short = np.append(np.minimum(lacking[:-1], np.diff(start)), lacking[-1:])
    first = np.searchsorted(start, np.arange(replicates + 1) * horizon_s)
    short_s, lacking_s = (np.diff(np.append(0, np.cumsum(time))[first]) for time in (short, lacking))
    return short_s, lacking_s


@dataclass(frozen=True)
class Blocks:
    """Whole days, or weeks, of a trace: the starts and ends of its outages by block and time. unit; at_s, from the
    block's begin; step: 1 or -1; began: of a start, whether the outage began there. first: the first row of each block,
    and the number of rows; watched: a row per block and a column per unit, whether it was watched throughout."""

    unit: np.ndarray
    at_s: np.ndarray
    step: np.ndarray
    began: np.ndarray
    first: np.ndarray
    watched: np.ndarray
    length_s: int

    @cached_property
    def units(self) -> np.ndarray:
        """Of each block the number of units watched throughout."""
        return self.watched.sum(axis=1)


def blocks_of(spans: pl.DataFrame, exposure: pl.DataFrame, length_s: int) -> Blocks:
    """The whole blocks of this length from the begin of the watch on. spans: of
    `ttf.analyses.shared.outages.units_down.spans_of`."""
    origin, until = exposure["from_s"].min(), exposure["until_s"].max()
    number = (until - origin) // length_s
    unit, start, end = (spans[name].to_numpy().astype(np.int64) for name in ("unit", "start_s", "end_s"))
    start, end = start - origin, end - origin
    first = start // length_s
    row, block = expand_ranges(first, np.maximum((end - 1) // length_s, first))
    begin = block * length_s
    at_s = np.concatenate([np.maximum(start[row] - begin, 0), np.minimum(end[row] - begin, length_s)])
    began = np.concatenate([(start[row] >= begin) & spans["inside"].to_numpy()[row], np.zeros(len(row), bool)])
    block, step = np.tile(block, 2), np.repeat(np.array([1, -1], np.int32), len(row))
    order = order_by(block, at_s)
    names = exposure["unit_id"].unique().sort()
    watched = np.zeros((number, len(names)), bool)
    units = names.search_sorted(exposure["unit_id"])
    for who, since, to in zip(units, exposure["from_s"] - origin, exposure["until_s"] - origin, strict=True):
        watched[-(-since // length_s) : to // length_s, who] = True
    columns = (each[order] for each in (np.tile(unit[row], 2), at_s, step, began))
    return Blocks(*columns, np.searchsorted(block[order], np.arange(number + 1)), watched, length_s)


def up_at_begin(blocks: Blocks) -> Blocks:
    """The same blocks, as a run takes their units: those that were up when the block began."""
    watched = blocks.watched.copy()
    block = np.repeat(np.arange(len(blocks.units)), np.diff(blocks.first))
    down = np.flatnonzero(((blocks.at_s == 0) & (blocks.step > 0) & ~blocks.began)[: len(block)])
    watched[block[down], blocks.unit[down]] = False
    return replace(blocks, watched=watched)


def resampled(rng: np.random.Generator, blocks: Blocks, units: int, replicates: int, horizon_s: int) -> Resampled:
    """Units of the trace, of a random order the first `units` of each block, in blocks of the trace drawn at random.

    Yields, of replicates that hold the same block: their numbers; whether the unit is taken, a row per replicate and a
    column per row of the block; these rows; and the seconds of the block before the horizon. Blocks with fewer units
    are left out; one at least has so many.
    """
    enough, all_units = np.flatnonzero(blocks.units >= units), blocks.watched.shape[1]
    each, begin = -(-horizon_s // blocks.length_s), 0
    picked, order = np.zeros((replicates, each), np.int64), np.tile(np.arange(all_units), (replicates, 1))
    for size in batches(all_units, replicates):
        batch, begin = slice(begin, begin + size), begin + size
        picked[batch] = enough[rng.integers(len(enough), size=(size, each))]
        rng.permuted(order[batch], axis=1, out=order[batch])
    is_first, rest_s = order < units, horizon_s - (each - 1) * blocks.length_s
    for part, seconds in ((picked[:, :-1], blocks.length_s), (picked[:, -1:], rest_s)):
        for block in np.unique(part):
            replicate = np.flatnonzero(part == block) // part.shape[1]
            first, end = blocks.first[block : block + 2]
            rows = slice(first, first + np.searchsorted(blocks.at_s[first:end], seconds))
            taken, watched = is_first[replicate], blocks.watched[block]
            if blocks.units[block] < all_units:
                ranks = order[replicate]
                last = np.partition(ranks[:, watched], units - 1, axis=1)[:, units - 1 : units]
                taken = (ranks <= last) & watched
            yield replicate, taken.take(blocks.unit[rows], axis=1), rows, seconds


def block_shortfalls(drawn: Resampled, blocks: Blocks, spares: int, replicates: int) -> tuple[np.ndarray, np.ndarray]:
    """The same of blocks drawn by `resampled`."""
    short_s, lacking_s = np.zeros(replicates), np.zeros(replicates)
    for replicate, taken, rows, seconds in drawn:
        lacking = taken * blocks.step[rows]
        np.cumsum(lacking, axis=1, out=lacking)
        lacking -= spares
        np.maximum(lacking, 0, out=lacking)
        at_s = np.append(blocks.at_s[rows], seconds).astype(float)
        time = at_s[1:] - at_s[:-1]
        np.add.at(short_s, replicate, (lacking > 0) @ time)
        np.add.at(lacking_s, replicate, lacking @ time)
    return short_s, lacking_s
