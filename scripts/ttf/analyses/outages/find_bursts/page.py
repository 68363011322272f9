"""Page tables of bursts and of outages after a repair."""

import polars as pl

from ttf.analyses.outages.find_bursts import AGAIN_AFTER_REPAIR, BURSTS
from ttf.display.report_tables import CLUSTERED, Column, PageTable
from ttf.display.report_trace import Trace

# Longer windows say little: chance alone puts another outage in them.
LONGEST_S = 604_800


def tables(trace: Trace) -> dict[str, PageTable]:
    bursts = trace.table("bursts").drop_nulls("share").filter(pl.col("window_s") <= LONGEST_S, pl.col("near") > 0)
    columns: dict[str, Column] = {"window_s": None, "share": CLUSTERED, "chance": None}
    columns |= {"is_burst": ("In bursts", lambda value: "yes" if value else "no")}
    columns |= dict.fromkeys(("chain_share", "longest_chain"))
    again = trace.table("again_after_repair").drop_nulls("observed")
    again_columns = {"within_s": None, "repairs": None, "observed": CLUSTERED}
    again_columns |= dict.fromkeys(("expected_fleet", "expected_own"))
    return {
        "bursts": PageTable(bursts, columns, BURSTS, "location"),
        "again-after-repair": PageTable(again, again_columns, AGAIN_AFTER_REPAIR),
    }
