"""Placements: one part of an attempt on one machine, in parallel with the others."""

import polars as pl

# gpu_milli: of this part. outcome: of this part where the format tells it, else of the attempt. nodes: how many
# machines the attempt spans. infra_failure: blank where the format cannot tell what, or on which machine, it was.
# own_outcome: the outcome is that of this part, as it also is of the only one. attempt_id: the place of the attempt in
# attempts.parquet, from 0 on, or of the job in jobs.parquet where the format tells no attempts apart; never blank.
PLACEMENT_COLUMNS = {
    "job_id": pl.String,
    "task": pl.String,
    "attempt": pl.Int64,
    "placement": pl.Int64,
    "node": pl.String,
    "start_s": pl.Int64,
    "end_s": pl.Int64,
    "runtime_s": pl.Int64,
    "gpu_milli": pl.Int64,
    "outcome": pl.String,
    "nodes": pl.Int64,
    "infra_failure": pl.Boolean,
    "own_outcome": pl.Boolean,
    "attempt_id": pl.UInt32,
}


def as_placements(parts: pl.LazyFrame) -> pl.LazyFrame:
    """The parts with PLACEMENT_COLUMNS, blank where they have none; the rows in their order.

    Where the parts do not bring them: runtime_s is end_s - start_s, blank if the end is before the start; own_outcome
    is whether the attempt is on one machine.
    """
    if "runtime_s" not in (given := parts.collect_schema().names()):
        run_s = pl.col("end_s") - pl.col("start_s")
        parts = parts.with_columns(runtime_s=pl.when(run_s >= 0).then(run_s))
        given.append("runtime_s")
    if "own_outcome" not in given:
        parts = parts.with_columns(own_outcome=(pl.col("nodes") == 1).fill_null(False))
        given.append("own_outcome")
    blanks = [pl.lit(None, dtype).alias(name) for name, dtype in PLACEMENT_COLUMNS.items() if name not in given]
    return parts.with_columns(blanks).select(pl.col(name).cast(dtype) for name, dtype in PLACEMENT_COLUMNS.items())
