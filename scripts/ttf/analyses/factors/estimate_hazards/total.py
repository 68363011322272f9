"""The hazard ratios shown on the page: if a job has several amounts, one ratio for doubling all of them."""

import polars as pl

from ttf.analyses.factors.estimate_hazards import DOUBLING, JOB_SIZE
from ttf.display.metrics import FEWEST_FAILURES

SIGNIFICANCE = 0.05
_IS_RATIO = pl.col("hazard_ratio").is_not_null() & (pl.col("event") == "failure")
_IS_TOTAL = pl.col("covariate") == JOB_SIZE
# The row `job_size`, if there is one, replaces the rows of its amounts.
_IS_SHOWN = _IS_RATIO & ~((pl.col("level") == DOUBLING).fill_null(False) & (_IS_RATIO & _IS_TOTAL).any())
# Clustered and adjusted; not adjusted for job_size, which is no coefficient.
_P = pl.when(_IS_TOTAL).then("p_clustered").otherwise("p_adjusted_clustered")
_IS_SIGNIFICANT = (_P < SIGNIFICANCE).fill_null(False)
# Distance of the clustered interval from 1: a wide interval proves little even if its estimate is extreme.
_DISTANCE = pl.when(_IS_SHOWN & _IS_SIGNIFICANT & (pl.col("events") >= FEWEST_FAILURES)).then(
    pl.max_horizontal("ci_low_clustered", 1 / pl.col("ci_high_clustered")).fill_null(0)
)
# The significant ratio farthest from 1, of levels with enough failures.
IS_STRONGEST = (_DISTANCE.max() == _DISTANCE).fill_null(False)


def total_ratios(cox: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of failure with a ratio, job_size first, with p and significant: p below SIGNIFICANCE."""
    return cox.with_columns(p=_P, significant=_IS_SIGNIFICANT).filter(_IS_SHOWN).sort(~_IS_TOTAL, maintain_order=True)


def strongest_ratio(cox: pl.DataFrame) -> dict | None:
    """Return the significant ratio farthest from 1; None if there is none."""
    return next(cox.filter(IS_STRONGEST).iter_rows(named=True), None)
