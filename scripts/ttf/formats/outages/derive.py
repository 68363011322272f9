"""The outages of a table of any layout: a record is a row, its columns are those of the mapping."""

import polars as pl
from ttf.formats.protocol import Format, Source
from ttf.formats.table.read import TABLE
from ttf.records.jobs import conform
from ttf.records.outages.exposure import watched
from ttf.records.outages.outage_records import RECORD_COLUMNS

# What the column `planned` holds of a planned outage, if the mapping does not say.
PLANNED = ("planned", "scheduled", "true", "yes", "1")


def outage_records(source: Source) -> pl.DataFrame:
    """A row per row of the table. An end that is blank is an open one; where neither ends nor durations are mapped, no
    more is known than that the unit was down when the outage began."""
    mapping, rows = source.meaning["mapping"], _rows(source)
    if "planned" in mapping:
        words = mapping["planned"].get("words", PLANNED) if isinstance(mapping["planned"], dict) else PLANNED
        held = pl.col("planned").str.strip_chars().str.to_lowercase()
        rows = rows.with_columns(planned=held.is_in([word.lower() for word in words]))
    if not {"end", "duration"} & mapping.keys():
        rows = rows.with_columns(seen_until_s="start_s")
    return conform(rows, RECORD_COLUMNS).select(RECORD_COLUMNS.keys())


def exposure(source: Source) -> pl.DataFrame:
    """The units in the table and, up to `nodes` of the registry, unseen ones; from the first start (on a clock of its
    own from 0) to the last time in the table, unless `window_days` says otherwise."""
    rows = _rows(source)
    own_clock = source.meaning["times"]["format"] == "seconds"
    first, last = rows.select(pl.col("start_s").min(), pl.max_horizontal("start_s", "end_s").max().alias("last")).row(0)
    places = [name for name in ("unit_id", "node", "rack", "group") if name in rows.columns]
    return watched(rows.select(places), source.meaning, 0 if own_clock else first, last)


def _rows(source: Source) -> pl.DataFrame:
    """The rows with `end_s`, also where durations are mapped, and `node`."""
    rows = source.raw[TABLE].collect()
    end = pl.col("start_s") + pl.col("duration_s") if "duration_s" in rows.columns else pl.lit(None, pl.Int64)
    known = {"end_s": end, "node": pl.col("unit_id")}
    return rows.with_columns(**{name: value for name, value in known.items() if name not in rows.columns})


FORMAT = Format(outage_records=outage_records, exposure=exposure)
