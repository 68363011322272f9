"""The interval of the share of GPU time in failed attempts, of all jobs."""

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    """Beside the share among the numbers of lost work, where there is one."""
    known = given["strata"].filter(stratum_by="all").drop_nulls("failed_gpu_ci_low_clustered")
    ends = {f"failed_gpu_hours_share_ci_{end}_clustered": f"ci_{end}_clustered" for end in ("low", "high")}
    units = {name: (f"failed_gpu_{column}", "share") for name, column in ends.items()}
    units |= {"cluster_by": ("failed_gpu_cluster_by", "label"), "clusters": ("failed_gpu_clusters", "clusters")}
    metrics.put_rows("lost_work", known, units, "tables/strata.csv", None)
