"""The numbers of a week of the largest run that all ways can be asked about."""

import polars as pl

from ttf.analyses.outages.plan_capacity import CAPACITY, SPARES_NEEDED
from ttf.display.metrics import cells

_ALONE = "p_no_interruption p_no_interruption_se"
_NO_RUN = ~pl.col("largest").any()

NUMBERS = [
    cells(SPARES_NEEDED, "capacity", "reason", _NO_RUN, take=1),
    cells(SPARES_NEEDED, "capacity", "nodes target", largest=True, take=1),
    cells(SPARES_NEEDED, "capacity.{way}", "spares p_never_short p_never_short_se", largest=True),
    cells(CAPACITY, "capacity.{way}", _ALONE, n="simulations", largest=True),
]
