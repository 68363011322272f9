"""Bursts and outages after a repair in the report."""

import polars as pl

from ttf.analyses.outages.find_bursts import AGAIN_AFTER_REPAIR, BURSTS
from ttf.display.report_tables import CLUSTERED, Shown
from ttf.display.report_trace import Trace

# Longer windows say little: chance alone fills them.
LONGEST_S = 604_800


def tables(trace: Trace) -> dict[str, Shown]:
    bursts = trace.table("bursts").drop_nulls("share").filter(pl.col("window_s") <= LONGEST_S, pl.col("near") > 0)
    columns = {"window_s": None, "share": CLUSTERED, "chance": None}
    columns |= {"is_burst": ("In bursts", lambda value: "yes" if value else "no")}
    columns |= dict.fromkeys(("chain_share", "longest_chain"))
    again = trace.table("again_after_repair").drop_nulls("observed")
    of_again = {"within_s": None, "repairs": None, "observed": CLUSTERED, "expected_fleet": None, "expected_own": None}
    return {
        "bursts": Shown(bursts, columns, BURSTS, "within"),
        "again-after-repair": Shown(again, of_again, AGAIN_AFTER_REPAIR),
    }
