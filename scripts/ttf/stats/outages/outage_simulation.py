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
from scipy.special import gammaln

from ttf.stats.basics.order import sort_order
from ttf.stats.outages.units_down import expand_ranges

# Units of all replicates in one batch: some 100 MB.
MOST_UNITS = 1 << 19
# Points that represent a distribution of observed times, and of times under way at a random moment.
POINTS, LENGTH_BIASED_POINTS = 4096, 1 << 16
# With fewer observed times the distribution is taken as exponential.
FEWEST_TIMES = 10
# Starts, ends and units of simulated outages (Int64 each); replicate r lasts from r to r + 1 horizons.
Spans = tuple[np.ndarray, np.ndarray, np.ndarray]
Resampled = Iterator[tuple[np.ndarray, np.ndarray, slice]]


@dataclass(frozen=True)
class Exponential:
    """Exponential times. mean: in s."""

    mean: float

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return n random times."""
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
        """Return n random times."""
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

    Parameters
    ----------
    time_s : (n,) whole seconds
    ended : (n,) boolean; the others are censored
    mean_s : mean of the result, in s. It is an argument because units that fail often have most of the complete times.

    Returns
    -------
    POINTS equally likely points; with fewer than FEWEST_TIMES complete times an exponential distribution

    Notes
    -----
    Kaplan & Meier's estimate (1958, J. Am. Stat. Assoc. 53); its open rest lies beyond all times, by exponential times.

    Examples
    --------
    >>> times = fit_distribution(np.arange(10, 210, 10), np.ones(20, bool), 50.0)
    >>> round(times.mean, 6), len(times.values)
    (50.0, 4096)
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
NOT_WATCHED = "no unit was watched for any time"


def no_times_reason(n_began: int, down_share: float) -> str | None:
    """Return why units with this many outages and share of down time cannot be simulated; None if they can."""
    if down_share >= 1:
        return ALWAYS_DOWN
    if not n_began:
        return NO_OUTAGE
    return None if down_share else NO_TIME_DOWN


def fit_times(spans: pl.DataFrame, exposure: pl.DataFrame) -> tuple[TimeDistribution, TimeDistribution]:
    """Return the distributions of the time from a repair to the next outage, and from an outage to its repair.

    Parameters
    ----------
    spans : of `ttf.stats.outages.units_down.list_spans`; `no_times_reason` must be None
    exposure : unit_id, from_s and until_s (Int64) of each watch

    Returns
    -------
    (up, repair). Their means are time up and time down over the outages that began, so the share of down time is that
    of the trace.

    Examples
    --------
    >>> exposure = pl.DataFrame({"unit_id": ["a"], "from_s": [0], "until_s": [1000]})
    >>> span = {"unit": 0, "start_s": 400, "end_s": 500, "inside": True, "repaired": True, "until_s": 1000}
    >>> [times.mean for times in fit_times(pl.DataFrame([span]), exposure)]
    [900.0, 100.0]
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
    """Simulate independent units that alternate between up and down, stationary from the first moment.

    Parameters
    ----------
    rng : source of random numbers
    units, replicates : number of units, and of independent histories of them
    horizon_s : length of a history, in s
    up, repair : distributions of the times up and down

    Returns
    -------
    (start, end, unit) of each outage: (n,) Int64. Replicate r lasts from r to r + 1 horizons.

    Notes
    -----
    The first state is down with the share of down time; residual times are those of a random moment (Cox 1962, Renewal
    Theory, section 5.4).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> start, end, _ = simulate_renewals(rng, 100, 10, 1000, Exponential(90.0), Exponential(10.0))
    >>> round(float((end - start).sum()) / (100 * 10 * 1000), 2)  # the share of down time: 10 / 100
    0.1
    """
    n = units * replicates
    is_down = rng.random(n) < repair.mean / (up.mean + repair.mean)
    time_s = np.where(is_down, 0.0, up.draw_residual(rng, n))
    replicate, unit = np.divmod(np.arange(n), units)
    origin = replicate * horizon_s
    length_s = np.where(is_down, repair.draw_residual(rng, n), repair.draw(rng, n))
    rounds = [(np.zeros(0, np.int64),) * 3]
    while (rows := np.flatnonzero(time_s < horizon_s)).size:
        unit, origin, time_s, length_s = unit[rows], origin[rows], time_s[rows], length_s[rows]
        end = time_s + length_s
        rounds.append((origin + time_s.astype(np.int64), origin + np.minimum(end, horizon_s).astype(np.int64), unit))
        time_s, length_s = end + up.draw(rng, len(end)), repair.draw(rng, len(end))
    start, end, unit = (np.concatenate(column) for column in zip(*rounds, strict=True))
    return start, end, unit


def count_spares(first: np.ndarray, rank: np.ndarray, step: np.ndarray, nodes: int, most: int) -> np.ndarray:
    """Return for each group of changes the fewest spares that keep `nodes` units up; `most` + 1 if more are needed.

    A run takes units by rank: its nodes, then spares.

    Parameters
    ----------
    first : (groups + 1,) first row of each group, and the number of rows
    rank : (rows,) rank of the unit that changes
    step : (rows,) 1 for a unit that goes down, -1 for its return, by time; at one moment returns come first
    nodes, most : number of nodes of the run, and of spares at most

    Returns
    -------
    (groups,) Int64

    Notes
    -----
    As a spare never lowers the number of units up, the answer is the least s with at most s of nodes + s units down: s
    rises from 0 to the most units down until it suffices.

    Examples
    --------
    >>> count_spares(np.array([0, 3]), np.array([0, 1, 2]), np.array([1, 1, 1]), 2, 4).tolist()
    [3]
    """
    spares, groups = np.zeros(len(first) - 1, np.int64), np.flatnonzero(np.diff(first))
    rows = np.diff(first)[groups]
    while groups.size:
        begin, limit = np.cumsum(rows) - rows, nodes + spares[groups]
        down = np.cumsum(step * (rank < np.repeat(limit.astype(rank.dtype), rows)), dtype=np.int32)
        most_down = np.maximum.reduceat(down, begin) - np.append(0, down)[begin]
        is_open = (most_down > spares[groups]) & (most_down <= most)
        spares[groups] = np.minimum(np.maximum(most_down, spares[groups]), most + 1)
        selected = np.repeat(is_open, rows)
        groups, rows, rank, step = groups[is_open], rows[is_open], rank[selected], step[selected]
    return spares


def count_renewal_spares(
    rng: np.random.Generator, nodes: int, most: int, replicates: int, horizon_s: int, *times: TimeDistribution
) -> np.ndarray:
    """Return for each replicate the fewest spares with which `nodes` are always up; times: up and repair."""
    units, parts = nodes + most, []
    bits = units.bit_length()
    # About as many outages as MOST_UNITS in one batch.
    for size in batches(int(units * (1 + horizon_s / sum(time.mean for time in times))), replicates):
        start, end, unit = simulate_renewals(rng, units, size, horizon_s, *times)
        has_end = (end > start) & (end % horizon_s > 0)
        # One integer for each change: time, whether a unit goes down, and the unit.
        keys = np.concatenate([((start << 1 | 1) << bits | unit)[end > start], (end << 1 + bits | unit)[has_end]])
        keys.sort()
        first = np.searchsorted(keys, np.arange(size + 1) * horizon_s << 1 + bits)
        rank, step = (keys & ((1 << bits) - 1)).astype(np.int32), ((keys >> bits & 1) * 2 - 1).astype(np.int8)
        parts.append(count_spares(first, rank, step, nodes, most))
    return np.concatenate(parts)


@dataclass(frozen=True)
class Blocks:
    """Whole days, or weeks, of a trace: the ends and starts of its outages, sorted by block and time, ends first.

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

    def split_horizon(self, horizon_s: int) -> tuple[int, int]:
        """Return the number of blocks up to the horizon, and the length of the last before it."""
        return -(-horizon_s // self.length_s), (horizon_s - 1) % self.length_s + 1

    @cached_property
    def down(self) -> np.ndarray:
        """Return the number of units watched throughout that are down from each row on."""
        rows = np.diff(self.first)
        is_watched = self.watched[np.repeat(np.arange(len(rows)), rows), self.unit[: self.first[-1]]]
        down = np.append(0, np.cumsum(self.step[: self.first[-1]] * is_watched))
        return down[1:] - np.repeat(down[self.first[:-1]], rows)


def build_blocks(spans: pl.DataFrame, exposure: pl.DataFrame, length_s: int) -> Blocks:
    """Return the whole blocks of this length from the begin of the watch on; `spans`: of units_down.list_spans."""
    origin, end_of_watch = exposure.select(pl.col("from_s").min(), pl.col("until_s").max()).row(0)
    number = (end_of_watch - origin) // length_s
    unit, start, end = (spans[name].to_numpy().astype(np.int64) for name in ("unit", "start_s", "end_s"))
    start, end = start - origin, end - origin
    first = start // length_s
    row, block = expand_ranges(first, np.maximum((end - 1) // length_s, first))
    begin = block * length_s
    at_s = np.concatenate([np.minimum(end[row] - begin, length_s), np.maximum(start[row] - begin, 0)])
    began = np.concatenate([np.zeros(len(row), bool), (start[row] >= begin) & spans["inside"].to_numpy()[row]])
    block, step = np.tile(block, 2), np.repeat(np.array([-1, 1], np.int8), len(row))
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


def resample_blocks(
    rng: np.random.Generator, blocks: Blocks, units: int, order: np.ndarray, horizon_s: int
) -> Resampled:
    """Yield blocks of the trace drawn at random; each replicate takes the units in its own order.

    order: (replicates, units) place of each unit. Yields for replicates with the same block: their numbers; the rank
    of each unit among those watched (replicates, units; the number of units if not watched); the rows of the block
    before the horizon. Blocks with fewer than `units` units are left out; at least one has enough.
    """
    eligible = np.flatnonzero(blocks.units >= units)
    n_blocks, rest_s = blocks.split_horizon(horizon_s)
    drawn = eligible[rng.integers(len(eligible), size=(len(order), n_blocks))]
    for part, seconds in ((drawn[:, :-1], blocks.length_s), (drawn[:, -1:], rest_s)):
        by_block = np.argsort(part.ravel(), kind="stable")
        numbers, starts = np.unique(part.ravel()[by_block], return_index=True)
        for block, replicate in zip(numbers, np.split(by_block // max(part.shape[1], 1), starts[1:]), strict=False):
            first, end = blocks.first[block : block + 2]
            rank, watched = order[replicate], blocks.watched[block]
            if not watched.all():
                ranks = np.zeros(rank.shape, rank.dtype)
                np.put_along_axis(ranks, rank, np.broadcast_to(watched.astype(rank.dtype), rank.shape), axis=1)
                np.cumsum(ranks, axis=1, out=ranks)
                rank = np.where(watched, np.take_along_axis(ranks, rank, axis=1) - 1, len(watched))
            yield replicate, rank, slice(first, first + np.searchsorted(blocks.at_s[first:end], seconds))


def count_block_spares(drawn: Resampled, blocks: Blocks, nodes: int, most: int, replicates: int) -> np.ndarray:
    """Return for each replicate of `resample_blocks` the fewest spares with which the run is never short."""
    spares = np.zeros(replicates, np.int64)
    for replicate, unit_rank, rows in drawn:
        n_parts = 1 + replicate.size * (rows.stop - rows.start) // MOST_UNITS
        for part in np.array_split(np.arange(replicate.size), n_parts):
            rank = unit_rank[part].take(blocks.unit[rows], axis=1)
            is_taken = rank < nodes + most
            first = np.append(0, np.cumsum(is_taken.sum(axis=1)))
            step = np.broadcast_to(blocks.step[rows], rank.shape)[is_taken]
            np.maximum.at(spares, replicate[part], count_spares(first, rank[is_taken], step, nodes, most))
    return spares


@dataclass(frozen=True)
class DownTime:
    """Mean seconds of a resampled run with a number of units down (units, down, time_s: by state), up to its length."""

    units: np.ndarray
    down: np.ndarray
    time_s: np.ndarray
    horizon_s: int

    def shortage(self, nodes: int, spares: int) -> tuple[float, float]:
        """Return the mean (share of time in which a run is short, number of nodes that it lacks); not simulated.

        A run takes its units at random. Of u units, a up, the units down before the nth up one are negative
        hypergeometric, so P(short) with s spares is that of more than s. One unit more is up with the chance of those
        left, so the nodes lacking fall by [(a - n) P(short) + lacking] / (u - n - s).
        """
        units, down = self.units, self.down
        up, log_total = units - down, _log_choose(units, down)
        p_short, lacking = np.ones(len(down)), nodes * down / units
        for s in range(spares + 1):
            if s:
                lacking = lacking - ((up - nodes) * p_short + lacking) / (units - nodes - s + 1)
            p = np.exp(_log_choose(s + nodes - 1, s) + _log_choose(units - nodes - s, down - s) - log_total)
            p_short = np.clip(p_short - p, 0, 1)
        return float(self.time_s @ p_short) / self.horizon_s, float(self.time_s @ lacking) / self.horizon_s


def _log_choose(n: np.ndarray | int, k: np.ndarray | int) -> np.ndarray:
    """Return the logarithm of the binomial coefficient; minus infinity unless 0 <= k <= n."""
    n, k = np.broadcast_arrays(n, k)
    is_valid = (k >= 0) & (k <= n)
    n, k = np.where(is_valid, n, 0), np.where(is_valid, k, 0)
    return np.where(is_valid, gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0), -np.inf)


def mean_down_time(blocks: Blocks, units: int, horizon_s: int) -> DownTime:
    """Return the mean time with each number of units down in runs resampled from blocks of at least `units` units.

    Parameters
    ----------
    blocks : of `build_blocks`
    units : fewest units of a block
    horizon_s : length of a run, in s

    Returns
    -------
    mean seconds by number of units and of units down

    Notes
    -----
    Blocks are drawn with equal chances, so the mean of a run is that of a block times their number (Kuensch 1989, Ann.
    Stat. 17).

    Examples
    --------
    >>> exposure = pl.DataFrame({"unit_id": ["a", "b"], "from_s": [0, 0], "until_s": [100, 100]})
    >>> span = {"unit": 0, "start_s": 10, "end_s": 30, "inside": True, "repaired": True, "until_s": 100}
    >>> mean_down_time(build_blocks(pl.DataFrame([span]), exposure, 100), 2, 200).time_s.tolist()
    [40.0]
    """
    rows, (n_blocks, rest_s) = np.diff(blocks.first), blocks.split_horizon(horizon_s)
    block, at_s = np.repeat(np.arange(len(rows)), rows), blocks.at_s[: blocks.first[-1]]
    end_s = np.append(at_s[1:], blocks.length_s)
    end_s[blocks.first[1:][rows > 0] - 1] = blocks.length_s
    time_s = (n_blocks - 1) * (end_s - at_s) + np.minimum(end_s, rest_s) - np.minimum(at_s, rest_s)
    is_eligible = blocks.units >= units
    used = np.flatnonzero(is_eligible[block] & (blocks.down > 0) & (time_s > 0))
    size = blocks.watched.shape[1] + 1
    states, index = np.unique(blocks.units[block[used]] * size + blocks.down[used], return_inverse=True)
    weights = np.bincount(index, weights=time_s[used], minlength=len(states)) / is_eligible.sum()
    return DownTime(states // size, states % size, weights, horizon_s)
