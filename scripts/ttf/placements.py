"""Placements: one part of an attempt on one machine, in parallel with the others."""

import polars as pl

from ttf.jobs import conform
from ttf.stages import PLACEMENTS

PLACEMENT_COLUMNS = PLACEMENTS.schema


def as_placements(parts: pl.LazyFrame) -> pl.LazyFrame:
    """The parts with PLACEMENT_COLUMNS and no others, blank where they have none; the rows in their order.

    Where the parts do not bring them: runtime_s is end_s - start_s, blank if the end is before the start; own_outcome
    is whether the attempt is on one machine.
    """
    run_s = pl.col("end_s") - pl.col("start_s")
    derived = {
        "runtime_s": pl.when(run_s >= 0).then(run_s),
        "own_outcome": (pl.col("nodes") == 1).fill_null(False),
    }
    given = parts.collect_schema().names()
    parts = parts.with_columns(**{name: value for name, value in derived.items() if name not in given})
    return conform(parts, PLACEMENT_COLUMNS).select(list(PLACEMENT_COLUMNS))
