"""Table of the spares in the report."""

import polars as pl

from ttf.analyses.outages.size_spares import SPARES
from ttf.analyses.shared.outages.outage_strata import ALL
from ttf.display.report_tables import Interval, PageTable
from ttf.display.report_trace import Trace


def tables(trace: Trace) -> dict[str, PageTable]:
    rows = trace.table("spares").filter(pl.col("stratum_by") == ALL, pl.col("outages") == ALL)
    columns = {"p": None, "spares_observed": Interval(low="observed_low", high="observed_high")}
    columns |= dict.fromkeys(("spares_binomial", "spares_simulated", "spares_added", "short_share"))
    return {"spares": PageTable(rows.drop_nulls("spares_observed"), columns, SPARES)}
