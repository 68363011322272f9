"""The numbers of outages: how often, how long, what share of the time, and why."""

import polars as pl

from ttf.analyses.outages.measure_availability import AVAILABILITY, OUTAGE_CAUSES, OUTAGE_FREE, OUTAGES_SUMMARY, SPANS
from ttf.display.metrics import CLUSTERS, cells

_BOUNDS = ("ci_low", "ci_high", "ci_low_clustered", "ci_high_clustered")
_COUNTS = "unit outages units repairs open records under_way down_share"
_REPAIR = "mttr_s ci_low_clustered_s=mttr_ci_low_s ci_high_clustered_s=mttr_ci_high_s"
_TIMES = ("median_s", "p90_s", "restricted_mean_s", "horizon_s", "longest_share")
_REPAIR_TIMES = " ".join(f"{name}=repair_{name}" for name in _TIMES)
_FAULTS = " ".join(f"{name}=records_{name}" for name in ("per_1000_unit_days", *_BOUNDS))
_UP = f"availability {CLUSTERS}"
_IS_CLUSTERED = pl.col("availability_method") == "clustered"
_IS_DOWN = pl.col("outages") > 0


def _mean_spec(name: str) -> str:
    """Return the columns of a mean time and its bounds, as `cells` takes them."""
    return f"{name}_s {' '.join(f'{bound}_s={name}_{bound}_s' for bound in _BOUNDS)} {CLUSTERS}"


def _limits(suffix: str) -> str:
    """Return `number=column` for both limits of the availability, as `cells` reads them."""
    return f"ci_low{suffix}=availability_ci_low ci_high{suffix}=availability_ci_high"


NUMBERS = [
    cells(OUTAGES_SUMMARY, "data", "outages units_with_outage outages_outside"),
    cells(OUTAGES_SUMMARY, "period", "from_s to_s days"),
    cells(AVAILABILITY, "outages", _COUNTS, n="", stratum_by="all"),
    cells(AVAILABILITY, "outages.between", _mean_spec("mtbf"), n="outages", stratum_by="all"),
    cells(AVAILABILITY, "outages.up_time", _mean_spec("mttf"), n="outages", stratum_by="all"),
    cells(AVAILABILITY, "outages.repair", f"{_REPAIR} {CLUSTERS}", n="repairs", stratum_by="all"),
    cells(AVAILABILITY, "outages.repair", _REPAIR_TIMES, n="outages", stratum_by="all"),
    cells(AVAILABILITY, "outages.faults", f"{_FAULTS} {CLUSTERS}", n="records", stratum_by="all"),
    # The interval is clustered or, for few units, exact.
    cells(AVAILABILITY, "outages.up", f"{_UP} {_limits('_clustered')}", _IS_CLUSTERED, n="outages", stratum_by="all"),
    cells(AVAILABILITY, "outages.up", f"{_UP} {_limits('')}", ~_IS_CLUSTERED, n="outages", stratum_by="all"),
    cells(AVAILABILITY, "outages.planned", "outages", _IS_DOWN, n="", stratum_by="planned", stratum="planned"),
    *(
        cells(
            OUTAGE_FREE,
            f"free.{name}",
            f"share ci_low_clustered ci_high_clustered {CLUSTERS}",
            not_blank="share",
            span_s=span_s,
        )
        for name, (span_s, _) in SPANS.items()
    ),
    # The level with the most time down.
    cells(
        OUTAGE_CAUSES,
        "outages.most.level",
        "name=level downtime_share",
        not_blank="level downtime_share",
        n="events",
        sort="-downtime_share -events",
        take=1,
        depth="level",
    ),
]
