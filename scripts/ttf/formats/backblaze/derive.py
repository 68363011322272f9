"""Backblaze's hard drives: a drive has one life per stretch of days on which it was seen, or up to its failure.

Raw table `days` (Drive Stats). What is made of it:

- A row is a drive on a day, and a day at risk. A life is a stretch of days in a row; its duration is so many days, so
  that durations add up to the rows. It ends in failure if its last row says so; else it is censored there, as absence
  is not failure: whole pods of 45 drives are away for 2 to 14 days and come back, to a life of their own.
- A drive with rows after the day of its failure is back in service: these are a further life.
- Drives were in service before they were first seen, and were watched from then on only. A life counts from its first
  day here (entry_s 0), as of Titan's GPUs: the estimators that know no delayed entry would take years before the watch
  for time at risk. The age is a stratum instead: whole years of power (smart_9_raw) at the start of the life. An age
  beyond OLDEST_YEARS is blank, and the day counts all the same: one drive of April 2013 reads 29 years.
- The model is that of the life's first row.
"""

import polars as pl
from ttf.engine.storage.partitions import number_of
from ttf.formats.format_declaration import declared
from ttf.formats.protocol import Format, Source
from ttf.records.clusters import with_levels
from ttf.records.jobs import conform
from ttf.records.lives import LIFE_COLUMNS

CLUSTERS = declared("backblaze")["clusters"]
DAY_S = 86_400
YEAR_H = 8766
# Far beyond any drive in service: a reading above it is none of hours.
OLDEST_YEARS = 20
# Rows that are sorted at once; the drives of a larger table in parts.
MOST_ROWS = 4_000_000


def lives(source: Source) -> pl.DataFrame:
    """One row per stretch of days, by drive and time, with LIFE_COLUMNS (trace blank) and these columns:

    model; years_at_start (whole years of power on the first day; blank where it is not known); start_s (first day, s
    since 1970). nodes is 1, the drive, as of other components: rates per node-day are per drive-day. GPUs are blank.
    """
    rows = source.raw["days"]
    parts = 1 + rows.select(pl.len()).collect().item() // MOST_ROWS
    of_part = number_of(["serial_number"], 0) % parts
    found = pl.concat(_stretches(rows.filter(of_part == part).collect()) for part in range(parts))
    hours = pl.col("power_on_h")
    frame = found.sort("serial_number", "start_s").select(
        unit_id="serial_number",
        life_id=pl.int_range(pl.len()).over("serial_number"),
        entry_s=pl.lit(0),
        duration_s=pl.col("days") * DAY_S,
        event=pl.when(pl.col("failed") == 1).then(pl.lit("failure")),
        nodes=pl.lit(1),
        model="model",
        years_at_start=pl.when(hours <= OLDEST_YEARS * YEAR_H).then(hours // YEAR_H),
        start_s="start_s",
    )
    return conform(with_levels(frame, CLUSTERS), LIFE_COLUMNS)


FORMAT = Format(lives=lives)


def _stretches(rows: pl.DataFrame) -> pl.DataFrame:
    """serial_number, model, start_s, power_on_h of the first day, days, and failed (1 or 0) of the last one."""
    rows = rows.sort("serial_number", "day_s")
    goes_on = (
        (pl.col("serial_number") == pl.col("serial_number").shift())
        & (pl.col("day_s") - pl.col("day_s").shift() == DAY_S)
        & (pl.col("failure").shift() == 0)
    )
    return (
        rows.with_columns(life=(~goes_on.fill_null(False)).cum_sum())
        .group_by("life", maintain_order=True)
        .agg(
            pl.col("serial_number", "model", "power_on_h").first(),
            start_s=pl.col("day_s").first(),
            days=pl.len().cast(pl.Int64),
            failed=pl.col("failure").last(),
        )
    )
