"""The lines of a dump of Slurm's commands, which print free text (a job's name, a comment, a reason) as it is.

- A line break in a cell breaks its row: the parts are joined, with `\\n` in the cell where the break was.
- `--delimiter='|#'` keeps a `|` in a cell apart from those between cells: the first becomes `¦`, the second `|`.
- Bytes that are no UTF-8 matter only in columns that are read: in others they are replaced.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from ttf.raw.headers import has_marked_names, names_of
from ttf.raw.raw_files import blocks_of_lines
from ttf.raw.raw_tables import is_utf8

# Stands in a cell for `|`, which is the delimiter.
BAR = "¦".encode()
BREAK = rb"\n"


def rows_as_lines(path: Path, read: Collection[str]) -> Iterator[bytes]:
    """The blocks of blocks_of_lines, the header row first, with a line for each row and `|` between cells.

    read: the names of the columns that are read. A line after one that was joined to another is blank, so that each row
    has the number of its first line. What cannot be mended stays as it is. Raises StudyError as blocks_of_lines does.
    """
    names, is_marked = None, False
    for block in blocks_of_lines(path):
        if names is None:
            header = block.partition(b"\n")[0]
            names, is_marked = names_of(header, "|"), has_marked_names(header)
        if is_marked:
            block = block.replace(b"|#", b"\x1f").replace(b"|", BAR).replace(b"\x1f", b"|")
        if block.count(b"|") != block.count(b"\n") * (len(names) - 1):
            block = joined(block, len(names))
        yield block if is_utf8(block) else _readable(block, names, read)


def joined(block: bytes, fields: int) -> bytes:
    """The block with lines that have too few fields joined to those after them, where that gives just one row."""
    lines, start = block.split(b"\n")[:-1], 0
    while start < len(lines):
        separators, stop = lines[start].count(b"|"), start + 1
        while stop < len(lines) and 0 < separators < fields - 1 and separators + lines[stop].count(b"|") < fields:
            separators, stop = separators + lines[stop].count(b"|"), stop + 1
        if stop > start + 1 and separators == fields - 1:
            row = BREAK.join(lines[start:stop])
            lines[start:stop] = [row, *(b"" for _ in range(stop - start - 1))]
            start = stop
        else:
            start += 1
    return b"\n".join(lines) + b"\n"


def _readable(block: bytes, names: list[str], read: Collection[str]) -> bytes:
    """The block with what is no UTF-8 replaced in columns that are not read."""
    lines = block.split(b"\n")
    for number, line in enumerate(lines):
        cells = line.split(b"|") if not is_utf8(line) else []
        if len(cells) == len(names):
            cells = [
                cell if name in read else cell.decode(errors="replace").encode()
                for name, cell in zip(names, cells, strict=True)
            ]
            lines[number] = b"|".join(cells)
    return b"\n".join(lines)
