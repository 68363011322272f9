"""Reading a dump of `sacct`: a table of lines, some of whose cells are checked by rules of Slurm's own.

And the states: what each means for the job, and for the one run that a record of it tells of.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from ttf.formats.format_declaration import declared, outcomes_of
from ttf.formats.protocol import Reading
from ttf.formats.sacct.hostlist import is_no_hostlist
from ttf.formats.sacct.lines import rows_as_lines
from ttf.formats.sacct.tres import has_unreadable, mebibytes
from ttf.formats.slurm_events import read as slurm_events
from ttf.raw.raw_tables import Reader, TableSchema, raw_lines, read_table, with_more_rules

OUTCOMES = outcomes_of("sacct")
# A run that the scheduler ended for reasons of its own: it neither failed nor finished.
OUTCOMES_OF_A_RUN = OUTCOMES | {"PREEMPTED": "cancelled", "REQUEUED": "cancelled"}
# After these, the next record of the same id is the same job.
CONTINUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "RESIZING")
# Hardware or system software ended the run.
INFRASTRUCTURE = declared("sacct")["infra_failures"]["states"]
# States in which a job that never got a node may have ended, with one time for start and end.
ENDED_UNSTARTED = ("CANCELLED", "REVOKED", "DEADLINE")


def state_word(state: pl.Expr) -> pl.Expr:
    """`CANCELLED` of `CANCELLED by 1000`."""
    return state.str.strip_chars().str.extract(r"^(\S+)")


def cancelled_by(state: pl.Expr) -> pl.Expr:
    """The numeric user id after `CANCELLED by`, blank where there is none."""
    return state.str.extract(r"^\s*CANCELLED\s+by\s+(\d+)").cast(pl.Int64, strict=False)


def read_records(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (rows kept, rows put aside) as read_table does, with rules of Slurm's own.

    The first word of a state is one of Slurm's; resources, memory and lists of nodes can be read.
    """
    names = {column.as_: column.name for column in schema.columns}
    is_state = state_word(pl.col("state_raw")).is_in(list(OUTCOMES))
    unreadable = {
        "mem": pl.col("mem").is_not_null() & mebibytes(pl.col("mem")).is_null(),
        "tres_requested": pl.col("tres_requested").map_batches(has_unreadable, pl.Boolean),
        "tres_allocated": pl.col("tres_allocated").map_batches(has_unreadable, pl.Boolean),
        "node_list": pl.col("node_list").map_batches(is_no_hostlist, pl.Boolean),
    }
    rules = [("unknown_value", names["state_raw"], ~is_state.fill_null(False))]
    rules += [("wrong_form", names[column], condition) for column, condition in unreadable.items()]
    return with_more_rules(read_table(path, schema, rows_as_lines(path, words_read(schema))), path, schema, rules)


def words_read(schema: TableSchema) -> set[str]:
    """The files' words for the columns that are read."""
    return {word for column in schema.columns if column.is_read for word in (column.name, *column.also)}


READERS = {"record": Reader(read_records, raw_lines)} | slurm_events.READERS
READING = Reading(READERS)
