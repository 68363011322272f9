"""Clustered intervals and tests of correlations over jobs.

The influence of a job on the coefficient (Croux & Dehon 2010) is f(x) g(y) + a(x) + b(y), with x the value and y the
run time. Its sums by cluster give the standard error of `ttf.stats.clustered`. The leverage h of a cluster is the mean
of its shares of the sums of f^2 and of g^2. The interval and the test use Student's t on the scale of Fisher's z, whose
derivative is 1 / (1 - r^2).
"""

import math
from dataclasses import dataclass

import numpy as np

from ttf.analyses.factors.correlate.run_times import Sample
from ttf.engine.exact_sums import doubled_ranks
from ttf.records.clusters import Level
from ttf.stats.basics.order import run_starts
from ttf.stats.basics.p_value import raise_to_smallest
from ttf.stats.clustered import FEWEST, UNCLUSTERED, Clusters, name_levels, no_interval_reason

CONFIDENCE = 0.95
NO_MEAN_CLUSTERS = "points are means of groups: no clusters"


@dataclass(frozen=True)
class Influence:
    """The influence of each job on a coefficient, up to its mean: f(x) g(y) + a(x) + b(y).

    value_terms: f and a by code of the value; time_terms: g and b by run time, ascending. f and g have mean square 1.
    """

    value_terms: tuple[np.ndarray, np.ndarray]
    time_terms: tuple[np.ndarray, np.ndarray]

    def sum_by_cluster(self, sample: Sample) -> tuple[np.ndarray, np.ndarray]:
        """Return (influence, leverage) of each cell: sums over its jobs, divided by all jobs."""
        (f, a), (g, b) = self.value_terms, self.time_terms
        x, y = f[sample.codes], g[sample.times]
        influence = x * y
        influence += a[sample.codes]
        influence += b[sample.times]
        # In place: with many jobs, allocating the result takes longer than computing it.
        leverage = np.multiply(x, x, out=x)
        leverage += np.multiply(y, y, out=y)
        leverage /= 2
        return sample.jobs_by_cell @ influence / sample.n, sample.jobs_by_cell @ leverage / sample.n


def pearson_influence(sample: Sample, r: float) -> Influence:
    """Return the influence on Pearson's r: xy - r (x^2 + y^2) / 2 with standardised x and y."""
    x = _standardise(sample.coded.values.to_numpy(), sample.counts)
    y = _standardise(sample.runtimes[run_starts(sample.times)], _count_jobs_by_time(sample))
    return Influence((x, -r / 2 * x**2), (y, -r / 2 * y**2))


def spearman_influence(sample: Sample, rho: float) -> Influence:
    """Return the influence on Spearman's rho: that on r of the mid-ranks, and that through the ranks of other jobs.

    u and v: the share of jobs below and half of those tied, less 1/2. A job at x raises u of all jobs above it. This
    moves the mean of uv by the mean of v over the jobs above x and half of those at x, less that mean; likewise for y.
    The mean of u^2 is (1 - sum of p^3) / 12 with p the share of each value, so it moves by (sum of p^3 - p^2) / 4.
    """
    n, n_x, n_y = sample.n, sample.counts, _count_jobs_by_time(sample)
    u, v = ((doubled_ranks(counts) - 1 - n) / (2 * n) for counts in (n_x, n_y))
    u_by_time = np.bincount(sample.times, u[sample.codes] * sample.jobs) / n
    v_by_value = np.bincount(sample.codes, v[sample.times] * sample.jobs, u.size) / n
    spread_u, spread_v = ((1 - ((counts / n) ** 3).sum()) / 12 for counts in (n_x, n_y))

    def marginal_term(cross: np.ndarray, counts: np.ndarray, spread: float) -> np.ndarray:
        """Return a or b of `Influence`: the effect through the ranks of other jobs."""
        above = cross.sum() - np.cumsum(cross) + cross / 2
        return above / math.sqrt(spread_u * spread_v) + rho / 8 * (counts / n) ** 2 / spread

    value_terms = u / math.sqrt(spread_u), marginal_term(v_by_value, n_x, spread_u)
    return Influence(value_terms, (v / math.sqrt(spread_v), marginal_term(u_by_time, n_y, spread_v)))


def _count_jobs_by_time(sample: Sample) -> np.ndarray:
    return np.bincount(sample.times, weights=sample.jobs)


def _standardise(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    n = counts.sum()
    values = values - (values * counts).sum() / n
    return values / math.sqrt((values**2 * counts).sum() / n)


INFLUENCES = {"pearson": pearson_influence, "spearman": spearman_influence}


def clustered_cells(sample: Sample, level: Level, estimates: dict[str, float]) -> dict[str, dict]:
    """Return by method the clustered limits, p and clusters, or `why_not`. estimates: correlations below 1 in size."""
    if level.by is None or not estimates:
        return {method: {"why_not": UNCLUSTERED} for method in estimates}
    members = np.bincount(sample.clusters, sample.members)
    present = np.flatnonzero(members)
    clusters = Clusters(
        np.zeros(present.size, np.int64), members[present], 1, *np.divmod(sample.cells[present], level.width)
    )
    effective = clusters.effective.item()
    cluster_cells: dict[str, object] = {
        "cluster_by": name_levels(level.by, level.block_by, clusters),
        "clusters": effective,
    }
    if effective < FEWEST:
        return {method: cluster_cells | {"why_not": no_interval_reason(effective, level.by)} for method in estimates}
    cells_by_method = {}
    for method, r in estimates.items():
        influence, leverage = INFLUENCES[method](sample, r).sum_by_cluster(sample)
        influence -= influence.sum() * members / sample.n
        spread = clusters.spread(influence[present], leverage[present])
        z, margin = math.atanh(r), spread.half_width(CONFIDENCE).item() / (1 - r**2)
        low, high = math.tanh(z - margin), math.tanh(z + margin)
        if low < high:
            p, _ = raise_to_smallest(spread.p_value(z * (1 - r**2)).item())
            limits = {"ci_low_clustered": low, "ci_high_clustered": high, "p_clustered": p}
            cells_by_method[method] = cluster_cells | limits
        else:
            cells_by_method[method] = cluster_cells | {"why_not": no_interval_reason(effective, level.by)}
    return cells_by_method
