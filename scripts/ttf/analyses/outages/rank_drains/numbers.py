"""Numbers of the list of nodes to drain, and of its backtest."""

import polars as pl

from ttf.analyses.outages.rank_drains import DRAIN_BACKTEST, DRAIN_SUMMARY
from ttf.display.metrics import CLUSTERS, cells

_BACKTEST = f"listed failed share base_share ratio ci_low_clustered ci_high_clustered {CLUSTERS}"

NUMBERS = [
    cells(DRAIN_SUMMARY, "drains", "", pl.col("nodes") > 0),
    cells(DRAIN_BACKTEST, "drains.backtest", _BACKTEST, pl.col("listed") > 0, n="listed", window="all"),
]
