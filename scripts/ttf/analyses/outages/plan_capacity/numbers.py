"""The numbers of a week of the largest run that all methods cover."""

import polars as pl

from ttf.analyses.outages.plan_capacity import CAPACITY, SPARES_NEEDED
from ttf.display.metrics import cells

_NO_INTERRUPTION = "p_no_interruption p_no_interruption_se"
_HAS_NO_RUN = ~pl.col("largest").any()

NUMBERS = [
    cells(SPARES_NEEDED, "capacity", "reason", _HAS_NO_RUN, take=1),
    cells(SPARES_NEEDED, "capacity", "nodes target", largest=True, take=1),
    cells(SPARES_NEEDED, "capacity.{way}", "spares p_never_short p_never_short_se", largest=True),
    cells(CAPACITY, "capacity.{way}", _NO_INTERRUPTION, n="simulations", largest=True),
]
