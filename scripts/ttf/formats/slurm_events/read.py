"""Read a dump of `sacctmgr show event`: node events, cluster events, or both in one file.

Verified on Slurm 22.05 and in the source of 26.11:
- The headers are TimeStart, TimeEnd and `Cluster Nodes`; other columns have the names of their fields.
- Reason is free text, cut after 255 bytes, even within a character. A `|` in it is not escaped.
- `-p` ends every line with `|`, the header too. Without -p or -P columns have a fixed width and cells are cut.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from ttf.engine.errors import StudyError
from ttf.formats.protocol import Reading
from ttf.formats.sacct.lines import BAR, read_rows_as_lines
from ttf.raw.headers import BYTE_ORDER_MARK, parse_header
from ttf.raw.raw_tables import Reader, TableSchema, raw_lines, read_raw_table

COMMAND = "sacctmgr -P show event All_Time Event=Node format=Cluster,NodeName,Start,End,State,StateRaw,Reason,User"
# A reason has at most 255 bytes.
MAX_REASON_BARS = 255
REASON, NODE_COLUMNS = "Reason", ("NodeName", "Cluster Nodes")


def read_events(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (accepted rows, quarantined rows) as read_raw_table does.

    Raises StudyError as read_raw_table does, and for a dump with cut cells or without names of nodes.
    """
    yield from read_raw_table(path, schema, _join_reasons(path, {column.name for column in schema.columns} - {REASON}))


def _join_reasons(path: Path, columns: set[str]) -> Iterator[bytes]:
    """Yield the blocks of read_rows_as_lines; a Reason that holds the delimiter becomes one cell."""
    names = None
    for block in read_rows_as_lines(path, columns):
        names = names or _parse_header(path, block.partition(b"\n")[0])
        lines = block.split(b"\n") if REASON in names else []
        for index, line in enumerate(lines):
            if len(names) <= line.count(b"|") < len(names) + MAX_REASON_BARS:
                cells = line.split(b"|")
                first = names.index(REASON)
                stop = first + 1 + len(cells) - len(names)
                lines[index] = b"|".join((*cells[:first], BAR.join(cells[first:stop]), *cells[stop:]))
        yield b"\n".join(lines) or block


def _parse_header(path: Path, header: bytes) -> list[str]:
    names = parse_header(header.removeprefix(BYTE_ORDER_MARK), "|")
    if len(names) == 1 and "TimeStart" in names[0]:
        raise StudyError(
            f"{path}: line 1: the columns have a fixed width, so sacctmgr cut long cells (a + at their end): "
            f"print the dump with -P, as in {COMMAND}"
        )
    if "TimeStart" in names and not set(NODE_COLUMNS) & set(names):
        raise StudyError(
            f"{path}: line 1: the header row has neither {' nor '.join(NODE_COLUMNS)}, so no event names its "
            f"node: print the dump with {COMMAND}"
        )
    return names


READERS = {"node_event": Reader(read_events, raw_lines)}
READING = Reading(READERS)
