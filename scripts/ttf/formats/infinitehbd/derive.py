"""Outages of the InfiniteHBD trace: a fault_start and the next fault_end of the same node and kind of fault."""

import polars as pl
from ttf.formats.protocol import Format, Source
from ttf.records.outages.exposure import watched

START, END = "fault_start", "fault_end"
# A fault has no id: this is what an end has in common with its start.
FAULT = ["node_id", "level", "class", "cause"]
AGAIN = "began again before its end"


def has_begun(events: pl.DataFrame) -> pl.DataFrame:
    """The events by time, with `begun`: of an end whether a fault that has not ended goes before it; else true."""
    before = pl.col("event_type").shift().over(FAULT)
    is_end = pl.col("event_type") == END
    return events.sort("at_s", "line").with_columns(begun=~is_end | (before == START).fill_null(False))


def outage_records(source: Source) -> pl.DataFrame:
    """A row per start, in the order of time, with the next end of the same node and kind of fault, blank if there is
    none. Of two starts in a row, which both get that end, the second is flagged."""
    events = source.raw["events"].collect().sort("at_s", "line")
    is_end = pl.col("event_type") == END
    end = pl.when(is_end).then("at_s").backward_fill().over(FAULT)
    again = (pl.col("event_type").shift() == START).over(FAULT)
    return (
        events.with_columns(end_s=end, flagged=pl.when(again).then(pl.lit(AGAIN)))
        .filter(~is_end)
        .select("level", "class", "cause", "end_s", "flagged", unit_id="node_id", node="node_id", start_s="at_s")
    )


def exposure(source: Source) -> pl.DataFrame:
    """The nodes that events name and, up to `nodes` of the registry, unseen ones, from day 0 to the last event unless
    `window_days` says otherwise."""
    events = source.raw["events"].collect()
    return watched(events.select(unit_id="node_id", node="node_id"), source.meaning, 0, events["at_s"].max())


FORMAT = Format(outage_records=outage_records, exposure=exposure)
