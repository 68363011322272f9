"""Whether two windows differ when users do: every test as a difference of means, with its spread between clusters.

A share is the mean of yes and no; a comparison of ranks (Mann-Whitney) that of each job's place among both windows
together. A cluster's influence is what it moves the difference by, in both windows, so that a user who is in both
counts once; each part is over 1 - h, h its share of the window's jobs (`ttf.stats.clustered`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy.special import fdtrc

from ttf.stats.clustered import FEWEST, Clusters


@dataclass(frozen=True)
class Counted:
    """Jobs by window and cluster: windows, clusters (from 0, Int64), and their weights, rows in order of the window.

    weights: an array of one column for each thing that is counted.
    """

    windows: np.ndarray
    clusters: np.ndarray
    weights: np.ndarray
    number: int

    @classmethod
    def of(cls, rows: pl.DataFrame, number: int, **sums: pl.Expr) -> "Counted | None":
        """rows: with _window and cluster; None where they name no clusters. number: of clusters in all."""
        if "cluster" not in rows.columns or not number:
            return None
        found = rows.group_by("_window", "cluster").agg(**sums).sort("_window", "cluster")
        weights = found.select(sums.keys()).to_numpy().astype(float)
        return cls(found["_window"].to_numpy(), found["cluster"].to_numpy().astype(np.int64), weights, number)

    def one_of(self, place: int) -> "Counted":
        """Of one of the things that are counted, and all of them together."""
        weights = np.column_stack([self.weights[:, place], self.weights.sum(axis=1)])
        return replace(self, weights=weights)

    def within(self, windows: slice) -> np.ndarray:
        """The sums of some windows: a row per cluster, a column per thing counted."""
        part = slice(*np.searchsorted(self.windows, (windows.start, windows.stop)))
        codes, weights = self.clusters[part], self.weights[part]
        columns = (np.bincount(codes, weights=column, minlength=self.number) for column in weights.T)
        return np.column_stack(list(columns))


def of_means(before: np.ndarray, n_before: np.ndarray, after: np.ndarray, n_after: np.ndarray) -> dict:
    """clusters (effective), and p_clustered of no difference in means, where it can be had.

    Arrays with a row per cluster: sums of the scores and numbers of jobs, of two windows.
    """
    clusters, (change, se) = clusters_of(n_before, n_after), change_of(before, n_before, after, n_after)
    found = {"clusters": float(clusters.effective[0])}
    p = float(clusters.p_value(np.array([change / se]))[0]) if se > 0 and np.isfinite(se) else np.nan
    return found | ({"p_clustered": p} if np.isfinite(p) else {})


def of_cells(before: np.ndarray, after: np.ndarray, cells: Sequence[Sequence[int]], chi2: float) -> dict:
    """The same of a chi-squared over the cells (groups of columns), by the correction of Rao & Scott (1984).

    The statistic over the mean design effect of the cells, with the F distribution of cells - 1 and (cells - 1) times
    (effective clusters - 1) degrees of freedom (Thomas & Rao 1987). before, after: a row per cluster, a column per
    value.
    """
    n_before, n_after = before.sum(axis=1), after.sum(axis=1)
    clusters, df = clusters_of(n_before, n_after), len(cells) - 1
    effective = float(clusters.effective[0])
    independent = 1 / n_before.sum() + 1 / n_after.sum()
    design = 0.0
    for cell in cells:
        a, b = before[:, list(cell)].sum(axis=1), after[:, list(cell)].sum(axis=1)
        share = (a.sum() + b.sum()) / (n_before.sum() + n_after.sum())
        design += change_of(a, n_before, b, n_after)[1] ** 2 / (share * independent * df)
    if effective < FEWEST or not (design > 0 and np.isfinite(design)):
        return {"clusters": effective}
    return {"clusters": effective, "p_clustered": float(fdtrc(df, df * (effective - 1), chi2 / df / design))}


def change_of(before: np.ndarray, n_before: np.ndarray, after: np.ndarray, n_after: np.ndarray) -> tuple[float, float]:
    """(difference of the means, its standard error)."""
    score = np.zeros(before.size)
    for sign, values, n in ((-1, before, n_before), (1, after, n_after)):
        share = n / n.sum()
        away = (values - values.sum() / n.sum() * n) / n.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            score += sign * np.where(away == 0, 0, away / (1 - share))
    change = after.sum() / n_after.sum() - before.sum() / n_before.sum()
    return change, float(np.sqrt((score**2).sum()))


def clusters_of(n_before: np.ndarray, n_after: np.ndarray) -> Clusters:
    both = n_before + n_after
    present = both[both > 0]
    return Clusters(np.zeros(present.size, np.int64), present, 1)
