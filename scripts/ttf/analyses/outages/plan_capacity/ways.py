"""The ways to reckon what a run of N nodes with s spares beside them can expect in T seconds.

All say the same of independent nodes with exponential times. Observed times change how long a run lasts, not how many
nodes are down at a moment; what fails together changes both. An interruption is an outage of any node of the run, which
begins with all of them up; short is a run while fewer than N of the N + s nodes are up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np
import polars as pl
from scipy.linalg import expm
from scipy.special import bdtr

from ttf.analyses.shared.outages import outage_simulation
from ttf.analyses.shared.outages.units_down import at_most, course_of

DAY_S, WEEK_S = 86_400, 604_800
WAYS = ("exponential", "observed", "weeks")
FARES = ("p_never_short", "full_share", "capacity_share")
# Of a large fleet fewer runs are simulated, so that all have so many nodes together; FEWEST_RUNS at least.
MOST_NODES, FEWEST_RUNS = 1 << 21, 100
# With fewer blocks the same few would come again and again.
FEWEST_BLOCKS = 8


@dataclass
class Planner:
    """spans: of `ttf.analyses.shared.outages.units_down.spans_of`, one at least that began, and not down all the time;
    exposure: of these.

    What is asked again is not reckoned again; each simulation has a seed of its own, whatever is asked before it.
    """

    spans: pl.DataFrame
    exposure: pl.DataFrame
    simulations: int
    seed: int

    def __post_init__(self) -> None:
        self.units = self.exposure["unit_id"].n_unique()
        self.down_share = course_of(self.spans, self.exposure).down_share
        self.up, self.repair = outage_simulation.times_of(self.spans, self.exposure)
        self._blocks = {
            length: outage_simulation.blocks_of(self.spans, self.exposure, length) for length in (DAY_S, WEEK_S)
        }
        self._begun_up = {length: outage_simulation.up_at_begin(blocks) for length, blocks in self._blocks.items()}
        self.fares, self.no_interruption = cache(self.fares), cache(self.no_interruption)

    def why_not(self, way: str, nodes: int, time_s: int) -> str | None:
        """Why so many nodes, spares among them, cannot be reckoned with that way."""
        if way != "weeks":
            return None
        blocks, name = self._of(time_s), "days" if time_s < WEEK_S else "weeks"
        enough = int((blocks.units >= nodes).sum())
        return None if enough >= FEWEST_BLOCKS else f"{enough} {name} with {nodes:,} nodes, fewer than {FEWEST_BLOCKS}"

    def runs(self, way: str, nodes: int) -> int:
        """How many runs are simulated, on so many nodes with the spares: weeks are resampled of all nodes together."""
        held = nodes if way == "observed" else self.units
        return min(self.simulations, max(MOST_NODES // held, FEWEST_RUNS))

    def fares(self, way: str, nodes: int, spares: int, time_s: int) -> dict[str, tuple[float, float | None]]:
        """FARES, each with its standard error (None where none is seen)."""
        taken = nodes + spares
        if way == "exponential":
            never = never_short(nodes, spares, time_s, self.up.mean, self.repair.mean)
            # The mean of what lacks is the sum of P(more than k down), k from the spares on.
            lacking = (1 - at_most(np.arange(spares, taken), taken, self.down_share)).sum()
            shares = never, float(at_most(spares, taken, self.down_share)), float(1 - lacking / nodes)
            return dict(zip(FARES, ((share, None) for share in shares), strict=True))
        rng = np.random.default_rng([self.seed, nodes, spares, time_s, WAYS.index(way)])
        runs, blocks = self.runs(way, taken), self._of(time_s)
        if way == "weeks":
            drawn = outage_simulation.resampled(rng, blocks, taken, runs, time_s)
            short_s, lacking_s = outage_simulation.block_shortfalls(drawn, blocks, spares, runs)
        else:
            sizes, times = outage_simulation.batches(taken, runs), (self.up, self.repair)
            drawn = ((n, outage_simulation.renewals(rng, taken, n, time_s, *times)) for n in sizes)
            parts = (outage_simulation.shortfalls(spans, spares, n, time_s) for n, spans in drawn)
            short_s, lacking_s = (np.concatenate(each) for each in zip(*parts, strict=True))
        shares = (short_s == 0).astype(float), 1 - short_s / time_s, 1 - lacking_s / (time_s * nodes)
        return dict(zip(FARES, map(_mean, shares), strict=True))

    def no_interruption(self, way: str, nodes: int, time_s: int) -> tuple[float | None, float | None]:
        """P(no interruption), with its standard error; None where too few blocks have so many nodes up at the begin."""
        if way != "weeks":
            up: outage_simulation.Times = (
                outage_simulation.Exponential(self.up.mean) if way == "exponential" else self.up
            )
            return up.left_longer(time_s) ** nodes, None
        blocks = self._begun_up[self._of(time_s).length_s]
        if (blocks.units >= nodes).sum() < FEWEST_BLOCKS:
            return None, None
        rng, runs = np.random.default_rng([self.seed, nodes, time_s]), self.runs(way, nodes)
        is_free = np.ones(runs, bool)
        for run, taken, rows, _ in outage_simulation.resampled(rng, blocks, nodes, runs, time_s):
            is_free[run[(taken & blocks.began[rows]).any(axis=1)]] = False
        return _mean(is_free.astype(float))

    def _of(self, time_s: int) -> outage_simulation.Blocks:
        return self._blocks[DAY_S if time_s < WEEK_S else WEEK_S]


def _mean(values: np.ndarray) -> tuple[float, float | None]:
    """The mean of simulated runs and its standard error: None of runs that were all alike, which show none."""
    alike = (values == values[0]).all()
    return float(values.mean()), None if alike else float(values.std(ddof=1) / sqrt(len(values)))


def never_short(nodes: int, spares: int, time_s: float, up_s: float, repair_s: float) -> float:
    """P(at no moment of time_s are more than `spares` of nodes + spares down), with exponential times, stationary.

    The number down, k, is a birth and death chain: up by (nodes + spares - k) / up_s, down by k / repair_s (the machine
    repair model: Feller 1968, XVII.7). Short is a state that is not left again; the matrix exponential is exact.
    """
    down = np.arange(spares + 1)
    fails, repaired = (nodes + spares - down) / up_s, down / repair_s
    chain = np.diag(-fails - repaired) + np.diag(fails[:-1], 1) + np.diag(repaired[1:], -1)
    share = repair_s / (up_s + repair_s)
    start = np.diff(bdtr(down.astype(float), nodes + spares, share), prepend=0)
    return float(np.clip(start @ expm(chain * time_s).sum(axis=1), 0, 1))


def fewest(target: float, most: int, reached: Callable[[int], float]) -> int | None:
    """The fewest spares, from 0 to `most`, with which `reached` is the target or more; None where no number is."""
    high = 0
    while reached(min(high, most)) < target:
        if high >= most:
            return None
        low, high = high, max(1, 2 * high)
    if not high:
        return 0
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) >= target else (middle, high)
    return high
