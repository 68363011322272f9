"""Clustered tests of whether two windows differ: each test is a difference of means, with its spread between clusters.

A share is the mean of an indicator; a comparison of ranks (Mann-Whitney) is that of each job's mid-rank in both windows
together. A cluster's influence is its contribution to the difference in both windows, so a user in both counts once.
Each part is divided by 1 - h, h its share of the window's jobs (`ttf.stats.clustered`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy.special import fdtrc

from ttf.stats.clustered import FEWEST, Clusters, jackknife_influences


@dataclass(frozen=True)
class ClusterCounts:
    """Job counts by window and cluster, in rows ordered by window: windows, clusters (from 0, Int64) and weights.

    weights: an array with one column for each count.
    """

    windows: np.ndarray
    clusters: np.ndarray
    weights: np.ndarray
    n_clusters: int

    @classmethod
    def from_rows(cls, rows: pl.DataFrame, n_clusters: int, **sums: pl.Expr) -> "ClusterCounts | None":
        """Count rows by _window and cluster; None if they have no clusters. n_clusters: number of all clusters."""
        if "cluster" not in rows.columns or not n_clusters:
            return None
        counts = rows.group_by("_window", "cluster").agg(**sums).sort("_window", "cluster")
        weights = counts.select(sums.keys()).to_numpy().astype(float)
        return cls(counts["_window"].to_numpy(), counts["cluster"].to_numpy().astype(np.int64), weights, n_clusters)

    def select_share(self, column: int) -> "ClusterCounts":
        """Return the counts of one column, and the total of all columns."""
        weights = np.column_stack([self.weights[:, column], self.weights.sum(axis=1)])
        return replace(self, weights=weights)

    def sum_over(self, windows: slice) -> np.ndarray:
        """Return the sums over some windows: a row per cluster, a column per count."""
        rows = slice(*np.searchsorted(self.windows, (windows.start, windows.stop)))
        codes, weights = self.clusters[rows], self.weights[rows]
        columns = (np.bincount(codes, weights=column, minlength=self.n_clusters) for column in weights.T)
        return np.column_stack(list(columns))


def compare_means(sums_before: np.ndarray, n_before: np.ndarray, sums_after: np.ndarray, n_after: np.ndarray) -> dict:
    """Test for no difference in means: clusters (effective number) and, if defined, p_clustered.

    Arrays have a row per cluster: sums of the scores, and numbers of jobs, in two windows.
    """
    clusters = combine_clusters(n_before, n_after)
    change, se = difference_and_se(sums_before, n_before, sums_after, n_after)
    row = {"clusters": float(clusters.effective[0])}
    p = float(clusters.p_value(np.array([change / se]))[0]) if se > 0 and np.isfinite(se) else np.nan
    return row | ({"p_clustered": p} if np.isfinite(p) else {})


def compare_cells(sums_before: np.ndarray, sums_after: np.ndarray, cells: Sequence[Sequence[int]], chi2: float) -> dict:
    """Test a chi-squared over cells (groups of columns) with the correction of Rao & Scott (1984).

    The statistic over the mean design effect of the cells has the F distribution with cells - 1 and (cells - 1) times
    (effective clusters - 1) degrees of freedom (Thomas & Rao 1987). Sums have a row per cluster and a column per value.
    """
    n_before, n_after = sums_before.sum(axis=1), sums_after.sum(axis=1)
    clusters, df = combine_clusters(n_before, n_after), len(cells) - 1
    effective = float(clusters.effective[0])
    independent = 1 / n_before.sum() + 1 / n_after.sum()
    design = 0.0
    for cell in cells:
        a, b = sums_before[:, list(cell)].sum(axis=1), sums_after[:, list(cell)].sum(axis=1)
        share = (a.sum() + b.sum()) / (n_before.sum() + n_after.sum())
        design += difference_and_se(a, n_before, b, n_after)[1] ** 2 / (share * independent * df)
    if effective < FEWEST or not (design > 0 and np.isfinite(design)):
        return {"clusters": effective}
    return {"clusters": effective, "p_clustered": float(fdtrc(df, df * (effective - 1), chi2 / df / design))}


def difference_and_se(
    sums_before: np.ndarray, n_before: np.ndarray, sums_after: np.ndarray, n_after: np.ndarray
) -> tuple[float, float]:
    """Return the difference of two means of clustered rows and its standard error.

    Parameters
    ----------
    sums_before, sums_after : (clusters,) sums of the scores in each window
    n_before, n_after : (clusters,) numbers of jobs

    Returns
    -------
    (mean after less mean before, standard error)

    Notes
    -----
    The standard error is that of a difference of ratios of sums by cluster (Cochran 1977, Sampling Techniques, chapter
    6): a cluster in both windows counts by the difference of its influences.

    Examples
    --------
    >>> n = np.array([2.0, 2.0, 2.0])
    >>> change, se = difference_and_se(np.array([0.0, 1.0, 1.0]), n, np.array([1.0, 1.0, 2.0]), n)
    >>> round(float(change), 4), round(se, 4)
    (0.3333, 0.2041)
    """
    score = np.zeros(sums_before.size)
    for sign, values, n in ((-1, sums_before, n_before), (1, sums_after, n_after)):
        influence = (values - values.sum() / n.sum() * n) / n.sum()
        score += sign * jackknife_influences(influence, n / n.sum())
    difference = sums_after.sum() / n_after.sum() - sums_before.sum() / n_before.sum()
    return difference, float(np.sqrt((score**2).sum()))


def combine_clusters(n_before: np.ndarray, n_after: np.ndarray) -> Clusters:
    n_total = n_before + n_after
    present = n_total[n_total > 0]
    return Clusters.in_one_stratum(present)
