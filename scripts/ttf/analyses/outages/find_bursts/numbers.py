"""Numbers for the page: bursts, outages soon after a repair, and the spread of outages over time."""

import polars as pl

from ttf.analyses.outages.find_bursts import AGAIN_AFTER_REPAIR, BURSTS, OUTAGE_COUNTS
from ttf.display.metrics import CLUSTERS, cells

_INTERVAL = f"ci_low_clustered ci_high_clustered {CLUSTERS}"
_WINDOWS = {1800: "30_min", 86_400: "day"}

NUMBERS = [
    cells(BURSTS, "bursts", "reason", pl.col("share").is_null().all(), take=1),
    *(
        cells(
            BURSTS,
            f"bursts.{{location}}.{window}",
            f"share {_INTERVAL} chance is_burst",
            not_blank="share",
            window_s=window_s,
        )
        for window_s, window in _WINDOWS.items()
    ),
    cells(
        AGAIN_AFTER_REPAIR,
        "again.day",
        f"observed {_INTERVAL} expected_fleet expected_own",
        not_blank="observed",
        n="repairs",
        within_s=86_400,
    ),
    cells(OUTAGE_COUNTS, "bursts.daily", "mean dispersion most", not_blank="mean", n="periods", period_s=86_400),
]
