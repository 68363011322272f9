"""Clustered intervals and tests of job sizes, from the failures and node time of each user, system, ..."""

import numpy as np
import polars as pl

from ttf.stats.clustered import FEWEST, LEVELS, UNCLUSTERED, Clusters, add_limits, build_clusters, jackknife_influences


def interval(sums: pl.DataFrame | None, numerator: str, denominator: str, confidence: float) -> dict:
    """Return cluster_by, clusters and the interval (`Clusters.ratio`) of a ratio of sums; empty without clusters.

    sums: `sizes.sums_by_cluster`, of the sizes that count.
    """
    clustered_sums = _sum_by_cluster(sums, by_block=True)
    if clustered_sums is None:
        return {}
    strata, rows, clusters = clustered_sums
    top, bottom = (rows[name].to_numpy().astype(float) for name in (numerator, denominator))
    return add_limits(strata, *clusters.ratio(top, bottom, confidence, has_mean_leverage=True)).row(0, named=True)


def compare_with_other_sizes(sums: pl.DataFrame, low: int, high: int) -> float | None:
    """Return the p-value of equal failures per node time in runs of `low` to `high` nodes and in all other runs.

    Clusters are joined across both, because a user contributes to both rates. The test is of the difference of
    logarithms, by Student's t with the effective number of clusters minus 1; None if it is undefined.
    """
    is_size = pl.col("nodes").is_between(low, high)
    clustered_sums = _sum_by_cluster(
        sums.with_columns(
            failures_in=pl.when(is_size).then("failures").otherwise(0),
            node_s_in=pl.when(is_size).then(_NODE_S).otherwise(0),
        ),
        "failures_in",
        "node_s_in",
    )
    if clustered_sums is None:
        return None
    _, rows, clusters = clustered_sums
    failures, node_s, failures_in, node_s_in = (
        rows[name].to_numpy().astype(float) for name in ("failures", "node_s", "failures_in", "node_s_in")
    )
    influence, estimate = np.zeros(failures.size), 0.0
    for sign, k, e in ((1, failures_in, node_s_in), (-1, failures - failures_in, node_s - node_s_in)):
        if not (k.sum() and e.sum()):
            return None
        k_share, e_share = k / k.sum(), e / e.sum()
        influence += sign * jackknife_influences(k_share - e_share, (k_share + e_share) / 2)
        estimate += sign * np.log(k.sum() / e.sum())
    p = float(clusters.p_value(estimate / clusters.se(influence, np.zeros(influence.size)))[0])
    return p if np.isfinite(p) else None


def clustered_slope(sums: pl.DataFrame, fitted_by_nodes: dict[int, float]) -> dict:
    """Return slope_se, df, cluster_by, clusters of the regression of `sizes.poisson_line`, or why_not.

    fitted_by_nodes: failures expected by nodes. Influences are the scores by cluster times the inverse information,
    over 1 - h, where h is the mean of the cluster's shares of failures and exposure. df: effective clusters minus 2;
    with weeks, one less than the degrees of `Clusters.spread`.
    """
    clustered_sums = _sum_by_cluster(sums, by_block=True)
    if clustered_sums is None:
        return {"why_not": UNCLUSTERED}
    strata, totals, clusters = clustered_sums
    cells = {"cluster_by": strata["cluster_by"].item(), "clusters": float(clusters.effective[0])}
    if cells["clusters"] < FEWEST:
        reason = f"{cells['clusters']:.1f} effective clusters by {cells['cluster_by']}, fewer than {FEWEST}"
        return cells | {"why_not": reason}
    sizes = np.array(list(fitted_by_nodes), dtype=float)
    expected = np.array(list(fitted_by_nodes.values()))
    x = np.log(sizes) - np.log(sizes).mean()
    design = np.column_stack([np.ones(x.size), x])
    inverse = np.linalg.inv(design.T @ (design * expected[:, None]))
    at_risk_s = dict(sums.group_by("nodes").agg(pl.col("exposure_s").sum()).iter_rows())
    rows = sums.filter(pl.col("nodes").is_in(list(fitted_by_nodes))).join(
        totals.select("cluster", "block").with_row_index("index"),
        on=["cluster", "block"],
        nulls_equal=True,
        maintain_order="left",
    )
    index, nodes, failures, exposure = (rows[name].to_numpy() for name in ("index", "nodes", "failures", "exposure_s"))
    position = np.searchsorted(sizes, nodes)
    excess = failures - expected[position] * exposure / np.array([at_risk_s[int(size)] for size in sizes])[position]
    influence = np.bincount(index, weights=excess * (design[position] @ inverse[1]), minlength=totals.height)
    leverage = (clusters.share(totals["failures"].to_numpy()) + clusters.share(totals["exposure_s"].to_numpy())) / 2
    spread = clusters.spread(influence, leverage)
    if not np.isfinite(spread.se[0]):
        return cells | {"why_not": f"one cluster by {cells['cluster_by']} holds all"}
    return cells | {"slope_se": float(spread.se[0]), "df": float(spread.degrees[0]) - 1}


_NODE_S = pl.col("nodes").cast(pl.Float64) * pl.col("exposure_s")


def _sum_by_cluster(
    sums: pl.DataFrame | None, *extra_columns: str, by_block: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame, Clusters] | None:
    """Return (stratum, a row per cluster with node_s, clusters) of sums by nodes and cluster; None without sums.

    by_block: a row per cluster and block of time, for rates. Sizes that are compared share their blocks.
    """
    if sums is None or not sums.height:
        return None
    summed = (
        sums.with_columns(node_s=_NODE_S)
        .sort("cluster", "nodes", nulls_last=True)
        .group_by(LEVELS if by_block else ("cluster_by", "cluster"), maintain_order=True)
        .agg(pl.col("jobs", "failures", "exposure_s", "node_s", *extra_columns).sum())
    )
    return build_clusters(summed, [], "jobs")
