"""Turn estimates into table cells."""

from typing import Any

from ttf.stats.predictions import Estimate

Row = dict[str, Any]


def cells(estimate: Estimate) -> Row:
    """Return the estimate as cells of a table row: estimate, n, and `interval_cells`."""
    return interval_cells(estimate) | {"n": estimate.n, "estimate": estimate.estimate}


def interval_cells(estimate: Estimate) -> Row:
    """Return the clustered interval of an estimate as cells, with its clusters, or the reason why it has none."""
    return {
        "cluster_by": estimate.cluster_by,
        "clusters": estimate.clusters,
        "ci_low_clustered": estimate.low,
        "ci_high_clustered": estimate.high,
        "reason": estimate.reason,
    }
