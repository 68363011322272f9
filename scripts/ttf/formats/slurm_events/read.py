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
from ttf.engine.errors import StudyError
from ttf.formats.protocol import Reading
from ttf.formats.sacct.lines import BAR, rows_as_lines
from ttf.raw.headers import BYTE_ORDER_MARK, names_of
from ttf.raw.raw_tables import Reader, TableSchema, raw_lines, read_table

COMMAND = "sacctmgr -P show event All_Time Event=Node format=Cluster,NodeName,Start,End,State,StateRaw,Reason,User"
# As many bytes as a reason has at most.
MOST_BARS = 255
FREE_TEXT, NAMES_OF_NODES = "Reason", ("NodeName", "Cluster Nodes")


def read_events(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (rows kept, rows put aside) as read_table does.

    Raises StudyError for a dump whose cells are cut, or that names no nodes at all, and as read_table.
    """
    yield from read_table(path, schema, _blocks(path, {column.name for column in schema.columns} - {FREE_TEXT}))


def _blocks(path: Path, read: set[str]) -> Iterator[bytes]:
    """The blocks of rows_as_lines, with a Reason that holds the delimiter made one cell."""
    names = None
    for block in rows_as_lines(path, read):
        names = names or _names(path, block.partition(b"\n")[0])
        lines = block.split(b"\n") if FREE_TEXT in names else []
        for number, line in enumerate(lines):
            if len(names) <= line.count(b"|") < len(names) + MOST_BARS:
                cells = line.split(b"|")
                first = names.index(FREE_TEXT)
                after = first + 1 + len(cells) - len(names)
                lines[number] = b"|".join((*cells[:first], BAR.join(cells[first:after]), *cells[after:]))
        yield b"\n".join(lines) or block


def _names(path: Path, header: bytes) -> list[str]:
    names = names_of(header.removeprefix(BYTE_ORDER_MARK), "|")
    if len(names) == 1 and "TimeStart" in names[0]:
        raise StudyError(
            f"{path}: line 1: the columns have a fixed width, so that sacctmgr cut long cells (a + at their end): "
            f"print the dump with -P, as in {COMMAND}"
        )
    if "TimeStart" in names and not set(NAMES_OF_NODES) & set(names):
        raise StudyError(
            f"{path}: line 1: the header row has neither {' nor '.join(NAMES_OF_NODES)}, so that no event names its "
            f"node: print the dump with {COMMAND}"
        )
    return names


READERS = {"node_event": Reader(read_events, raw_lines)}
READING = Reading(READERS)
