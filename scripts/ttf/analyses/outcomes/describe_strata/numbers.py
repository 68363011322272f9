"""The interval of the share of GPU time in failed attempts, of all jobs, beside the share among those of lost work."""

from ttf.analyses.outcomes.describe_strata import STRATA
from ttf.display.metrics import CLUSTERS, cells

_ENDS = {f"failed_gpu_hours_share_{end}": end for end in ("ci_low_clustered", "ci_high_clustered")}
_COLUMNS = _ENDS | {name: name for name in CLUSTERS.split()}
NUMBERS = [
    cells(
        STRATA,
        "lost_work",
        " ".join(f"{name}=failed_gpu_{column}" for name, column in _COLUMNS.items()),
        not_blank="failed_gpu_ci_low_clustered",
        stratum_by="all",
    )
]
