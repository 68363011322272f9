"""Numbers of spares, for all units and all outages."""

import polars as pl

from ttf.analyses.outages.size_spares import SPARES, UNITS_DOWN
from ttf.analyses.shared.outages.outage_strata import ALL
from ttf.display.metrics import cells

_ALL = (pl.col("stratum_by") == ALL) & (pl.col("outages") == ALL)
_NEEDED = "observed=spares_observed low=observed_low high=observed_high binomial=spares_binomial"

NUMBERS = [
    cells(UNITS_DOWN, "spares", "reason", _ALL, pl.col("down").is_null(), take=1),
    cells(UNITS_DOWN, "spares", "units most_down=down", _ALL, pl.col("time_s") > 0, sort="down", take=-1),
    *(
        cells(
            SPARES,
            f"spares.{name}",
            f"{_NEEDED} simulated=spares_simulated beside=spares_added short_share",
            _ALL,
            p=p,
        )
        for p, name in {0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p99_9"}.items()
    ),
]
