"""Numbers of jobs by state and by size, and of the summary."""

import polars as pl

from ttf.analyses.outcomes.describe_states import CLUSTER_SUMMARY, SIZE_MIX, STATES
from ttf.display.metrics import cells

# Attempts, which follow the jobs, if the trace has them.
_LAST_UNIT, _SIZED = pl.col("unit") == pl.col("unit").last(), pl.col("gpus_high") > 0
_SHARES = "share=count_share gpu_hours_share"
_GPUS = "jobs jobs_per_day gpus_mean gpus_max runtime_mean_s runtime_median_s runtime_max_s"
NUMBERS = [
    cells(STATES, "states", "unit timeouts", take=-1),
    cells(STATES, "states.most", f"state {_SHARES}", _LAST_UNIT, not_blank="state", kind="state", take=1),
    cells(STATES, "states.infra", f"basis=infra_basis count {_SHARES}", kind="infra"),
    cells(SIZE_MIX, "states.sizes", "jobs=n", _SIZED, take=1),
    cells(SIZE_MIX, "states.sizes.one", "jobs_share gpu_hours_share", _SIZED, take=1),
    cells(SIZE_MIX, "states.sizes.eight", "jobs_up_to_share gpu_hours_up_to_share", gpus_high=8),
    cells(CLUSTER_SUMMARY, "states.gpu", _GPUS, n="jobs", population="gpu"),
]
