"""Records -> faults: what began anew, in an outage or not."""

import polars as pl


def faults(records: pl.DataFrame) -> pl.DataFrame:
    """The records that are faults of their own, by unit and time; records: of OUTAGE_RECORDS.

    One that goes on at the very end of another of its unit is the same fault, named anew (as Slurm does when the reason
    changes), and one that starts with another is its repetition.
    """
    records = records.sort("unit_id", "start_s", "end_s", nulls_last=True, maintain_order=True)
    # An open one ends after all others.
    so_far = pl.col("end_s").fill_null(pl.lit(2**62)).cum_max().shift().over("unit_id")
    before = pl.col("start_s").shift().over("unit_id")
    anew = (pl.col("start_s") != so_far) & (pl.col("start_s") != before)
    return records.filter(anew.fill_null(True))
