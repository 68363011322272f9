"""Derive the outages of the InfiniteHBD trace: a fault_start and the next fault_end of the same node and fault."""

import polars as pl
from ttf.formats.protocol import Format, Source
from ttf.records.outages.exposure import find_watched_units

START, END = "fault_start", "fault_end"
# A fault has no id: its start and end agree in these columns.
FAULT_COLUMNS = ["node_id", "level", "class", "cause"]
REPEATED_START = "began again before its end"


def mark_started_ends(events: pl.DataFrame) -> pl.DataFrame:
    """Sort the events by time and add `has_started`: false for an end without an open fault before it."""
    previous_type = pl.col("event_type").shift().over(FAULT_COLUMNS)
    is_end = pl.col("event_type") == END
    return events.sort("at_s", "line").with_columns(has_started=~is_end | (previous_type == START).fill_null(False))


def outage_records(source: Source) -> pl.DataFrame:
    """Return one record per start, in the order of time, with the next end of the same node and fault, or blank.

    Two consecutive starts get the same end, and the second is flagged.
    """
    events = source.raw["events"].collect().sort("at_s", "line")
    is_end = pl.col("event_type") == END
    end = pl.when(is_end).then("at_s").backward_fill().over(FAULT_COLUMNS)
    is_repeated = (pl.col("event_type").shift() == START).over(FAULT_COLUMNS)
    return (
        events.with_columns(end_s=end, flagged=pl.when(is_repeated).then(pl.lit(REPEATED_START)))
        .filter(~is_end)
        .select("level", "class", "cause", "end_s", "flagged", unit_id="node_id", node="node_id", start_s="at_s")
    )


def exposure(source: Source) -> pl.DataFrame:
    """Return the exposure of the nodes in events, and of unnamed nodes up to `nodes` of the registry.

    It lasts from day 0 to the last event, or for `window_days`.
    """
    events = source.raw["events"].collect()
    last_s = events.select(pl.col("at_s").max()).item()
    return find_watched_units(events.select(unit_id="node_id", node="node_id"), source.meaning, 0, last_s)


FORMAT = Format(outage_records=outage_records, exposure=exposure)
