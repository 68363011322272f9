"""Numbers for the page: the trend of faults, over all and within groups."""

from ttf.analyses.outages.track_outages import GROWTH
from ttf.display.metrics import cells

_TREND = "n trend strata trend_p homogeneity_p beta_within beta_within_ci_low beta_within_ci_high"
_GROUPS = "groups.n=groups_tested groups.better=groups_better groups.worse=groups_worse"

NUMBERS = [
    cells(GROWTH, "growth", f"{_TREND} {_GROUPS}", stratum_by="all"),
]
