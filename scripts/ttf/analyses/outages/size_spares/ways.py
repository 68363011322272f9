"""Methods to estimate what a run of N nodes with s spare nodes can expect in T seconds.

All methods agree for independent nodes with exponential times. Observed times change how long a run lasts, but not how
many nodes are down at a moment; correlated failures change both. An interruption is an outage of any node of the run,
which begins with all of them up. A run is short while fewer than N of the N + s nodes are up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from math import sqrt

import numpy as np
import polars as pl
from scipy.linalg import expm
from scipy.special import bdtr

from ttf.stats.outages import outage_simulation
from ttf.stats.outages.outage_simulation import mean_down_time
from ttf.stats.outages.units_down import binomial_cdf, build_course, smallest_sufficient

DAY_S, WEEK_S = 86_400, 604_800
METHODS = ("exponential", "observed", "weeks")
# Most simulated nodes over all runs: a large fleet has fewer runs, but at least FEWEST_RUNS.
MOST_NODES, FEWEST_RUNS = 1 << 21, 100
# With fewer blocks, resampling repeats the same few.
FEWEST_BLOCKS = 8
# One simulation serves up to as many spares as nodes, and at least these; but not those that would lie idle for all
# but this share of the time.
MANY_SPARES, IDLE_SHARE = 64, 1e-9
Estimate = tuple[float, float | None]


@dataclass
class Planner:
    """Estimates for runs on one fleet; results are cached.

    spans: `ttf.stats.outages.units_down.list_spans`; at least one began, not all time is down. exposure: of
    these units. Each simulation has its own seed, so the order of calls does not matter. One simulation serves all
    numbers of spares that draw from the same blocks, so of these more spares never lower p_never_short.
    """

    spans: pl.DataFrame
    exposure: pl.DataFrame
    simulations: int
    seed: int

    def __post_init__(self) -> None:
        self.units = self.exposure["unit_id"].n_unique()
        self.down_share = build_course(self.spans, self.exposure).down_share
        self.up, self.repair = outage_simulation.fit_times(self.spans, self.exposure)
        self._blocks = {
            length: outage_simulation.build_blocks(self.spans, self.exposure, length) for length in (DAY_S, WEEK_S)
        }
        self._blocks_begun_up = {
            length: outage_simulation.select_initially_up(blocks) for length, blocks in self._blocks.items()
        }
        self.p_no_interruption, self._spares_needed = cache(self.p_no_interruption), cache(self._spares_needed)
        self._down_time = cache(lambda units, time_s: mean_down_time(self._choose_blocks(time_s), units, time_s))

    def limitation(self, method: str, nodes: int, time_s: int) -> str | None:
        """Return why the method cannot estimate runs on this many nodes, including spares, or None."""
        if method != "weeks":
            return None
        blocks, name = self._choose_blocks(time_s), "days" if time_s < WEEK_S else "weeks"
        count = int((blocks.units >= nodes).sum())
        return None if count >= FEWEST_BLOCKS else f"{count} {name} with {nodes:,} nodes, fewer than {FEWEST_BLOCKS}"

    def runs(self, method: str, nodes: int) -> int:
        """Return the number of simulated runs on `nodes`, without spares; weeks are resampled for the whole fleet."""
        nodes_per_run = nodes if method == "observed" else self.units
        return min(self.simulations, max(MOST_NODES // nodes_per_run, FEWEST_RUNS))

    def estimate(self, method: str, nodes: int, spares: int, time_s: int) -> dict[str, Estimate]:
        """Return p_never_short, full_share and capacity_share, with standard errors; the shares are not simulated."""
        if method == "weeks":
            units = self._choose_units(nodes, spares, time_s)
            short_share, missing_nodes = self._down_time(units, time_s).shortage(nodes, spares)
        else:
            n_nodes = nodes + spares
            short_share = 1 - float(binomial_cdf(spares, n_nodes, self.down_share))
            # The mean number of missing nodes is the sum of P(more than k down) over k from the spares on.
            missing_nodes = float((1 - binomial_cdf(np.arange(spares, n_nodes), n_nodes, self.down_share)).sum())
        return {
            "p_never_short": self.p_never_short(method, nodes, spares, time_s),
            "full_share": (1 - short_share, None),
            "capacity_share": (1 - missing_nodes / nodes, None),
        }

    def p_never_short(self, method: str, nodes: int, spares: int, time_s: int) -> Estimate:
        """Return P(the nodes down never exceed the spares) and its standard error."""
        if method == "exponential":
            return never_short(nodes, spares, time_s, self.up.mean, self.repair.mean), None
        most, units = max(nodes, spares, MANY_SPARES), nodes
        if method == "weeks":
            units = self._choose_units(nodes, spares, time_s)
            most = min(most, units - nodes)
        else:
            counts = np.arange(most + 1)
            most = smallest_sufficient(binomial_cdf(counts, nodes + counts, self.down_share), 1 - IDLE_SHARE)
        is_enough = self._spares_needed(method, nodes, time_s, units, most) <= min(spares, most)
        return _mean_and_se(is_enough.astype(float))

    def _choose_units(self, nodes: int, spares: int, time_s: int) -> int:
        """Return the fewest units of a block that has enough for the run."""
        units = self._choose_blocks(time_s).units
        return int(units[units >= nodes + spares].min())

    def _spares_needed(self, method: str, nodes: int, time_s: int, units: int, most: int) -> np.ndarray:
        """Return the fewest spares with which each simulated run is never short; `most` + 1 if more."""
        rng = np.random.default_rng([self.seed, nodes, time_s, METHODS.index(method)])
        if method == "observed":
            runs, times = self.runs(method, nodes), (self.up, self.repair)
            return outage_simulation.count_renewal_spares(rng, nodes, most, runs, time_s, *times)
        blocks = self._choose_blocks(time_s)
        drawn = outage_simulation.resample_blocks(rng, blocks, units, self._order, time_s)
        return outage_simulation.count_block_spares(drawn, blocks, nodes, most, len(self._order))

    @cached_property
    def _order(self) -> np.ndarray:
        """Return the position of each unit (runs, units) in the order in which each resampled run takes units."""
        order = np.tile(np.arange(self.units, dtype=np.int32), (self.runs("weeks", self.units), 1))
        return np.random.default_rng(self.seed).permuted(order, axis=1)

    def p_no_interruption(self, method: str, nodes: int, time_s: int) -> tuple[float | None, float | None]:
        """Return P(no interruption) and its standard error; None if too few blocks begin with this many nodes up."""
        if method != "weeks":
            up_times: outage_simulation.TimeDistribution = (
                outage_simulation.Exponential(self.up.mean) if method == "exponential" else self.up
            )
            return up_times.left_longer(time_s) ** nodes, None
        blocks = self._blocks_begun_up[self._choose_blocks(time_s).length_s]
        if (blocks.units >= nodes).sum() < FEWEST_BLOCKS:
            return None, None
        rng, is_free = np.random.default_rng([self.seed, nodes, time_s]), np.ones(len(self._order), bool)
        for run, rank, rows in outage_simulation.resample_blocks(rng, blocks, nodes, self._order, time_s):
            began = np.flatnonzero(np.bincount(blocks.unit[rows][blocks.began[rows]]))
            is_free[run[(rank[:, began] < nodes).any(axis=1)]] = False
        return _mean_and_se(is_free.astype(float))

    def _choose_blocks(self, time_s: int) -> outage_simulation.Blocks:
        return self._blocks[DAY_S if time_s < WEEK_S else WEEK_S]


def _mean_and_se(values: np.ndarray) -> Estimate:
    """Return the mean of simulated runs and its standard error; None for equal runs, which do not show one."""
    is_constant = (values == values[0]).all()
    return float(values.mean()), None if is_constant else float(values.std(ddof=1) / sqrt(len(values)))


def never_short(nodes: int, spares: int, time_s: float, up_s: float, repair_s: float) -> float:
    """Return P(at no moment of time_s are more than `spares` of nodes + spares down), for exponential stationary times.

    The number of nodes down, k, is a birth-death chain: up at (nodes + spares - k) / up_s, down at k / repair_s
    (machine repair model: Feller 1968, XVII.7). Short is an absorbing state; the matrix exponential is exact.
    """
    down = np.arange(spares + 1)
    failure_rate, repair_rate = (nodes + spares - down) / up_s, down / repair_s
    chain = np.diag(-failure_rate - repair_rate) + np.diag(failure_rate[:-1], 1) + np.diag(repair_rate[1:], -1)
    share = repair_s / (up_s + repair_s)
    start = np.diff(bdtr(down.astype(float), nodes + spares, share), prepend=0)
    return float(np.clip(start @ expm(chain * time_s).sum(axis=1), 0, 1))


def fewest_spares(target: float, most_spares: int, probability: Callable[[int], float]) -> int | None:
    """Return the fewest spares, 0 to `most_spares`, whose `probability` is at least the target; None if none."""
    high = 0
    while probability(min(high, most_spares)) < target:
        if high >= most_spares:
            return None
        low, high = high, max(1, 2 * high)
    if not high:
        return 0
    high = min(high, most_spares)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if probability(middle) >= target else (middle, high)
    return high
