"""Numbers of the account: GPU hours by category, and their totals."""

import polars as pl

from ttf.analyses.lost.account_gpu_hours import (
    FAILED,
    FAILED_UNRECORDED,
    INFRA_KEPT,
    LEDGER,
    LEDGER_SUMMARY,
    OTHER_OWNERS,
    TIME_LIMIT,
)
from ttf.display.metrics import cells

NUMBERS = [
    cells(LEDGER, "ledger.{category}", "gpu_hours share cost", not_blank="share", n="attempts", scope_by="all"),
    cells(LEDGER_SUMMARY, "ledger"),
    # The two with the most time, of which a sentence names the first.
    *(
        cells(
            LEDGER,
            "ledger.{category}.{scope_by}.{rank}",
            "name=scope gpu_hours",
            *(pl.col("scope") != OTHER_OWNERS, pl.col("gpu_hours") > 0),
            n="attempts",
            sort="-gpu_hours scope",
            take=2,
            scope_by=scope_by,
            category=category,
        )
        for scope_by in ("account", "partition")
        for category in (TIME_LIMIT, INFRA_KEPT, FAILED, FAILED_UNRECORDED)
    ),
]
