"""Simulate the coverage of the intervals of outages: time between outages, mean repair, availability.

Nodes alternate between up (exponential) and down (lognormal) and start in their long-run state. Nodes may differ in
their failure rate. Outages at either end of the observation are observed in part.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaincinv, ndtri
from ttf.stats.clustered import Clusters, Limits
from ttf.stats.durations.mttf import poisson_limits
from ttf.stats.durations.renewal import availability_limits, exponential_availability, mtbf_limits, mttr_limits

Z_95 = 1.959963984540054
# Fleets per batch.
BLOCK = 250


@dataclass(frozen=True)
class Fleet:
    """A simulated fleet; times in days.

    sigma: log SD of repairs. mean_up: mean time up of a node of factor 1. node_spread: log SD of the nodes' failure
    factors, or their variance if they are gamma.
    """

    sigma: float
    node_spread: float = 0.0
    gamma: bool = False
    nodes: int = 400
    days: float = 365.0
    mean_up: float = 240.0
    mean_repair: float = 5.5

    def draw_mean_up(self, share: np.ndarray) -> np.ndarray:
        """Return the mean times up at these quantiles of the nodes' failure factors."""
        if self.gamma:
            return self.mean_up / (self.node_spread * gammaincinv(1 / self.node_spread, share))
        return self.mean_up / np.exp(self.node_spread * ndtri(share))

    def truth(self) -> tuple[float, float, float]:
        """Return (time between outages, mean repair, availability) of the population of nodes."""
        rate = float((1 / (self.draw_mean_up((np.arange(100_000) + 0.5) / 100_000) + self.mean_repair)).mean())
        return 1 / rate, self.mean_repair, 1 - self.mean_repair * rate


@dataclass
class Observed:
    """Observed totals by fleet and node.

    complete, repair_sum, repair_squares: number, sum and sum of squares of the outages within the watch.
    """

    down: np.ndarray
    outages: np.ndarray
    repairs: np.ndarray
    complete: np.ndarray
    repair_sum: np.ndarray
    repair_squares: np.ndarray


def observe_fleets(fleet: Fleet, rng: np.random.Generator, fleets: int) -> Observed:
    size = fleets * fleet.nodes
    up, centre = fleet.draw_mean_up(rng.random(size)), np.log(fleet.mean_repair) - fleet.sigma**2 / 2
    down, outages, repairs, complete, repair_sum, repair_squares = np.zeros((6, size))
    # A node that is down at the start is in a length-biased repair, at a uniform point of it.
    remaining = np.exp(centre + fleet.sigma**2 + fleet.sigma * rng.normal(size=size)) * rng.random(size)
    down_at_start = rng.random(size) < fleet.mean_repair / (up + fleet.mean_repair)
    down += np.where(down_at_start, np.minimum(remaining, fleet.days), 0)
    repairs += down_at_start & (remaining <= fleet.days)
    clock = np.where(down_at_start, remaining, 0.0)
    while (clock < fleet.days).any():
        start, length = clock + up * rng.exponential(size=size), np.exp(centre + fleet.sigma * rng.normal(size=size))
        is_observed = start <= fleet.days
        is_complete = is_observed & (start + length <= fleet.days)
        outages += is_observed
        repairs += is_complete
        complete += is_complete
        down += np.where(is_observed, np.minimum(length, fleet.days - start), 0)
        repair_sum += np.where(is_complete, length, 0)
        repair_squares += np.where(is_complete, length**2, 0)
        clock = np.where(is_observed, start + length, np.inf)
    totals = down, outages, repairs, complete, repair_sum, repair_squares
    return Observed(*(values.reshape(fleets, -1) for values in totals))


# Per estimate: coverage of the interval that assumes independence (Garwood's, that of the mean of completed outages,
# that of exponential times); coverage of the clustered interval where it exists; the share of fleets that have one.
Covered = tuple[tuple[float, float, float], ...]
ESTIMATES = ("time between outages", "mean repair", "availability")


def coverage(fleet: Fleet, repetitions: int, seed: int) -> Covered:
    rng, truths, hits = np.random.default_rng(seed), fleet.truth(), []
    for first in range(0, repetitions, BLOCK):
        observed = observe_fleets(fleet, rng, min(BLOCK, repetitions - first))
        fleet_index = np.repeat(np.arange(len(observed.down)), fleet.nodes)
        exposure = np.full(fleet_index.size, fleet.days)
        clusters = Clusters(fleet_index, exposure, len(observed.down))
        down, outages, repairs = observed.down.ravel(), observed.outages.ravel(), observed.repairs.ravel()
        clustered = (
            mtbf_limits(clusters, exposure, outages),
            mttr_limits(clusters, down, repairs),
            availability_limits(clusters, down, exposure),
        )
        estimates = zip(_independent(fleet, observed), clustered, truths, strict=True)
        hits.append([[_covers(exact, t), _covers(robust, t), np.isfinite(robust[0])] for exact, robust, t in estimates])
    shares = np.concatenate(hits, axis=2).mean(axis=2)
    return tuple((float(exact), float(robust / defined), float(defined)) for exact, robust, defined in shares)


def _independent(fleet: Fleet, observed: Observed) -> tuple[Limits, Limits, Limits]:
    watched, down, outages = fleet.nodes * fleet.days, observed.down.sum(axis=1), observed.outages.sum(axis=1)
    n = observed.complete.sum(axis=1)
    mean = observed.repair_sum.sum(axis=1) / n
    margin = Z_95 * np.sqrt((observed.repair_squares.sum(axis=1) / n - mean**2) / n)
    low, high = poisson_limits(outages, 0.95)
    exponential = exponential_availability(watched - down, down, outages)
    return (watched / high, watched / low), (mean - margin, mean + margin), exponential


def _covers(bounds: Limits, value: float) -> np.ndarray:
    return (bounds[0] <= value) & (value <= bounds[1])


EQUAL_NODES = {f"repairs of log SD {sigma:g}": Fleet(sigma) for sigma in (0.5, 1.0, 1.5, 2.0)}
FLEETS = EQUAL_NODES | {f"{name}, nodes differ": replace(fleet, node_spread=0.9) for name, fleet in EQUAL_NODES.items()}
FLEETS["the same of 1, by gamma factors"] = Fleet(1.0, node_spread=1.0, gamma=True)
FLEETS["repairs of log SD 1, 20 nodes"] = Fleet(1.0, nodes=20)


def rows(repetitions: int, seed: int) -> Iterator[tuple[str, Covered]]:
    for name, fleet in FLEETS.items():
        yield name, coverage(fleet, repetitions, seed)
