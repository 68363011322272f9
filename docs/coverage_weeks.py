"""How often intervals hold the truth where weeks differ: shares and mean times by user, time between outages.

Each week has a factor for all that is at risk in it: lognormal of mean 1, an AR(1) on the log scale. Users are as those
of `coverage.py`: of Zipf's sizes, with lognormal rates; each may be active for a part of the weeks only. Their GPU time
is lognormal, by user (log SD 0.7) and job (1.5), times 1, 2, 4 ... GPUs. Truths are those of many weeks.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from ttf.stats.clustered import Clusters, Limits
from ttf.stats.durations.renewal import mean_between

CONFIDENCE = 0.95
# Traces made at a time.
BLOCK = 100
# Failures that a node has in a week, and a user's jobs in an hour of a run.
PER_WEEK, PER_JOB, LEMON = 0.03, 0.3, 18


@dataclass(frozen=True)
class World:
    """sd, ar: of the log of the weeks' factors; active: the share of the weeks, in one piece, in which a user is.

    lemons: the share of the nodes that fail 18 times as often."""

    sd: float
    ar: float
    weeks: int = 26
    users: int = 100
    jobs: int = 5_000
    nodes: int = 400
    active: float = 1.0
    lemons: float = 0.0

    def factors(self, rng: np.random.Generator, traces: int) -> np.ndarray:
        """By trace and week."""
        steps = rng.normal(size=(traces, self.weeks))
        for week in range(1, self.weeks):
            steps[:, week] = self.ar * steps[:, week - 1] + np.sqrt(1 - self.ar**2) * steps[:, week]
        return np.exp(self.sd * steps - self.sd**2 / 2)

    def jobs_of(self, rng: np.random.Generator, traces: int) -> np.ndarray:
        """Jobs by trace, user and week."""
        sizes = np.arange(1, self.users + 1) ** -0.9
        length = max(round(self.active * self.weeks), 1)
        first = rng.integers(0, self.weeks - length + 1, (traces, self.users, 1))
        week = np.arange(self.weeks)
        per_week = ((week >= first) & (week < first + length)) / length
        return rng.poisson(self.jobs * (sizes / sizes.sum())[:, None] * per_week)


# An estimate -> how often the interval by cluster alone holds the truth, and that by cluster and week, of the traces
# that have one; in how many there is the latter, and how many times as wide it is (median).
Covered = dict[str, tuple[float, float, float, float]]
ESTIMATES = ("share", "share of GPU time", "mean time to failure", "time between outages")


def coverage(world: World, repetitions: int, seed: int = 15) -> Covered:
    rng, held = np.random.default_rng(seed), {}
    for _ in range(0, repetitions, BLOCK):
        for name, (true, alone, both) in _estimated(world, rng).items():
            width = np.log(both.high / both.low) / np.log(alone.high / alone.low)
            given = (np.isfinite(limits.low) for limits in (alone, both))
            held.setdefault(name, []).append([_holds(alone, true), _holds(both, true), *given, width])
    found = {}
    for name, each in held.items():
        alone, both, alone_given, given, width = np.concatenate(each, axis=1)
        covered = alone.sum() / alone_given.sum(), both.sum() / given.sum()
        found[name] = (*covered, given.mean(), float(np.nanmedian(width)))
    return found


def _holds(limits: Limits, true: float) -> np.ndarray:
    return (limits.low <= true) & (true <= limits.high)


def _estimated(world: World, rng: np.random.Generator) -> dict[str, tuple[float, Limits, Limits]]:
    """Estimate -> the truth, the intervals by cluster alone, and by cluster and week, of BLOCK traces."""
    factors = world.factors(rng, BLOCK)[:, None, :]
    jobs = world.jobs_of(rng, BLOCK)
    user = np.exp(rng.normal(size=(BLOCK, world.users, 1)) - 0.5)
    # A job fails by a hazard of its user and week within one hour; what does not fail has run for it.
    hazard = PER_JOB * user * factors
    failed = rng.binomial(jobs, -np.expm1(-hazard))
    # The sum of the times of those that failed is near that of uniform ones: the hour is short.
    hours = jobs - failed * 0.5
    node = np.where(rng.random((BLOCK, world.nodes, 1)) < world.lemons, LEMON, 1.0)
    outages = rng.poisson(PER_WEEK * factors * node)
    exposure = np.ones_like(outages, float)
    between = 1 / (PER_WEEK * (1 + world.lemons * (LEMON - 1)))
    share = float(np.mean(-np.expm1(-PER_JOB * _many(world))))
    at_risk = float(np.mean(1 - 0.5 * -np.expm1(-PER_JOB * _many(world))))
    cell = np.repeat(np.arange(jobs.size), jobs.ravel())
    # The first of a cell fail: of which size they are does not depend on it.
    rank = np.arange(cell.size) - np.repeat(np.cumsum(jobs.ravel()) - jobs.ravel(), jobs.ravel())
    size = np.exp(0.7 * rng.normal(size=(BLOCK, world.users, 1)) * np.ones_like(jobs, float)).ravel()[cell]
    size *= np.exp(1.5 * rng.normal(size=cell.size)) * 2.0 ** np.minimum(rng.geometric(0.4, cell.size) - 1, 7)
    gpu_time, lost = (
        np.bincount(cell, weights=weights, minlength=jobs.size).reshape(jobs.shape)
        for weights in (size, size * (rank < failed.ravel()[cell]))
    )
    kinds = {
        "share": (share, jobs, failed, jobs),
        "share of GPU time": (share, gpu_time, lost, gpu_time),
        "mean time to failure": (at_risk / share, jobs, failed, hours),
        "time between outages": (between, exposure, outages, exposure),
    }
    found = {}
    for name, (true, members, *values) in kinds.items():
        trace, cluster, week = np.nonzero(members)
        of = [np.broadcast_to(value, members.shape)[trace, cluster, week].astype(float) for value in values]
        of_members = members[trace, cluster, week].astype(float)
        by_both = Clusters(trace, of_members, BLOCK, cluster, week)
        alone = Clusters(trace, of_members, BLOCK, cluster, np.zeros_like(week))
        found[name] = (true, *(_limits(name, clusters, *of) for clusters in (alone, by_both)))
    return found


def _limits(name: str, clusters: Clusters, failed: np.ndarray, whole: np.ndarray) -> Limits:
    if name.startswith("share"):
        return clusters.proportion(failed, whole, CONFIDENCE)
    if name == "time between outages":
        return mean_between(clusters, whole, failed)
    return clusters.ratio(whole, failed, CONFIDENCE, both=True)


def _many(world: World) -> np.ndarray:
    """Factors of very many users and weeks."""
    rng = np.random.default_rng(1)
    spread = np.sqrt(1 + world.sd**2)
    return np.exp(spread * rng.normal(size=1_000_000) - spread**2 / 2)


STEADY = World(0.0, 0.0)
WORLDS = {
    "26 weeks that do not differ": STEADY,
    "the same, users there for a fifth of them": replace(STEADY, active=0.2),
    "log SD 0.3": replace(STEADY, sd=0.3),
    "log SD 0.5": replace(STEADY, sd=0.5),
    "log SD 0.3, AR 0.8": replace(STEADY, sd=0.3, ar=0.8),
    "log SD 0.5, AR 0.8": replace(STEADY, sd=0.5, ar=0.8),
    "the same, users there for a fifth": replace(STEADY, sd=0.5, ar=0.8, active=0.2),
    "13 weeks, log SD 0.3": replace(STEADY, sd=0.3, weeks=13),
    "13 weeks, log SD 0.5, AR 0.8": replace(STEADY, sd=0.5, ar=0.8, weeks=13),
    "50 nodes, 1.5% of them fail 18 times as often": replace(STEADY, nodes=50, weeks=52, lemons=0.015),
}


def rows(repetitions: int, seed: int) -> Iterator[tuple[str, Covered]]:
    for name, world in WORLDS.items():
        yield name, coverage(world, repetitions, seed)
