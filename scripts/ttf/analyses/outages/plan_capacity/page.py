"""Runs with spares in the report."""

import polars as pl

from ttf.analyses.outages.plan_capacity import CAPACITY, SPARES_NEEDED, WEEK_HOURS
from ttf.display.report_tables import Shown
from ttf.display.report_trace import Trace
from ttf.engine import words

# Of so many numbers of spares, the fewest.
MOST_SPARES = 4
WAYS = {"exponential": "Exponential", "observed": "Observed times", "weeks": "Weeks resampled"}


def tables(trace: Trace) -> dict[str, Shown]:
    """A week: the spares for runs of every size, and the largest run that all ways can be asked about."""
    found = trace.table("capacity").filter(hours=WEEK_HOURS).drop_nulls("p_never_short")
    whole = found.filter(pl.col("way").n_unique().over("nodes") == pl.col("way").n_unique())
    largest = whole.filter(pl.col("nodes") == pl.col("nodes").max())
    fewest = largest["spares"].unique().sort().gather_every(2).head(MOST_SPARES)
    columns = ("way", "spares", "p_no_interruption", "p_never_short", "full_share", "capacity_share")
    shown = largest.filter(pl.col("spares").is_in(fewest.implode())).sort("spares", maintain_order=True)
    return {"capacity": Shown(shown, columns, CAPACITY), "spares-needed": _needed(trace.table("spares_needed"))}


def _needed(table: pl.DataFrame) -> Shown:
    """A column for each way, at the highest probability."""
    known = table.filter(hours=WEEK_HOURS).filter(pl.col("target") == pl.col("target").max()).drop_nulls("spares")
    spares = [pl.col("spares").filter(way=way).first().alias(way) for way in WAYS]
    by_size = known.group_by("nodes", maintain_order=True).agg(*spares)
    return Shown(by_size, {"nodes": None} | {way: (name, words.count) for way, name in WAYS.items()}, SPARES_NEEDED)
