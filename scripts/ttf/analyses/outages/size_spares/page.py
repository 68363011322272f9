"""Tables of the spares, and of runs with spares, in the report."""

import polars as pl

from ttf.analyses.outages.size_spares import CAPACITY, SPARES, SPARES_NEEDED, WEEK_HOURS
from ttf.display.report_tables import Interval, PageTable
from ttf.display.report_trace import Trace
from ttf.engine import words
from ttf.stats.outages.outage_strata import ALL

# The smallest numbers of spares that the table shows.
MOST_SPARES = 4
METHODS = {"exponential": "Exponential", "observed": "Observed times", "weeks": "Weeks resampled"}


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return the spares of all units; for a week, the spares of runs, and the largest run that all methods cover."""
    units = trace.table("spares").filter(stratum_by=ALL, outages=ALL)
    unit_columns = {"p": None, "spares_observed": Interval(low="observed_low", high="observed_high")}
    unit_columns |= dict.fromkeys(("spares_binomial", "spares_added", "short_share"))
    week = trace.table("capacity").filter(hours=WEEK_HOURS).drop_nulls("p_never_short")
    covered = week.filter(pl.col("way").n_unique().over("nodes") == pl.col("way").n_unique())
    largest = covered.filter(pl.col("nodes") == pl.col("nodes").max())
    spares = largest["spares"].unique().sort().gather_every(2).head(MOST_SPARES)
    columns = ("way", "spares", "p_no_interruption", "p_never_short", "full_share", "capacity_share")
    rows = largest.filter(pl.col("spares").is_in(spares.implode())).sort("spares", maintain_order=True)
    return {
        "spares": PageTable(units.drop_nulls("spares_observed"), unit_columns, SPARES),
        "capacity": PageTable(rows, columns, CAPACITY),
        "spares-needed": _spares_table(trace.table("spares_needed")),
    }


def _spares_table(table: pl.DataFrame) -> PageTable:
    rows = table.filter(hours=WEEK_HOURS).filter(pl.col("target") == pl.col("target").max()).drop_nulls("spares")
    spares = [pl.col("spares").filter(way=key).first().alias(key) for key in METHODS]
    rows_by_nodes = rows.group_by("nodes", maintain_order=True).agg(*spares)
    return PageTable(
        rows_by_nodes, {"nodes": None} | {key: (name, words.count) for key, name in METHODS.items()}, SPARES_NEEDED
    )
