"""Number of the report: the interval of the share of GPU time in failed attempts, over all jobs."""

from ttf.analyses.outcomes.describe_strata import STRATA
from ttf.display.metrics import CLUSTERS, cells

_BOUNDS = {f"failed_gpu_hours_share_{bound}": bound for bound in ("ci_low_clustered", "ci_high_clustered")}
_COLUMNS = _BOUNDS | {name: name for name in CLUSTERS.split()}
NUMBERS = [
    cells(
        STRATA,
        "lost_work",
        " ".join(f"{name}=failed_gpu_{column}" for name, column in _COLUMNS.items()),
        not_blank="failed_gpu_ci_low_clustered",
        stratum_by="all",
    )
]
