"""Numbers of the extreme failure shares of each feature, and of the correlations over group means and jobs."""

import polars as pl

from ttf.analyses.factors.correlate import CORRELATIONS, FAILURE_SHARE
from ttf.display.metrics import CI, FEWEST_ENDED, cells
from ttf.stats.job_features import FEATURES

_ALL_TIMES = pl.col("cutoff_s").is_null()
_TESTS = "p_value p_adjusted reject p_clustered p_adjusted_clustered reject_clustered"
NUMBERS = [
    *(
        cells(
            FAILURE_SHARE,
            f"failure_share.{feature.name}",
            f"value failure_share {CI}",
            pl.col("ended") >= FEWEST_ENDED,
            n="ended",
            sort="failure_share",
            ends="lowest highest",
            feature=feature.name,
        )
        for feature in FEATURES
    ),
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
