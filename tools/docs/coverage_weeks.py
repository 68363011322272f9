"""Simulate the coverage of intervals where weeks differ: shares, mean times, medians, hazard ratios, outages.

Each week has a common factor: lognormal of mean 1, an AR(1) on the log scale. Users are as in `coverage.py`: Zipf sizes
and lognormal rates; each may be active in some of the weeks only. GPU time is lognormal by user (log SD 0.7) and job
(1.5), times 1, 2, 4 ... GPUs. The truth is that of many weeks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy.optimize import brentq
from ttf.analyses.factors.estimate_hazards.compute import logrank
from ttf.analyses.factors.estimate_hazards.hazard_ratios import hazard_ratios
from ttf.records.clusters import add_clusters
from ttf.stats.clustered import Clusters, Limits
from ttf.stats.durations.renewal import mtbf_limits
from ttf.stats.durations.survival import survival_summary

CONFIDENCE = 0.95
# Traces per batch.
BLOCK = 100
# Failures of a node per week, and of a user's job per hour of a run.
PER_WEEK, PER_JOB, LEMON = 0.03, 0.3, 18


@dataclass(frozen=True)
class World:
    """Parameters of weeks that differ.

    sd, ar: log SD and autocorrelation of the weeks' factors; active_share: share of weeks with jobs of a user.

    lemons: the share of the nodes that fail 18 times as often.
    """

    sd: float
    ar: float
    weeks: int = 26
    users: int = 100
    jobs: int = 5_000
    nodes: int = 400
    active_share: float = 1.0
    lemons: float = 0.0

    def draw_factors(self, rng: np.random.Generator, traces: int) -> np.ndarray:
        """Draw the factors by trace and week."""
        steps = rng.normal(size=(traces, self.weeks))
        for week in range(1, self.weeks):
            steps[:, week] = self.ar * steps[:, week - 1] + np.sqrt(1 - self.ar**2) * steps[:, week]
        return np.exp(self.sd * steps - self.sd**2 / 2)

    def draw_jobs(self, rng: np.random.Generator, traces: int) -> np.ndarray:
        """Draw the number of jobs by trace, user and week."""
        sizes = np.arange(1, self.users + 1) ** -0.9
        length = max(round(self.active_share * self.weeks), 1)
        first = rng.integers(0, self.weeks - length + 1, (traces, self.users, 1))
        week = np.arange(self.weeks)
        per_week = ((week >= first) & (week < first + length)) / length
        return rng.poisson(self.jobs * (sizes / sizes.sum())[:, None] * per_week)


# Per estimate: coverage of the interval by cluster alone, and by cluster and week, where they exist; the share of
# traces that have the latter; how many times as wide it is (median).
Covered = dict[str, tuple[float, float, float, float]]
ESTIMATES = ("share", "share of GPU time", "mean time to failure", "time between outages")


def coverage(world: World, repetitions: int, seed: int = 15) -> Covered:
    rng, results = np.random.default_rng(seed), {}
    for _ in range(0, repetitions, BLOCK):
        for name, (true_value, by_cluster, crossed) in _simulate_intervals(world, rng).items():
            width = np.log(crossed.high / crossed.low) / np.log(by_cluster.high / by_cluster.low)
            defined = (np.isfinite(limits.low) for limits in (by_cluster, crossed))
            covered = _covers(by_cluster, true_value), _covers(crossed, true_value)
            results.setdefault(name, []).append([*covered, *defined, width])
    coverages = {}
    for name, blocks in results.items():
        by_cluster, crossed, cluster_defined, defined, width = np.concatenate(blocks, axis=1)
        covered = by_cluster.sum() / cluster_defined.sum(), crossed.sum() / defined.sum()
        coverages[name] = (*covered, defined.mean(), float(np.nanmedian(width)))
    return coverages


def _covers(limits: Limits, true_value: float) -> np.ndarray:
    return (limits.low <= true_value) & (true_value <= limits.high)


def _simulate_intervals(world: World, rng: np.random.Generator) -> dict[str, tuple[float, Limits, Limits]]:
    """Map each estimate to its truth and its intervals by cluster, and by cluster and week, of BLOCK traces."""
    factors = world.draw_factors(rng, BLOCK)[:, None, :]
    jobs = world.draw_jobs(rng, BLOCK)
    user_factors = np.exp(rng.normal(size=(BLOCK, world.users, 1)) - 0.5)
    # A job fails within one hour at the hazard of its user and week, or runs the whole hour.
    hazard = PER_JOB * user_factors * factors
    failed = rng.binomial(jobs, -np.expm1(-hazard))
    # Failure times are nearly uniform within the hour, because it is short.
    hours = jobs - failed * 0.5
    node_factors = np.where(rng.random((BLOCK, world.nodes, 1)) < world.lemons, LEMON, 1.0)
    outages = rng.poisson(PER_WEEK * factors * node_factors)
    exposure = np.ones_like(outages, float)
    true_between = 1 / (PER_WEEK * (1 + world.lemons * (LEMON - 1)))
    share = float(np.mean(-np.expm1(-PER_JOB * _population_factors(world))))
    at_risk = float(np.mean(1 - 0.5 * -np.expm1(-PER_JOB * _population_factors(world))))
    cell = np.repeat(np.arange(jobs.size), jobs.ravel())
    # The first jobs of a cell fail; their sizes are independent of it.
    rank = np.arange(cell.size) - np.repeat(np.cumsum(jobs.ravel()) - jobs.ravel(), jobs.ravel())
    size = np.exp(0.7 * rng.normal(size=(BLOCK, world.users, 1)) * np.ones_like(jobs, float)).ravel()[cell]
    size *= np.exp(1.5 * rng.normal(size=cell.size)) * 2.0 ** np.minimum(rng.geometric(0.4, cell.size) - 1, 7)
    gpu_time, failed_gpu_time = (
        np.bincount(cell, weights=weights, minlength=jobs.size).reshape(jobs.shape)
        for weights in (size, size * (rank < failed.ravel()[cell]))
    )
    estimates = {
        "share": (share, jobs, failed, jobs),
        "share of GPU time": (share, gpu_time, failed_gpu_time, gpu_time),
        "mean time to failure": (at_risk / share, jobs, failed, hours),
        "time between outages": (true_between, exposure, outages, exposure),
    }
    intervals = {}
    for name, (true_value, members, *values) in estimates.items():
        trace, cluster, week = np.nonzero(members)
        cells = [np.broadcast_to(value, members.shape)[trace, cluster, week].astype(float) for value in values]
        cell_members = members[trace, cluster, week].astype(float)
        crossed = Clusters(trace, cell_members, BLOCK, cluster, week)
        clustered = Clusters(trace, cell_members, BLOCK, cluster, np.zeros_like(week))
        intervals[name] = (true_value, *(_limits(name, clusters, *cells) for clusters in (clustered, crossed)))
    return intervals


def _limits(name: str, clusters: Clusters, failed: np.ndarray, totals: np.ndarray) -> Limits:
    if name.startswith("share"):
        return clusters.proportion(failed, totals, CONFIDENCE)
    if name == "time between outages":
        return mtbf_limits(clusters, totals, failed)
    return clusters.ratio(totals, failed, CONFIDENCE, has_mean_leverage=True)


def _population_factors(world: World) -> np.ndarray:
    """Draw the combined factors of very many users and weeks."""
    rng = np.random.default_rng(1)
    spread = np.sqrt(1 + world.sd**2)
    return np.exp(spread * rng.normal(size=1_000_000) - spread**2 / 2)


HOUR = 3_600
# By user alone, by user and week: how often each holds or rejects.
BothWays = dict[str, tuple[float, float]]


def simulate_late_type(world: World, rng: np.random.Generator) -> pl.DataFrame:
    """Draw one trace as durations. Half of the jobs from the middle week on have a new GPU type, without effect.

    Run times are lognormal (median an hour, log SD 1.5). The hazard is that of the user and week, 1 an hour on average.
    """
    counts = world.draw_jobs(rng, 1)[0]
    factors = np.exp(rng.normal(size=(world.users, 1)) - 0.5) * world.draw_factors(rng, 1)
    user, week = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    run_s = HOUR * np.exp(1.5 * rng.normal(size=user.size))
    failure_s = HOUR * rng.exponential(size=user.size) / factors[user, week]
    is_new = (week >= world.weeks // 2) & (rng.random(user.size) < 0.5)
    columns = {"user": user, "block": week, "block_by": "week", "gpu_type": np.where(is_new, "new", "old")}
    columns |= {"duration_s": np.ceil(np.minimum(run_s, failure_s)).astype(np.int64)}
    return add_clusters(pl.DataFrame(columns | {"event": np.where(failure_s <= run_s, "failure", "success")}))


def late_type(world: World, repetitions: int, seed: int = 15) -> BothWays:
    """Simulate how often tests reject the equal hazards of two GPU types, and the median's interval holds the truth."""
    rng, results = np.random.default_rng(seed), []
    logs = np.sqrt(1 + world.sd**2) * np.random.default_rng(1).normal(size=100_000)
    median_h = brentq(lambda h: np.exp(-h * np.exp(logs - (1 + world.sd**2) / 2)).mean() - 0.5, 0.01, 100)
    for _ in range(repetitions):
        crossed = simulate_late_type(world, rng)
        row = []
        for durations in (crossed.drop("block"), crossed):
            durations = durations if "block" in durations.columns else durations.with_columns(block_by=None, block=None)
            tests = logrank(durations, "failure", ["gpu_type"]), hazard_ratios(durations, "failure", ["gpu_type"])
            summary = survival_summary(durations, "failure", ["all"]).row(0, named=True)
            low, high = (summary[f"median_ci_{bound}_clustered_s"] / HOUR for bound in ("low", "high"))
            row.append([*(test["p_clustered"].drop_nulls()[0] < 0.05 for test in tests), low <= median_h <= high])
        results.append(row)
    shares = np.mean(results, axis=0)
    return {name: tuple(column) for name, column in zip(LATE_TYPE, shares.T, strict=True)}


LATE_TYPE = ("log-rank rejects", "Cox rejects", "median holds the truth")
STEADY = World(0.0, 0.0)
WORLDS = {
    "26 weeks that do not differ": STEADY,
    "the same, users there for a fifth of them": replace(STEADY, active_share=0.2),
    "log SD 0.3": replace(STEADY, sd=0.3),
    "log SD 0.5": replace(STEADY, sd=0.5),
    "log SD 0.3, AR 0.8": replace(STEADY, sd=0.3, ar=0.8),
    "log SD 0.5, AR 0.8": replace(STEADY, sd=0.5, ar=0.8),
    "the same, users there for a fifth": replace(STEADY, sd=0.5, ar=0.8, active_share=0.2),
    "13 weeks, log SD 0.3": replace(STEADY, sd=0.3, weeks=13),
    "13 weeks, log SD 0.5, AR 0.8": replace(STEADY, sd=0.5, ar=0.8, weeks=13),
    "7 weeks that do not differ": replace(STEADY, weeks=7),
    "7 weeks, log SD 0.3": replace(STEADY, sd=0.3, weeks=7),
    "7 weeks, log SD 0.5": replace(STEADY, sd=0.5, weeks=7),
    "7 weeks, log SD 0.5, AR 0.8": replace(STEADY, sd=0.5, ar=0.8, weeks=7),
    "4 weeks, log SD 0.5, AR 0.8": replace(STEADY, sd=0.5, ar=0.8, weeks=4),
    "50 nodes, 1.5% of them fail 18 times as often": replace(STEADY, nodes=50, weeks=52, lemons=0.015),
}


LATE_WORLDS = (
    "26 weeks that do not differ",
    "log SD 0.3",
    "log SD 0.5",
    "log SD 0.3, AR 0.8",
    "log SD 0.5, AR 0.8",
    "13 weeks, log SD 0.3",
    "13 weeks, log SD 0.5, AR 0.8",
    "7 weeks, log SD 0.3",
)


def late_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name in LATE_WORLDS:
        shares = late_type(WORLDS[name], repetitions, seed).values()
        yield [name, *(f"**{crossed:.3f}** ({by_user:.3f})" for by_user, crossed in shares)]


def rows(repetitions: int, seed: int) -> Iterator[tuple[str, Covered]]:
    for name, world in WORLDS.items():
        yield name, coverage(world, repetitions, seed)
