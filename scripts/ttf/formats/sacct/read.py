"""Read a dump of `sacct`, a table of lines with additional rules for Slurm's cells.

The module also defines the outcome of each state, for the job and for the run of one record.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import polars as pl
from ttf.formats.format_declaration import load_declaration, load_outcomes
from ttf.formats.protocol import Reading
from ttf.formats.sacct.hostlist import has_invalid_hostlist
from ttf.formats.sacct.lines import read_rows_as_lines
from ttf.formats.sacct.tres import is_unreadable_tres, parse_mib
from ttf.formats.slurm_events import read as slurm_events
from ttf.raw.raw_tables import Reader, TableSchema, apply_rules, raw_lines, read_raw_table
from ttf.raw.record_files import read_record_rows, read_record_texts

OUTCOMES = load_outcomes("sacct")
# The scheduler ended the run: it neither failed nor finished.
RUN_OUTCOMES = {"REQUEUED": "cancelled"}
# After these states, the next record of the same id belongs to the same job.
CONTINUED_STATES = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "RESIZING")
# Hardware or system software ended the run.
INFRASTRUCTURE_STATES = load_declaration("sacct")["infra_failures"]["states"]
# End states of a job that may never have got a node, with the same time for start and end.
UNSTARTED_END_STATES = ("CANCELLED", "REVOKED", "DEADLINE")


def first_state_word(state: pl.Expr) -> pl.Expr:
    """Extract `CANCELLED` from `CANCELLED by 1000`."""
    return state.str.strip_chars().str.extract(r"^(\S+)")


def cancelled_by(state: pl.Expr) -> pl.Expr:
    """Extract the numeric user id after `CANCELLED by`; blank if there is none."""
    return state.str.extract(r"^\s*CANCELLED\s+by\s+(\d+)").cast(pl.Int64, strict=False)


def read_records(
    path: Path, schema: TableSchema, records: Mapping | None = None
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (accepted rows, quarantined rows) as read_raw_table does, with additional rules.

    records: how a file becomes such a dump, if it is none.

    The first word of a state must be one of Slurm's; resources, memory and lists of nodes must be readable.
    """
    names = {column.as_: column.name for column in schema.columns}
    is_state = first_state_word(pl.col("state_raw")).is_in(list(OUTCOMES))
    unreadable = {
        "mem": pl.col("mem").is_not_null() & parse_mib(pl.col("mem")).is_null(),
        "tres_requested": pl.col("tres_requested").map_batches(is_unreadable_tres, pl.Boolean),
        "tres_allocated": pl.col("tres_allocated").map_batches(is_unreadable_tres, pl.Boolean),
        "node_list": pl.col("node_list").map_batches(has_invalid_hostlist, pl.Boolean),
    }
    rules = [("unknown_value", names["state_raw"], ~is_state.fill_null(False))]
    rules += [("wrong_form", names[column], condition) for column, condition in unreadable.items()]
    if records:
        texts = partial(read_record_texts, records=records)
        return apply_rules(read_record_rows(path, schema, records), path, schema, rules, texts)
    read_columns = {word for column in schema.columns if column.is_read for word in (column.name, *column.also)}
    return apply_rules(read_raw_table(path, schema, read_rows_as_lines(path, read_columns)), path, schema, rules)


READERS = {"record": Reader(read_records, raw_lines)} | slurm_events.READERS


def build_readers(entry: Mapping) -> Mapping[str, Reader]:
    """Return the readers; a file that is no dump is read as the `records` of the entry say."""
    options = {"records": entry["records"]} if "records" in entry else {}
    reader = Reader(partial(read_records, **options), partial(read_record_texts, **options))
    return READERS | ({"record": reader} if options else {})


READING = Reading(READERS, build_readers=build_readers)
