"""Numbers for the page: failures near outages, the share expected by chance, and effects of outages."""

import polars as pl

from ttf.analyses.outages.match_outages import OUTAGE_MATCHES
from ttf.analyses.outages.match_outages.compute import EFFECTS, NEAR
from ttf.display.metrics import CI, cells
from ttf.records.infra import AFTER_S, BEFORE_S

_IN_WINDOW = (pl.col("n") > 0) & (pl.col("before_s") == BEFORE_S) & (pl.col("after_s") == AFTER_S)
_UNPLANNED = _IN_WINDOW & (pl.col("kind") == "unplanned")
_OUTAGE_EFFECTS = _UNPLANNED & pl.col("measure").is_in(EFFECTS)

NUMBERS = [
    cells(
        OUTAGE_MATCHES,
        "outage_matches.failures",
        f"n share expected basis {CI}",
        _UNPLANNED,
        measure=NEAR,
    ),
    cells(OUTAGE_MATCHES, "outage_matches", "outages=n", _OUTAGE_EFFECTS, take=1),
    cells(OUTAGE_MATCHES, "outage_matches.{measure}", "share", _OUTAGE_EFFECTS),
]
