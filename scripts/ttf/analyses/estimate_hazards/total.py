"""The hazard ratios that a reader is shown: of amounts that grow together the total one, of a job twice as large."""

import polars as pl

from ttf.analyses.estimate_hazards import DOUBLING, JOB_SIZE
from ttf.numbers.metrics import FEWEST_FAILURES

SIGNIFICANCE = 0.05


def total_ratios(cox: pl.DataFrame) -> pl.DataFrame:
    """The rows of failure with a ratio; where there is a row `job_size` it stands for its amounts.

    p: clustered; adjusted, but of job_size, which is no coefficient. clear: p below the level of significance.
    """
    known = cox.filter(pl.col("hazard_ratio").is_not_null(), event="failure")
    together = (known["covariate"] == JOB_SIZE).any()
    parts = (pl.col("level") == DOUBLING) if together else pl.lit(False)
    p = pl.when(pl.col("covariate") == JOB_SIZE).then("p_clustered").otherwise("p_adjusted_clustered")
    shown = known.filter(~parts).with_columns(p=p).with_columns(clear=(pl.col("p") < SIGNIFICANCE).fill_null(False))
    return shown.sort(pl.col("covariate") != JOB_SIZE, maintain_order=True)


def strongest(cox: pl.DataFrame) -> dict | None:
    """The clear ratio farthest from 1 by the end of its clustered interval nearest to 1; none of few failures.

    By that end, as a wide interval proves little however far its middle.
    """
    clear = total_ratios(cox).filter("clear", pl.col("events") >= FEWEST_FAILURES)
    if not clear.height:
        return None
    nearest = pl.max_horizontal("ci_low_clustered", 1 / pl.col("ci_high_clustered"))
    return clear.sort(nearest, descending=True, nulls_last=True, maintain_order=True).row(0, named=True)
