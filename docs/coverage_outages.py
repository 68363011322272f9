"""How often the intervals of outages hold the truth: time between outages, mean repair, availability.

A fleet of nodes that alternate between up (exponential) and down (lognormal), each in its long-run state when the watch
begins; nodes may differ in how often they fail. What is down at either end of the watch is seen in part.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import gammaincinv, ndtri

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from ttf.stats.clustered import Clusters, Limits
from ttf.stats.durations.mttf import poisson_limits
from ttf.stats.durations.renewal import availability, exponential_availability, mean_between, mean_repair

Z_95 = 1.959963984540054
# Fleets made at a time.
BLOCK = 250


@dataclass(frozen=True)
class Fleet:
    """sigma: the log SD of repairs of mean `repair`; between: the mean time up of a node of factor 1; differ: the log
    SD of the factors by which nodes fail more often, or where they are gamma their variance. Times in days."""

    sigma: float
    differ: float = 0.0
    gamma: bool = False
    nodes: int = 400
    days: float = 365.0
    between: float = 240.0
    repair: float = 5.5

    def up(self, share: np.ndarray) -> np.ndarray:
        """The mean times up of nodes, of which these shares fail less often."""
        if self.gamma:
            return self.between / (self.differ * gammaincinv(1 / self.differ, share))
        return self.between / np.exp(self.differ * ndtri(share))

    def truth(self) -> tuple[float, float, float]:
        """(time between outages, mean repair, availability) of the population of nodes."""
        rate = float((1 / (self.up((np.arange(100_000) + 0.5) / 100_000) + self.repair)).mean())
        return 1 / rate, self.repair, 1 - self.repair * rate


@dataclass
class Seen:
    """What is seen of the nodes of some fleets, by fleet and node.

    whole, total, squares: of the outages that began and ended in the watch, their number and the sums of their times.
    """

    down: np.ndarray
    outages: np.ndarray
    repairs: np.ndarray
    whole: np.ndarray
    total: np.ndarray
    squares: np.ndarray


def seen(fleet: Fleet, rng: np.random.Generator, fleets: int) -> Seen:
    size = fleets * fleet.nodes
    up, centre = fleet.up(rng.random(size)), np.log(fleet.repair) - fleet.sigma**2 / 2
    down, outages, repairs, whole, total, squares = np.zeros((6, size))
    # Down when the watch begins: the rest of a repair that is longer than most.
    rest = np.exp(centre + fleet.sigma**2 + fleet.sigma * rng.normal(size=size)) * rng.random(size)
    begun = rng.random(size) < fleet.repair / (up + fleet.repair)
    down += np.where(begun, np.minimum(rest, fleet.days), 0)
    repairs += begun & (rest <= fleet.days)
    at = np.where(begun, rest, 0.0)
    while (at < fleet.days).any():
        start, lasts = at + up * rng.exponential(size=size), np.exp(centre + fleet.sigma * rng.normal(size=size))
        began = start <= fleet.days
        done = began & (start + lasts <= fleet.days)
        outages += began
        repairs += done
        whole += done
        down += np.where(began, np.minimum(lasts, fleet.days - start), 0)
        total += np.where(done, lasts, 0)
        squares += np.where(done, lasts**2, 0)
        at = np.where(began, start + lasts, np.inf)
    return Seen(*(each.reshape(fleets, -1) for each in (down, outages, repairs, whole, total, squares)))


# Of the time between outages, the mean repair and the availability: how often the interval that supposes independence
# holds the truth (Garwood's, that of the mean of the outages that ended, that of exponential times), how often the
# clustered one does where there is one, and in how many fleets there is.
Covered = tuple[tuple[float, float, float], ...]
ESTIMATES = ("time between outages", "mean repair", "availability")


def coverage(fleet: Fleet, repetitions: int, seed: int) -> Covered:
    rng, true, found = np.random.default_rng(seed), fleet.truth(), []
    for first in range(0, repetitions, BLOCK):
        of = seen(fleet, rng, min(BLOCK, repetitions - first))
        place = np.repeat(np.arange(len(of.down)), fleet.nodes)
        exposure = np.full(place.size, fleet.days)
        clusters = Clusters(place, exposure, len(of.down))
        down, outages, repairs = of.down.ravel(), of.outages.ravel(), of.repairs.ravel()
        clustered = (
            mean_between(clusters, exposure, outages),
            mean_repair(clusters, down, repairs),
            availability(clusters, down, exposure),
        )
        kinds = zip(_independent(fleet, of), clustered, true, strict=True)
        found.append([[_inside(exact, of), _inside(ends, of), np.isfinite(ends[0])] for exact, ends, of in kinds])
    shares = np.concatenate(found, axis=2).mean(axis=2)
    return tuple((float(exact), float(robust / given), float(given)) for exact, robust, given in shares)


def _independent(fleet: Fleet, of: Seen) -> tuple[Limits, Limits, Limits]:
    watched, down, outages = fleet.nodes * fleet.days, of.down.sum(axis=1), of.outages.sum(axis=1)
    n = of.whole.sum(axis=1)
    mean = of.total.sum(axis=1) / n
    away = Z_95 * np.sqrt((of.squares.sum(axis=1) / n - mean**2) / n)
    low, high = poisson_limits(outages, 0.95)
    exponential = exponential_availability(watched - down, down, outages)
    return (watched / high, watched / low), (mean - away, mean + away), exponential


def _inside(ends: Limits, value: float) -> np.ndarray:
    return (ends[0] <= value) & (value <= ends[1])


LIKE = {f"repairs of log SD {sigma:g}": Fleet(sigma) for sigma in (0.5, 1.0, 1.5, 2.0)}
FLEETS = LIKE | {f"{name}, nodes differ": replace(fleet, differ=0.9) for name, fleet in LIKE.items()}
FLEETS["the same of 1, by gamma factors"] = Fleet(1.0, differ=1.0, gamma=True)
FLEETS["repairs of log SD 1, 20 nodes"] = Fleet(1.0, nodes=20)


def rows(repetitions: int, seed: int) -> Iterator[tuple[str, Covered]]:
    for name, fleet in FLEETS.items():
        yield name, coverage(fleet, repetitions, seed)
