"""The numbers of lost work: cost of failures, concentration, repeats, and what would have saved some of it."""

import polars as pl

from ttf.analyses.lost.measure_losses import FAILURE_CONCENTRATION, LOST_WORK_ALL, WHAT_IF
from ttf.display.metrics import Cells, cells

_COUNTS = "runs failed_runs failed_without_time infra_failures preemptions linked_preemptions"
_HOURS = " ".join(f"{kind}gpu_hours" for kind in ("", "failed_", "infra_", "first_order_", "second_order_", "linked_"))
_SHARES = "failed_gpu_hours_share infra_gpu_hours_share first_order_gpu_hours_share failed_above_8_gpus_share"
_TOP_SHARES = "owners=owners_in_top ended_share failures_share failed_gpu_hours_share"
TRIAL = "trial_on_one_gpu"
_IS_NO_TRIAL, _SCENARIO = pl.col("scenario") != TRIAL, "trial_s n affected given_up given_up_gpu_hours"


def _select_top(key: str, columns: str, percent: int) -> Cells:
    """Return the numbers of this `percent` of owners, those with the most ended jobs."""
    key = f"concentration.{{owner_by}}{key}"
    return cells(FAILURE_CONCENTRATION, key, columns, n="owners", ranked_by="ended", top_share=percent / 100)


NUMBERS = [
    cells(LOST_WORK_ALL, "lost_work", f"infra_basis checkpoint_interval_s {_COUNTS} {_HOURS} {_SHARES}", n="runs"),
    _select_top("", "owners", 10),
    *(_select_top(f".top_{percent}", _TOP_SHARES, percent) for percent in (1, 5, 10)),
    # The trial with the largest net saving.
    cells(
        WHAT_IF,
        "what_if.{scenario}",
        _SCENARIO,
        scenario=TRIAL,
        not_blank="net_gpu_hours",
        sort="-net_gpu_hours",
        take=1,
    ),
    cells(WHAT_IF, "what_if.{scenario}", _SCENARIO, _IS_NO_TRIAL, not_blank="net_gpu_hours"),
]
