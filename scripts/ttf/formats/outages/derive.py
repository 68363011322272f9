"""Derive the outages of a table of any layout: a row is a record, and the mapping defines its columns."""

import polars as pl
from ttf.formats.outages.units_schema import UNITS
from ttf.formats.protocol import Format, Source
from ttf.formats.table.read import TABLE, get_option
from ttf.records.jobs import conform
from ttf.records.outages.exposure import find_watched_units
from ttf.records.outages.outage_records import RECORD_COLUMNS

# Columns of the table of units that divide units and their outages.
UNIT_COLUMNS = ("group", "kind", "node_gpus")
# Default words of the column `planned` for a planned outage.
PLANNED_WORDS = ("planned", "scheduled", "true", "yes", "1")


def outage_records(source: Source) -> pl.DataFrame:
    """Return one record per row of the table, with the group and the kind that its unit had at its start.

    If the end is blank, the outage is still open. If neither ends nor durations are mapped, only the start is known.
    """
    mapping, rows = source.meaning["mapping"], _read_rows(source)
    if "planned" in mapping:
        words = [word.lower() for word in get_option(mapping["planned"], "words", PLANNED_WORDS)]
        rows = rows.with_columns(planned=pl.col("planned").str.strip_chars().str.to_lowercase().is_in(words))
    if not {"end", "duration"} & mapping.keys():
        rows = rows.with_columns(seen_until_s="start_s")
    if UNITS in source.raw:
        units = source.raw[UNITS].select("unit_id", "from_s", *UNIT_COLUMNS[:2]).sort("from_s").collect()
        rows = rows.sort("start_s", maintain_order=True).join_asof(
            units, by="unit_id", left_on="start_s", right_on="from_s", suffix="_of_unit", check_sortedness=False
        )
        taken = [name for name in UNIT_COLUMNS[:2] if f"{name}_of_unit" in rows.columns]
        rows = rows.with_columns(pl.coalesce(f"{name}_of_unit", name).alias(name) for name in taken)
    return conform(rows, RECORD_COLUMNS).select(RECORD_COLUMNS.keys())


def exposure(source: Source) -> pl.DataFrame:
    """Return the exposure of the units in the table of units.

    Without that table: of the units in the table of outages, and of unnamed units up to `nodes` of the registry. It
    then lasts from the first start (or 0 on the trace's own clock) to the last time in the table, or for `window_days`.
    """
    rows = _read_rows(source)
    if UNITS in source.raw:
        return _read_watches(rows, source.raw[UNITS].collect())
    has_own_clock = source.meaning.get("times", {}).get("format") == "seconds"
    first_s, last_s = rows.select(
        pl.col("start_s").min(), pl.max_horizontal("start_s", "end_s").max().alias("last")
    ).row(0)
    columns = [name for name in ("unit_id", "node", "rack", "group") if name in rows.columns]
    return find_watched_units(rows.select(columns), source.meaning, 0 if has_own_clock else first_s, last_s)


def _read_watches(rows: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Return a row per watch of a unit, with its location and those of UNIT_COLUMNS that have a value.

    A watch without an end lasts to the last time in either table.
    """
    moments = [rows["start_s"].max(), rows["end_s"].max(), units["from_s"].max(), units["until_s"].max()]
    last_s = max(moment for moment in moments if moment is not None)
    unit_columns = [name for name in UNIT_COLUMNS if units[name].count()]
    row_columns = [name for name in ("node", "rack", "group") if name in rows.columns and name not in unit_columns]
    locations = rows.group_by("unit_id").agg(pl.col(row_columns).drop_nulls().first())
    watches = units.select("unit_id", "from_s", *unit_columns, until_s=pl.col("until_s").fill_null(last_s))
    watches = watches.filter(pl.col("from_s") < pl.col("until_s")).join(locations, on="unit_id", how="left")
    return watches.with_columns(node=pl.coalesce("node", "unit_id"))


def _read_rows(source: Source) -> pl.DataFrame:
    """Return the raw table; without an own column, end_s is start + duration, and node is the unit."""
    rows = source.raw[TABLE].collect()
    end = pl.col("start_s") + pl.col("duration_s") if "duration_s" in rows.columns else pl.lit(None, pl.Int64)
    default_columns = {"end_s": end, "node": pl.col("unit_id")}
    return rows.with_columns(**{name: value for name, value in default_columns.items() if name not in rows.columns})


FORMAT = Format(outage_records=outage_records, exposure=exposure)
