"""The hazard ratios that a reader is shown: of amounts that grow together the total one, of a job twice as large."""

import polars as pl

from ttf.analyses.factors.estimate_hazards import DOUBLING, JOB_SIZE
from ttf.display.metrics import FEWEST_FAILURES

SIGNIFICANCE = 0.05
_IS_RATIO = pl.col("hazard_ratio").is_not_null() & (pl.col("event") == "failure")
_IS_TOTAL = pl.col("covariate") == JOB_SIZE
# Where there is a row `job_size` it stands for its amounts.
_IS_SHOWN = _IS_RATIO & ~((pl.col("level") == DOUBLING).fill_null(False) & (_IS_RATIO & _IS_TOTAL).any())
# Clustered; adjusted, but of job_size, which is no coefficient.
_P = pl.when(_IS_TOTAL).then("p_clustered").otherwise("p_adjusted_clustered")
_IS_CLEAR = (_P < SIGNIFICANCE).fill_null(False)
# By the end of its clustered interval nearest to 1, as a wide interval proves little however far its middle.
_DISTANCE = pl.when(_IS_SHOWN & _IS_CLEAR & (pl.col("events") >= FEWEST_FAILURES)).then(
    pl.max_horizontal("ci_low_clustered", 1 / pl.col("ci_high_clustered")).fill_null(0)
)
# The clear ratio farthest from 1; none of few failures.
IS_STRONGEST = (_DISTANCE.max() == _DISTANCE).fill_null(False)


def total_ratios(cox: pl.DataFrame) -> pl.DataFrame:
    """The rows of failure with a ratio, of job_size first, with p, and clear: p below the level of significance."""
    shown = cox.with_columns(p=_P, clear=_IS_CLEAR).filter(_IS_SHOWN)
    return shown.sort(~_IS_TOTAL, maintain_order=True)


def strongest(cox: pl.DataFrame) -> dict | None:
    """The clear ratio farthest from 1; None where there is none."""
    return next(cox.filter(IS_STRONGEST).iter_rows(named=True), None)
