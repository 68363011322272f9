"""Reading a dump of `sacct`: a table of lines whose State and JobIDRaw are checked by rules of their own.

And the states: what each means for the job, and for the one run that a record of it tells of.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from ttf.formats.declared import declared, outcomes_of
from ttf.formats.protocol import Reading
from ttf.formats.sacct.lines import rows_as_lines
from ttf.formats.slurm_events import read as slurm_events
from ttf.raw_tables import Reader, TableSchema, read_table, texts_of_lines, with_one_more_rule

OUTCOMES = outcomes_of("sacct")
# A run that the scheduler ended for reasons of its own: it neither failed nor finished.
OUTCOMES_OF_A_RUN = OUTCOMES | {"PREEMPTED": "cancelled", "REQUEUED": "cancelled"}
# After these, the next record of the same id is the same job.
CONTINUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "RESIZING")
# Hardware or system software ended the run.
INFRASTRUCTURE = declared("sacct")["infra_failures"]["states"]
# States in which a job that never got a node may have ended, with one time for start and end.
ENDED_UNSTARTED = ("CANCELLED", "REVOKED", "DEADLINE")
# 123, 123_4, 123_[5-9%2], 123+0, and the same of a step: 123.batch. `@` is kept for ids that were used twice.
_ID = r"^\d+(_(\d+|\[[\d,:%.\-]*\]?))?(\+\d+)?(\.[^@]*)?$"


def state_word(state: pl.Expr) -> pl.Expr:
    """`CANCELLED` of `CANCELLED by 1000`."""
    return state.str.strip_chars().str.extract(r"^(\S+)")


def cancelled_by(state: pl.Expr) -> pl.Expr:
    """The numeric user id after `CANCELLED by`, blank where there is none."""
    return state.str.extract(r"^\s*CANCELLED\s+by\s+(\d+)").cast(pl.Int64, strict=False)


def read_records(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (rows kept, rows put aside) as read_table does, with two more rules.

    A row whose state's first word is none of Slurm's, or whose id is none, is put aside as `unknown_value`.
    """
    names = {column.as_: column.name for column in schema.columns}
    unknown = (
        pl.when(~state_word(pl.col("state_raw")).is_in(list(OUTCOMES)))
        .then(pl.lit(names["state_raw"]))
        .when(~pl.col("job_id_raw").str.contains(_ID))
        .then(pl.lit(names["job_id_raw"]))
    )
    rows = read_table(path, schema, rows_as_lines(path, words_read(schema)))
    return with_one_more_rule(rows, path, schema, unknown, "unknown_value")


def words_read(schema: TableSchema) -> set[str]:
    """The files' words for the columns that are read."""
    return {word for column in schema.columns if column.is_read for word in (column.name, *column.also)}


READERS = {"record": Reader(read_records, texts_of_lines)} | slurm_events.READERS
READING = Reading(READERS)
