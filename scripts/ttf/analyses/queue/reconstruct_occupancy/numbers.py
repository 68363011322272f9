"""Numbers of occupancy: size, mean and highest load, location of free GPUs, and reasons of waiting."""

import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import (
    DELAY_CAUSES,
    FRAGMENTATION,
    OCCUPANCY,
    OCCUPANCY_BASIS,
    RECOGNISED,
    SERVER_SHARING,
)
from ttf.display.metrics import CI, cells

# Least share of the time for a load to count as the highest.
LEAST_TIME_SHARE = 0.01
# The load for which Jeon et al. are quoted.
TWO_THIRDS = "60-70%"

_BASIS = "servers servers_by_use gpus reason placements left_out spread above_capacity_share peak_share"
_SHARES = "load time_s gpus_in_use_share servers_empty_share servers_partly_share servers_full_share"
_LOAD, _TIME = pl.col("load"), pl.col("time_s")
# `all` has the longest time.
_LASTS = (_LOAD != "all") & (_TIME > 0) & (_TIME / _TIME.max() >= LEAST_TIME_SHARE)
_LOADS = {"all": _LOAD == "all", "two_thirds": _LOAD == TWO_THIRDS, "highest": _LOAD.filter(_LASTS).last() == _LOAD}
NUMBERS = [
    cells(OCCUPANCY_BASIS, "occupancy", _BASIS, n="placements"),
    *(cells(OCCUPANCY, f"occupancy.{name}", _SHARES, is_it, _TIME > 0) for name, is_it in _LOADS.items()),
    *(
        cells(FRAGMENTATION, f"occupancy.{name}.{{free_at_least}}", "free_gpus_share placeable_time_share", is_it)
        for name, is_it in _LOADS.items()
    ),
    cells(SERVER_SHARING, "occupancy", "dedicated_share", n="attempts", take=-1),
    *(
        cells(DELAY_CAUSES, f"occupancy.causes.{cause}", f"jobs_share wait_share {CI}", group="all", cause=cause)
        for cause in RECOGNISED
    ),
    cells(
        DELAY_CAUSES,
        "occupancy.causes.unrecognised",
        "jobs_share=unrecognised_share wait_share=unrecognised_wait_share",
        group="all",
        take=1,
    ),
    cells(DELAY_CAUSES, "occupancy.causes", "reason", pl.col("cause").is_null(), group="all"),
]
