"""Numbers of the correlations over group means and jobs."""

import polars as pl

from ttf.analyses.factors.correlate import CORRELATIONS
from ttf.display.metrics import CI, cells

_ALL_TIMES = pl.col("cutoff_s").is_null()
_TESTS = "p_value p_adjusted reject p_clustered p_adjusted_clustered reject_clustered"
NUMBERS = [
    *(
        cells(
            CORRELATIONS,
            "correlations.{outcome_set}.{feature}.{unit}",
            f"estimate {CI} {_TESTS}",
            _ALL_TIMES,
            not_blank="estimate",
            unit=unit,
            method=method,
        )
        for unit, method in (("group_mean", "pearson"), ("job", "spearman"))
    ),
]
