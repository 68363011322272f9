"""Numbers of the list of nodes to drain, of its first node, and of its backtest."""

import polars as pl

from ttf.analyses.outages.list_drains import DRAIN_BACKTEST, DRAIN_LIST, DRAIN_SUMMARY
from ttf.display.metrics import CLUSTERS, cells

_BACKTEST = f"listed failed share base_share ratio ci_low_clustered ci_high_clustered {CLUSTERS}"
_EVIDENCE = "node fleet failure_fleet failures failures_expected outages=counted outages_expected=expected"

NUMBERS = [
    cells(DRAIN_LIST, "drains.first", _EVIDENCE, pl.col("listed_by").is_not_null(), take=1),
    cells(DRAIN_SUMMARY, "drains", ""),
    cells(DRAIN_BACKTEST, "drains.backtest", _BACKTEST, pl.col("listed") > 0, n="listed", window="all"),
]
