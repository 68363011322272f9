"""Job sizes where clusters differ: intervals and tests from the failures and node time of each user, system, ..."""

import numpy as np
import polars as pl

from ttf.stats.clustered import FEWEST, LEVELS, UNCLUSTERED, Clusters, in_strata, with_limits


def limits(sums: pl.DataFrame, top: str, bottom: str, confidence: float) -> dict:
    """cluster_by, clusters and the clustered interval (`Clusters.ratio`) of sum(top) / sum(bottom), if there are any.

    sums: of `sizes.sums_by_cluster`, of the sizes that count.
    """
    told = _clusters(sums, by_block=True)
    if told is None:
        return {}
    strata, rows, clusters = told
    parts = (rows[name].to_numpy().astype(float) for name in (top, bottom))
    return with_limits(strata, *clusters.ratio(*parts, confidence, both=True)).row(0, named=True)


def against_the_others(sums: pl.DataFrame, low: int, high: int) -> float | None:
    """The p-value of runs of `low` to `high` nodes having the failures per node time of all others.

    Clusters are joined across both: what a user adds to the one rate and to the other goes together. Of the difference
    of the logarithms, by Student's t with the effective number of clusters less 1; blank where there is none.
    """
    inside = pl.col("nodes").is_between(low, high)
    told = _clusters(
        sums.with_columns(
            failures_in=pl.when(inside).then("failures").otherwise(0),
            node_s_in=pl.when(inside).then(_NODE_S).otherwise(0),
        ),
        "failures_in",
        "node_s_in",
    )
    if told is None:
        return None
    _, rows, clusters = told
    failures, node_s, mine, mine_s = (
        rows[name].to_numpy().astype(float) for name in ("failures", "node_s", "failures_in", "node_s_in")
    )
    spread, estimate = np.zeros(failures.size), 0.0
    for sign, k, e in ((1, mine, mine_s), (-1, failures - mine, node_s - mine_s)):
        if not (k.sum() and e.sum()):
            return None
        of_k, of_e = k / k.sum(), e / e.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            spread += sign * np.where(of_k == of_e, 0, (of_k - of_e) / (1 - (of_k + of_e) / 2))
        estimate += sign * np.log(k.sum() / e.sum())
    se = clusters.se(spread, np.zeros(spread.size))
    p = float(clusters.p_value(estimate / se)[0])
    return p if np.isfinite(p) else None


def slope_of_clusters(sums: pl.DataFrame, fitted: dict[int, float]) -> dict:
    """slope_se, df, cluster_by, clusters of the regression of `sizes.poisson_line`, or why_not.

    fitted: nodes -> failures expected there. Influences are the scores by cluster times the inverse information, each
    over 1 - h, h the mean of the cluster's shares of failures and exposure; df: the effective number less 2.
    """
    told = _clusters(sums)
    if told is None:
        return {"why_not": UNCLUSTERED}
    strata, found, clusters = told
    about = {"cluster_by": strata["cluster_by"].item(), "clusters": float(clusters.effective[0])}
    if about["clusters"] < FEWEST:
        few = f"{about['clusters']:.1f} effective clusters by {about['cluster_by']}, fewer than {FEWEST}"
        return about | {"why_not": few}
    sizes = np.array(list(fitted), dtype=float)
    expected = np.array(list(fitted.values()))
    x = np.log(sizes) - np.log(sizes).mean()
    design = np.column_stack([np.ones(x.size), x])
    inverse = np.linalg.inv(design.T @ (design * expected[:, None]))
    totals = dict(sums.group_by("nodes").agg(pl.col("exposure_s").sum()).iter_rows())
    rows = sums.filter(pl.col("nodes").is_in(list(fitted))).join(
        found.select("cluster").with_row_index("at"), on="cluster", nulls_equal=True, maintain_order="left"
    )
    at, nodes, failures, exposure = (rows[name].to_numpy() for name in ("at", "nodes", "failures", "exposure_s"))
    place = np.searchsorted(sizes, nodes)
    excess = failures - expected[place] * exposure / np.array([totals[int(size)] for size in sizes])[place]
    influence = np.bincount(at, weights=excess * (design[place] @ inverse[1]), minlength=found.height)
    leverage = (clusters.share(found["failures"].to_numpy()) + clusters.share(found["exposure_s"].to_numpy())) / 2
    se = float(clusters.se(influence, leverage)[0])
    if not np.isfinite(se):
        return about | {"why_not": f"one cluster by {about['cluster_by']} holds all"}
    return about | {"slope_se": se, "df": about["clusters"] - 2}


_NODE_S = pl.col("nodes").cast(pl.Float64) * pl.col("exposure_s")


def _clusters(
    sums: pl.DataFrame | None, *more: str, by_block: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame, Clusters] | None:
    """(stratum, a row per cluster with node_s, clusters) of sums by nodes and cluster; None where there are none.

    by_block: a row per cluster and block of time, for rates. Sizes that are compared with others share their weeks.
    """
    if sums is None or not sums.height:
        return None
    levels = LEVELS if by_block else ("cluster_by", "cluster")
    summed = (
        sums.with_columns(node_s=_NODE_S)
        .sort("cluster", "nodes", nulls_last=True)
        .group_by(levels, maintain_order=True)
        .agg(pl.col("jobs", "failures", "exposure_s", "node_s", *more).sum())
    )
    return in_strata(summed, [], "jobs")
