"""Derive the durations of Backblaze's hard drives: one per stretch of consecutive days, or up to a failure.

Raw table `days` (Drive Stats). Rules:

- A row is a drive on a day, and one day at risk. A duration is a stretch of consecutive days, so durations add up to
  the rows. It ends in failure if its last row says so. Else it is censored, because absence is not failure: whole pods
  of 45 drives are absent for 2 to 14 days and return, which starts a new duration.
- A drive with rows after the day of its failure is back in service, which starts a new duration.
- Drives were in service before their first row. A duration counts from its first day here (entry_s 0), as for Titan's
  GPUs, because estimators without delayed entry would take the years before as time at risk. The age is a stratum
  instead: whole years of power (smart_9_raw) at the start. An age beyond MAX_AGE_YEARS is blank, but the day counts:
  one drive of April 2013 reads 29 years.
- The model is that of the first row.
"""

import polars as pl
from ttf.formats.format_declaration import load_declaration
from ttf.formats.protocol import Format, Source
from ttf.records.clusters import add_levels
from ttf.records.durations import DURATION_COLUMNS
from ttf.records.jobs import conform

CLUSTERS = load_declaration("backblaze")["clusters"]
DAY_S = 86_400
YEAR_H = 8766
# Far beyond any drive in service: a larger reading does not count hours.
MAX_AGE_YEARS = 20
# Rows that are sorted at once; a larger table is divided by drive.
MAX_ROWS = 4_000_000


def durations(source: Source) -> pl.DataFrame:
    """Return one row per stretch of days, by drive and time, with DURATION_COLUMNS (trace blank) and some extras.

    model; years_at_start (whole years of power on the first day, blank if unknown); start_s (first day, s since 1970).
    nodes is 1, as for other components, so that rates per node-day are per drive-day. GPUs are blank.
    """
    rows = source.raw["days"]
    parts = 1 + rows.select(pl.len()).collect().item() // MAX_ROWS
    part_index = pl.col("serial_number").hash(0) % parts
    stretches = pl.concat(_day_stretches(rows.filter(part_index == part).collect()) for part in range(parts))
    hours = pl.col("power_on_h")
    frame = stretches.sort("serial_number", "start_s").select(
        unit_id="serial_number",
        duration_id=pl.int_range(pl.len()).over("serial_number"),
        entry_s=pl.lit(0),
        duration_s=pl.col("days") * DAY_S,
        event=pl.when(pl.col("failed") == 1).then(pl.lit("failure")),
        nodes=pl.lit(1),
        model="model",
        years_at_start=pl.when(hours <= MAX_AGE_YEARS * YEAR_H).then(hours // YEAR_H),
        start_s="start_s",
    )
    return conform(add_levels(frame, CLUSTERS), DURATION_COLUMNS)


FORMAT = Format(durations=durations)


def _day_stretches(rows: pl.DataFrame) -> pl.DataFrame:
    """Return, per stretch: serial_number, model, start_s, power_on_h (first day), days, failed (1 or 0, last day)."""
    rows = rows.sort("serial_number", "day_s")
    is_next_day = (
        (pl.col("serial_number") == pl.col("serial_number").shift())
        & (pl.col("day_s") - pl.col("day_s").shift() == DAY_S)
        & (pl.col("failure").shift() == 0)
    )
    return (
        rows.with_columns(stretch=(~is_next_day.fill_null(False)).cum_sum())
        .group_by("stretch", maintain_order=True)
        .agg(
            pl.col("serial_number", "model", "power_on_h").first(),
            start_s=pl.col("day_s").first(),
            days=pl.len().cast(pl.Int64),
            failed=pl.col("failure").last(),
        )
    )
