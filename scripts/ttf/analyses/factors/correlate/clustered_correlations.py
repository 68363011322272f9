"""How well a correlation over jobs is known when jobs of one cluster are alike.

The influence of a job on the coefficient (Croux & Dehon 2010) is f(x) g(y) + a(x) + b(y), x being the value and y the
run time. Summed by cluster it gives the standard error of `ttf.stats.clustered`, h being the mean of the cluster's
shares of the sums of f^2 and of g^2: so far it pulls the coefficient towards itself. Limits and the test are those of
Student's t on the scale of Fisher's z, whose derivative is 1 / (1 - r^2).
"""

import math
from dataclasses import dataclass

import numpy as np

from ttf.analyses.factors.correlate.run_times import Sample
from ttf.engine.exact_sums import doubled_ranks
from ttf.records.clusters import Level
from ttf.stats.basics.order import first_of_each
from ttf.stats.basics.p_value import never_zero
from ttf.stats.clustered import FEWEST, UNCLUSTERED, Clusters, why_not

CONFIDENCE = 0.95
OF_MEANS = "points are means of groups: no clusters"


@dataclass(frozen=True)
class Influence:
    """The influence of each job on a coefficient, but for its mean: f(x) g(y) + a(x) + b(y).

    of_value: f, of mean square 1, and a by code of the value; of_time: g, alike, and b by run time, ascending.
    """

    of_value: tuple[np.ndarray, np.ndarray]
    of_time: tuple[np.ndarray, np.ndarray]

    def by_cluster(self, sample: Sample, clusters: int) -> tuple[np.ndarray, np.ndarray]:
        """(influence, leverage) of the clusters 0 .. clusters - 1: sums over the jobs of each, divided by all jobs."""
        (f, a), (g, b) = self.of_value, self.of_time
        x, y = f[sample.codes], g[sample.times]
        influence = x * y
        influence += a[sample.codes]
        influence += b[sample.times]
        # In place: of many jobs the room of a result takes longer to get than the result.
        leverage = np.multiply(x, x, out=x)
        leverage += np.multiply(y, y, out=y)
        leverage /= 2
        return tuple(_by(sample.clusters, of_row, sample, clusters) / sample.n for of_row in (influence, leverage))


def _by(number: np.ndarray, of_rows: np.ndarray, sample: Sample, size: int = 0) -> np.ndarray:
    """The sums, by a number of each part, over the jobs of what they have by row."""
    of_parts = sample.of_parts(of_rows)
    of_parts *= sample.weights
    return np.bincount(number, weights=of_parts, minlength=size)


def of_pearson(sample: Sample, r: float) -> Influence:
    """With x and y in standard units: xy - r (x^2 + y^2) / 2."""
    x = _standard(sample.coded.values.to_numpy(), sample.counts)
    y = _standard(sample.runtimes[first_of_each(sample.times)], _jobs_by_time(sample))
    return Influence((x, -r / 2 * x**2), (y, -r / 2 * y**2))


def of_spearman(sample: Sample, rho: float) -> Influence:
    """Of Pearson's r of the mid-ranks, with what a job does to the ranks of all others.

    u and v: the share of jobs below and half of those alike, less 1/2. A job at x raises u of all above it: so much the
    mean of uv moves by the mean of v over the jobs above x and half of those at x, less that mean; likewise y. The mean
    of u^2 is (1 - sum of p^3) / 12 with p the share of each value, so that of u^2 moves by (sum of p^3 - p^2) / 4.
    """
    n, of_x, of_y = sample.n, sample.counts, _jobs_by_time(sample)
    u, v = ((doubled_ranks(counts) - 1 - n) / (2 * n) for counts in (of_x, of_y))
    u_by_time = _by(sample.of_parts(sample.times), u[sample.codes], sample) / n
    v_by_value = _by(sample.of_parts(sample.codes), v[sample.times], sample, u.size) / n
    spread_u, spread_v = ((1 - ((counts / n) ** 3).sum()) / 12 for counts in (of_x, of_y))

    def alone(cross: np.ndarray, counts: np.ndarray, spread: float) -> np.ndarray:
        above = cross.sum() - np.cumsum(cross) + cross / 2
        return above / math.sqrt(spread_u * spread_v) + rho / 8 * (counts / n) ** 2 / spread

    of_value = u / math.sqrt(spread_u), alone(v_by_value, of_x, spread_u)
    return Influence(of_value, (v / math.sqrt(spread_v), alone(u_by_time, of_y, spread_v)))


def _jobs_by_time(sample: Sample) -> np.ndarray:
    return np.bincount(sample.times, weights=sample.jobs)


def _standard(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    n = counts.sum()
    values = values - (values * counts).sum() / n
    return values / math.sqrt((values**2 * counts).sum() / n)


INFLUENCES = {"pearson": of_pearson, "spearman": of_spearman}


def clustered(sample: Sample, level: Level, estimates: dict[str, float]) -> dict[str, dict]:
    """By method, of estimates that are not perfect: the cells of the columns that are about clusters, and `why_not`."""
    if level.by is None or not estimates:
        return {method: {"why_not": UNCLUSTERED} for method in estimates}
    members = np.bincount(sample.clusters, weights=sample.weights)
    there = np.flatnonzero(members)
    clusters = Clusters(np.zeros(there.size, np.int64), members[there], 1)
    effective = clusters.effective.item()
    about = {"cluster_by": level.by, "clusters": effective}
    if effective < FEWEST:
        return {method: about | {"why_not": why_not(effective, level.by)} for method in estimates}
    found = {}
    for method, r in estimates.items():
        influence, leverage = INFLUENCES[method](sample, r).by_cluster(sample, members.size)
        influence -= influence.sum() * members / sample.n
        se = clusters.se(influence[there], leverage[there]) / (1 - r**2)
        z, away = math.atanh(r), (se * clusters.student(CONFIDENCE)).item()
        low, high = math.tanh(z - away), math.tanh(z + away)
        cells = {"why_not": why_not(effective, level.by)}
        if low < high:
            p, _ = never_zero(clusters.p_value(z / se).item())
            cells = {"ci_low_clustered": low, "ci_high_clustered": high, "p_clustered": p}
        found[method] = about | cells
    return found
