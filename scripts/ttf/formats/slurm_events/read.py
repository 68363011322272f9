"""Reading a dump of `sacctmgr show event`: node events, cluster events, or both in one file.

Seen on Slurm 22.05 and in the source of 26.11:
- The headers are TimeStart, TimeEnd and `Cluster Nodes`; the others are called as their fields.
- Reason is free text of at most 255 bytes, cut there whatever stands there: `|` is not escaped in it, and its last
  character may be half of one.
- `-p` ends every line with `|`, the header too. Without -p or -P columns have a fixed width and cells are cut.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from ttf.errors import StudyError
from ttf.formats.protocol import Reading
from ttf.headers import BYTE_ORDER_MARK, names_of
from ttf.raw_files import blocks_of_lines
from ttf.raw_tables import Column, Reader, TableSchema, columns_by_header, read_block, texts_of_lines

# Stands in a Reason where `|` stood, which is no delimiter there.
BAR = "¦".encode()
COMMAND = "sacctmgr -P show event All_Time Event=Node format=Cluster,NodeName,Start,End,State,StateRaw,Reason,User"


def read_events(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (rows kept, rows put aside) as read_table does.

    Raises StudyError for a dump whose cells are cut, or that names no nodes at all, and as read_table.
    """
    columns, line = None, 1
    for block in blocks_of_lines(path):
        if columns is None:
            header, _, block = block.removeprefix(BYTE_ORDER_MARK).partition(b"\n")
            columns, line = _columns(path, header, schema), 2
        kept, aside, lines = read_block(_mended(block, columns, schema), columns, schema)
        yield kept.with_columns(pl.col("line") + line), aside.with_columns(pl.col("line") + line)
        line += lines


def _columns(path: Path, header: bytes, schema: TableSchema) -> tuple[Column, ...]:
    names = names_of(header, schema.delimiter)
    if len(names) == 1 and b"TimeStart" in header:
        raise StudyError(
            f"{path}: line 1: the columns have a fixed width, so that sacctmgr cut long cells (a + at their end): "
            f"print the dump with -P, as in {COMMAND}"
        )
    columns = columns_by_header(path, header, schema)
    if not {"node", "cluster_nodes"} & {column.as_ for column in columns}:
        raise StudyError(
            f"{path}: line 1: the header row has neither NodeName nor Cluster Nodes, so that no event names its node: "
            f"print the dump with {COMMAND}"
        )
    return columns


def _mended(block: bytes, columns: tuple[Column, ...], schema: TableSchema) -> bytes:
    """The block with a Reason that holds the delimiter, or half a character at its end, made one field of UTF-8."""
    delimiter = schema.delimiter.encode()
    place = next((place for place, column in enumerate(columns) if column.as_ == "reason"), None)
    text = block.decode("utf-8", errors="replace").encode()
    too_many = len(columns)
    if place is None or text.count(delimiter) == text.count(b"\n") * (too_many - 1):
        return text
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        fields = line.split(delimiter)
        more = len(fields) - too_many
        if more > 0:
            fields[place : place + more + 1] = [BAR.join(fields[place : place + more + 1])]
            lines[number] = delimiter.join(fields)
    return b"\n".join(lines)


READERS = {"node_event": Reader(read_events, texts_of_lines)}
READING = Reading(READERS)
