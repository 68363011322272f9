"""Simulated outages of many units over some time, many times over, all at once.

Two ways. `renewals`: independent units, each up and down in turn, with times drawn from a distribution; stationary from
the first moment on (who is down is drawn, and the time left is that of a random moment: Cox 1962, Renewal Theory,
section 5.4). `resampled`: the trace's own days or weeks of all units together, put behind each other at random (Kuensch
1989), which keeps what fails together. Of both, the numbers of units down come from one sorted list of starts and ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ttf.outages.down import expand_ranges

# Units of all replicates that are worked on together: some 100 MB.
MOST_UNITS = 1 << 19
# Points that stand for a distribution of observed times.
POINTS, MET = 4096, 1 << 16
# Fewer observed times than that tell no shape.
FEWEST_TIMES = 10


@dataclass(frozen=True)
class Exponential:
    """mean: in s."""

    mean: float

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.exponential(self.mean, n)

    def left(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """What is left, at a random moment, of the time under way."""
        return rng.exponential(self.mean, n)

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
    the trace. spans: of `ttf.outages.down.spans_of`; `why_no_times` is None.
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


@dataclass(frozen=True)
class Spans:
    """Outages of simulated units: replicate (from 0 on), start_s and end_s from 0 to the horizon (Int64), and began:
    whether the outage began there, and not before the first moment."""

    replicate: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray
    began: np.ndarray


def batches(units: int, replicates: int) -> Iterator[int]:
    """Numbers of replicates that add up to `replicates`, few enough to be held at a time."""
    size = max(1, MOST_UNITS // max(units, 1))
    for first in range(0, replicates, size):
        yield min(size, replicates - first)


def renewals(rng: np.random.Generator, units: int, replicates: int, horizon_s: int, up: Times, repair: Times) -> Spans:
    """Independent units that are up and down in turn, stationary from the first moment on."""
    replicate = np.repeat(np.arange(replicates), units)
    is_down = rng.random(len(replicate)) < repair.mean / (up.mean + repair.mean)
    now = np.where(is_down, 0.0, up.left(rng, len(replicate)))
    end = now + np.where(is_down, repair.left(rng, len(replicate)), repair.draw(rng, len(replicate)))
    began, found = ~is_down, []
    while (alive := now < horizon_s).any():
        replicate, now, end, began = (each[alive] for each in (replicate, now, end, began))
        found.append((replicate, now, end, began))
        now = end + up.draw(rng, len(end))
        end, began = now + repair.draw(rng, len(now)), np.ones(len(now), bool)
    columns = [np.concatenate(each) for each in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 4
    start, end = (np.minimum(each, horizon_s).astype(np.int64) for each in columns[1:3])
    return Spans(columns[0], start, end, columns[3].astype(bool))


@dataclass(frozen=True)
class Blocks:
    """Whole days, or weeks, of a trace: of outages by block and unit, start_s and end_s from the block's begin, and
    whether they began there. first: the first row of each block, and the number of rows; watched: a row per block and
    a column per unit, whether it was watched throughout; length_s: of a block."""

    unit: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray
    began: np.ndarray
    first: np.ndarray
    watched: np.ndarray
    length_s: int

    @property
    def number(self) -> int:
        return len(self.first) - 1


def blocks_of(spans: pl.DataFrame, exposure: pl.DataFrame, length_s: int) -> Blocks:
    """The whole blocks of this length from the begin of the watch on. spans: of `ttf.outages.down.spans_of`."""
    origin, until = exposure["from_s"].min(), exposure["until_s"].max()
    number = (until - origin) // length_s
    unit, start, end = (spans[name].to_numpy().astype(np.int64) for name in ("unit", "start_s", "end_s"))
    start, end = start - origin, end - origin
    first = start // length_s
    row, block = expand_ranges(first, np.maximum((end - 1) // length_s, first))
    order = np.argsort(block, kind="stable")
    row, block = row[order], block[order]
    begin = block * length_s
    names = exposure["unit_id"].unique().sort()
    watched = np.zeros((number, len(names)), bool)
    units = names.search_sorted(exposure["unit_id"])
    for who, since, to in zip(units, exposure["from_s"] - origin, exposure["until_s"] - origin, strict=True):
        watched[-(-since // length_s) : to // length_s, who] = True
    return Blocks(
        unit[row],
        np.maximum(start[row] - begin, 0),
        np.minimum(end[row] - begin, length_s),
        (start[row] >= begin) & spans["inside"].to_numpy()[row],
        np.searchsorted(block, np.arange(number + 1)),
        watched,
        length_s,
    )


def up_at_begin(blocks: Blocks) -> Blocks:
    """The same blocks, as a run takes their units: those that were up when the block began."""
    watched = blocks.watched.copy()
    block = np.repeat(np.arange(blocks.number), np.diff(blocks.first))
    down = (blocks.start_s[: len(block)] == 0) & ~blocks.began[: len(block)]
    watched[block[down], blocks.unit[: len(block)][down]] = False
    return Blocks(blocks.unit, blocks.start_s, blocks.end_s, blocks.began, blocks.first, watched, blocks.length_s)


def resampled(rng: np.random.Generator, blocks: Blocks, units: int, replicates: int, horizon_s: int) -> Spans:
    """Units of the trace, of a random order the first `units` of each block, in blocks of the trace drawn at random.

    Blocks with fewer are left out; one at least has so many.
    """
    enough = np.flatnonzero(blocks.watched.sum(axis=1) >= units)
    each = -(-horizon_s // blocks.length_s)
    picked = enough[rng.integers(len(enough), size=(replicates, each))]
    order = rng.permuted(np.tile(np.arange(blocks.watched.shape[1], dtype=np.int32), (replicates, 1)), axis=1)
    last = np.full(picked.shape, units - 1, np.int32)
    for block in np.flatnonzero(~blocks.watched.all(axis=1)):
        mine, nth = np.nonzero(picked == block)
        if len(mine):
            there = order[mine][:, blocks.watched[block]]
            last[mine, nth] = np.partition(there, units - 1, axis=1)[:, units - 1]
    place, row = expand_ranges(blocks.first[picked].ravel(), blocks.first[picked + 1].ravel() - 1)
    replicate, nth = np.divmod(place, each)
    unit, block = blocks.unit[row], picked.ravel()[place]
    taken = (order[replicate, unit] <= last.ravel()[place]) & blocks.watched[block, unit]
    row, replicate, offset = row[taken], replicate[taken], nth[taken] * blocks.length_s
    start, end = (np.minimum(offset + part[row], horizon_s) for part in (blocks.start_s, blocks.end_s))
    return Spans(replicate, start, end, blocks.began[row] & (start < horizon_s))


@dataclass(frozen=True)
class Paths:
    """Stretches of time with one unit down or more: replicate, length_s and down, by replicate and time."""

    replicate: np.ndarray
    length_s: np.ndarray
    down: np.ndarray
    replicates: int
    horizon_s: int

    def time_down(self) -> np.ndarray:
        """Seconds with 0, 1, 2 ... units down at once, of all replicates together (Int64)."""
        time = np.bincount(self.down, weights=self.length_s, minlength=1).astype(np.int64)
        time[0] = self.replicates * self.horizon_s - time.sum()
        return time

    def of_replicates(self, spares: int, units: int) -> dict[str, np.ndarray]:
        """Of each replicate of `units` units and spares beside them: whether it was never short (1 or 0), the share of
        the time in which all `units` were up, and the mean share of them that was."""
        lacking = np.maximum(self.down - spares, 0)
        short_s, lacking_s = (
            np.bincount(self.replicate, weights=self.length_s * each, minlength=self.replicates)
            for each in (lacking > 0, lacking)
        )
        return {
            "never_short": (short_s == 0).astype(float),
            "full": 1 - short_s / self.horizon_s,
            "capacity": 1 - lacking_s / (self.horizon_s * units),
        }


def paths_of(spans: Spans, replicates: int, horizon_s: int) -> Paths:
    """How many units are down when. All of a replicate that begins also ends, at the horizon if not before."""
    # One whole number for each start and end: sorted at a fraction of the cost of sorting by several columns.
    begin = spans.replicate * horizon_s
    keys = np.concatenate([(begin + spans.start_s) << 1 | 1, (begin + spans.end_s) << 1])
    keys.sort()
    down = np.cumsum(((keys & 1) << 1) - 1)[:-1]
    at = keys >> 1
    length = np.diff(at)
    kept = (length > 0) & (down > 0)
    at, length, down = at[:-1][kept], length[kept], down[kept]
    return Paths(at // horizon_s, length, down, replicates, horizon_s)
