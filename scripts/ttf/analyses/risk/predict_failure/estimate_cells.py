"""Turn estimates into table cells."""

from typing import Any

from ttf.stats.predictions import Estimate

Row = dict[str, Any]


def cells(estimate: Estimate) -> Row:
    return interval_cells(estimate) | {"n": estimate.n, "estimate": estimate.estimate}


def interval_cells(estimate: Estimate) -> Row:
    return {
        "cluster_by": estimate.cluster_by,
        "clusters": estimate.clusters,
        "ci_low_clustered": estimate.low,
        "ci_high_clustered": estimate.high,
        "reason": estimate.reason,
    }
