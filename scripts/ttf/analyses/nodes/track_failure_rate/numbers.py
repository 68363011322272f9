"""Numbers for the page: the windows of the failure rate over time, and the lowest and the highest."""

from ttf.analyses.nodes.track_failure_rate import FAILURE_RATE_OVER_TIME, FAILURE_RATE_WINDOWS
from ttf.display.metrics import CI, cells

_RATE = f"window failures_per_1000_node_days {CI}"
_RANKED = "failures_per_1000_node_days to_day"

NUMBERS = [
    cells(FAILURE_RATE_WINDOWS, "sizes.over_time", "reason", windows=0),
    cells(
        FAILURE_RATE_WINDOWS,
        "sizes.over_time",
        "windows window_days failures_in_windows runs_before days_before by last",
        not_blank="window_days",
    ),
    *(
        cells(
            FAILURE_RATE_OVER_TIME,
            f"sizes.over_time.{name}",
            _RATE,
            not_blank="ci_high",
            n="failures",
            sort=_RANKED,
            take=take,
            by="all",
        )
        for name, take in (("lowest", 1), ("highest", -1))
    ),
]
