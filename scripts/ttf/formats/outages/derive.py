"""Derive the outages of a table of any layout: a row is a record, and the mapping defines its columns."""

import polars as pl
from ttf.formats.protocol import Format, Source
from ttf.formats.table.read import TABLE, get_option
from ttf.records.jobs import conform
from ttf.records.outages.exposure import find_watched_units
from ttf.records.outages.outage_records import RECORD_COLUMNS

# Default words of the column `planned` for a planned outage.
PLANNED_WORDS = ("planned", "scheduled", "true", "yes", "1")


def outage_records(source: Source) -> pl.DataFrame:
    """Return one record per row of the table.

    If the end is blank, the outage is still open. If neither ends nor durations are mapped, only the start is known.
    """
    mapping, rows = source.meaning["mapping"], _read_rows(source)
    if "planned" in mapping:
        words = [word.lower() for word in get_option(mapping["planned"], "words", PLANNED_WORDS)]
        rows = rows.with_columns(planned=pl.col("planned").str.strip_chars().str.to_lowercase().is_in(words))
    if not {"end", "duration"} & mapping.keys():
        rows = rows.with_columns(seen_until_s="start_s")
    return conform(rows, RECORD_COLUMNS).select(RECORD_COLUMNS.keys())


def exposure(source: Source) -> pl.DataFrame:
    """Return the exposure of the units in the table, and of unnamed units up to `nodes` of the registry.

    It lasts from the first start (or 0 on the trace's own clock) to the last time in the table, or for `window_days`.
    """
    rows = _read_rows(source)
    has_own_clock = source.meaning.get("times", {}).get("format") == "seconds"
    first_s, last_s = rows.select(
        pl.col("start_s").min(), pl.max_horizontal("start_s", "end_s").max().alias("last")
    ).row(0)
    columns = [name for name in ("unit_id", "node", "rack", "group") if name in rows.columns]
    return find_watched_units(rows.select(columns), source.meaning, 0 if has_own_clock else first_s, last_s)


def _read_rows(source: Source) -> pl.DataFrame:
    """Return the raw table; without an own column, end_s is start + duration, and node is the unit."""
    rows = source.raw[TABLE].collect()
    end = pl.col("start_s") + pl.col("duration_s") if "duration_s" in rows.columns else pl.lit(None, pl.Int64)
    default_columns = {"end_s": end, "node": pl.col("unit_id")}
    return rows.with_columns(**{name: value for name, value in default_columns.items() if name not in rows.columns})


FORMAT = Format(outage_records=outage_records, exposure=exposure)
