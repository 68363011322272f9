r"""Repair the lines of a dump of Slurm's commands, which print free text (job name, comment, reason) without escapes.

- A line break in a cell splits its row: the parts are joined, and the cell has `\n` in place of the break.
- `--delimiter='|#'` distinguishes a `|` in a cell from a delimiter: the former becomes `¦`, the latter `|`.
- Bytes that are no UTF-8 are replaced in columns that are not read.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from ttf.raw.headers import has_marked_names, parse_header
from ttf.raw.raw_files import read_line_blocks
from ttf.raw.raw_tables import is_utf8

# Replaces `|`, the delimiter, in a cell.
BAR = "¦".encode()
BREAK = rb"\n"


def read_rows_as_lines(path: Path, read_columns: Collection[str]) -> Iterator[bytes]:
    """Yield the blocks of read_line_blocks, the header row first, with one line per row and `|` between cells.

    read_columns: the names of the columns that are read. Each line that was joined to another leaves a blank line, so
    that line numbers do not change. Other damage stays. Raises StudyError as read_line_blocks does.
    """
    names, is_marked = None, False
    for block in read_line_blocks(path):
        if names is None:
            header = block.partition(b"\n")[0]
            names, is_marked = parse_header(header, "|"), has_marked_names(header)
        if is_marked:
            block = block.replace(b"|#", b"\x1f").replace(b"|", BAR).replace(b"\x1f", b"|")
        if block.count(b"|") != block.count(b"\n") * (len(names) - 1):
            block = join_lines(block, len(names))
        yield block if is_utf8(block) else _replace_invalid_bytes(block, names, read_columns)


def join_lines(block: bytes, fields: int) -> bytes:
    """Join lines with too few fields to the following lines if together they form exactly one row."""
    lines, index = block.split(b"\n")[:-1], 0
    while index < len(lines):
        separators, stop = lines[index].count(b"|"), index + 1
        while stop < len(lines) and 0 < separators < fields - 1 and separators + lines[stop].count(b"|") < fields:
            separators, stop = separators + lines[stop].count(b"|"), stop + 1
        if stop > index + 1 and separators == fields - 1:
            row = BREAK.join(lines[index:stop])
            lines[index:stop] = [row, *(b"" for _ in range(stop - index - 1))]
            index = stop
        else:
            index += 1
    return b"\n".join(lines) + b"\n"


def _replace_invalid_bytes(block: bytes, names: list[str], read_columns: Collection[str]) -> bytes:
    """Replace bytes that are no UTF-8 in columns that are not read."""
    lines = block.split(b"\n")
    for number, line in enumerate(lines):
        cells = line.split(b"|") if not is_utf8(line) else []
        if len(cells) == len(names):
            cells = [
                cell if name in read_columns else cell.decode(errors="replace").encode()
                for name, cell in zip(names, cells, strict=True)
            ]
            lines[number] = b"|".join(cells)
    return b"\n".join(lines)
