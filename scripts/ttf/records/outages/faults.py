"""Records -> faults: records that start a new fault, in an outage or not."""

import polars as pl


def faults(records: pl.DataFrame) -> pl.DataFrame:
    """Return the records that are new faults, by unit and time; records: of OUTAGE_RECORDS.

    A record that starts exactly at the end of another of its unit is the same fault with a new name (Slurm writes one
    when the reason changes). A record that starts with another repeats it.
    """
    records = records.sort("unit_id", "start_s", "end_s", nulls_last=True, maintain_order=True)
    # An open record ends after all others.
    latest_end = pl.col("end_s").fill_null(pl.lit(2**62)).cum_max().shift().over("unit_id")
    previous_start = pl.col("start_s").shift().over("unit_id")
    is_new = (pl.col("start_s") != latest_end) & (pl.col("start_s") != previous_start)
    return records.filter(is_new.fill_null(True))
