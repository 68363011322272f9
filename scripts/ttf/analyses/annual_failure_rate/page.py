"""The table of the annual failure rates: all drives, and the models with the most drive-days."""

import polars as pl

from ttf.analyses.annual_failure_rate import AFR
from ttf.report.tables import WITH_INTERVAL, Shown
from ttf.report.trace import MOST_STRATA, Trace


def tables(trace: Trace) -> dict[str, Shown]:
    afr = trace.table("afr").sort(pl.col("stratum_by") != "all", -pl.col("drive_days"), "stratum").head(1 + MOST_STRATA)
    columns = dict.fromkeys(("stratum", "drives", "drive_days", "failures", "afr")) | {"afr": WITH_INTERVAL}
    return {"afr": Shown(afr, columns, AFR)}
