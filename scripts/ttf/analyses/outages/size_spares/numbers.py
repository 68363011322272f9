"""Numbers of spares: for all units and all outages, and for a week of the largest run that all methods cover."""

import polars as pl

from ttf.analyses.outages.size_spares import CAPACITY, SPARES, SPARES_NEEDED, UNITS_DOWN
from ttf.display.metrics import cells
from ttf.stats.outages.outage_strata import ALL

_ALL = (pl.col("stratum_by") == ALL) & (pl.col("outages") == ALL)
_NEEDED = "observed=spares_observed low=observed_low high=observed_high binomial=spares_binomial"
_NO_INTERRUPTION = "p_no_interruption p_no_interruption_se"
_HAS_NO_RUN = ~pl.col("largest").any()

NUMBERS = [
    cells(UNITS_DOWN, "spares", "reason", _ALL, pl.col("down").is_null(), take=1),
    cells(UNITS_DOWN, "spares", "units most_down=down", _ALL, pl.col("time_s") > 0, sort="down", take=-1),
    *(
        cells(SPARES, f"spares.{name}", f"{_NEEDED} beside=spares_added short_share", _ALL, p=p)
        for p, name in {0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p99_9"}.items()
    ),
    cells(SPARES_NEEDED, "capacity", "reason", _HAS_NO_RUN, take=1),
    cells(SPARES_NEEDED, "capacity", "nodes target", largest=True, take=1),
    cells(SPARES_NEEDED, "capacity.{way}", "spares p_never_short p_never_short_se", largest=True),
    cells(CAPACITY, "capacity.{way}", _NO_INTERRUPTION, n="simulations", largest=True),
]
