"""Numbers of delays of attempts, retries, run time to failure, overtaking and outcomes in a window."""

import polars as pl

from ttf.analyses.queue import describe_attempts as attempts
from ttf.display.metrics import CI, FEWEST_ENDED, Cells, cells

# A step at 3 minutes is reported if its span holds this multiple of the delays around it, and this share of all.
STEP_RATIO = 2
STEP_SHARE = 0.02

ALL = "all"
_STEEP = pl.col("step_180_s_share") >= pl.max_horizontal(STEP_SHARE, STEP_RATIO * pl.col("beside_180_s_share"))
_ENDED, _HAS_ROWS, _HAS_JOBS = pl.col("n") >= FEWEST_ENDED, pl.col("n") > 0, pl.col("n").sum() > 0
_HAS_SIZE = (pl.col("gpu_bucket") != ALL) & (pl.col("gpu_hours_share") > 0)


def _select_delays(columns: str, *conditions: pl.Expr, n: str = "n") -> Cells:
    """Return numbers of DELAYS of all jobs, for each kind of attempt, with delays of 0; arguments as of `cells`."""
    key = "queueing.{which}"
    return cells(attempts.DELAYS, key, columns, *conditions, n=n, group_by=ALL, gpu_bucket=ALL, zeros_kept=True)


NUMBERS = [
    _select_delays("negative unknown zeros", n=""),
    _select_delays("p50_s p90_s"),
    _select_delays("step_share=step_180_s_share beside_share=beside_180_s_share", _ENDED, _STEEP),
    cells(
        attempts.OUT_OF_ORDER,
        "queueing.{scope}",
        "out_of_order_share overtaken_share",
        pl.col("n") > 1,
        gpu_bucket=ALL,
    ),
    cells(attempts.RETRIES, "retries", f"retries_mean retried_share unsuccessful_share {CI}", group_by=ALL),
    cells(attempts.RUNTIME_TO_FAILURE, "rtf", "basis trials", n="", take=1),
    cells(attempts.RUNTIME_TO_FAILURE, "rtf", "mean_s p50_s p90_s", take=1),
    cells(attempts.RUNTIME_TO_FAILURE, "rtf", "gpu_hours", pl.col("gpu_hours") > 0, take=1),
    # The size with the most GPU time.
    cells(
        attempts.RUNTIME_TO_FAILURE,
        "rtf.most",
        "gpus=gpu_bucket trials_share gpu_hours_share",
        _HAS_SIZE & (_HAS_SIZE.sum() >= 2),
        n="trials",
        sort="-gpu_hours",
        take=1,
    ),
    *(
        cells(
            attempts.FAILED_ATTEMPTS,
            "failed_attempts.{group_by}",
            f"mean=trials_mean at_least_{lowest}=groups_share trials_of_{lowest}=trials_share",
            _HAS_ROWS,
            at_least=lowest,
        )
        for lowest in (2, 10)
    ),
    cells(
        attempts.OUTCOMES_WINDOW,
        "outcomes.{window}",
        "jobs=total from=window_from_s to=window_to_s",
        _HAS_JOBS,
        n="",
        unit="job",
        outcome="success",
    ),
    cells(
        attempts.RESTARTS,
        "restarts",
        "n p50_s p90_s p50_ci_low_clustered_s p50_ci_high_clustered_s cluster_by clusters",
        cause=ALL,
        phase="end to start",
    ),
    cells(attempts.RETRY_SUCCESS, "restarts.retry", f"success_share {CI}", cause=ALL, retry=1),
]
