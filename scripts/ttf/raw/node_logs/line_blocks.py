"""Read the lines of a log of any bytes in blocks: what cannot be read in them is removed and counted."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ttf.raw.headers import BYTE_ORDER_MARK
from ttf.raw.raw_files import read_unpacked
from ttf.raw.raw_tables import is_utf8

BLOCK_BYTES = 8 * 1024 * 1024
# No kernel writes longer lines. The limit keeps a file without line ends from filling the memory.
LONGEST_LINE_BYTES = 1 << 20
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
# Half of a pair of JSON's escapes, which is no character.
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


class Block(NamedTuple):
    """lines: their text, blank ones too. first: number of the first. faults: code -> numbers of the lines."""

    lines: pl.Series
    first: int
    faults: dict[str, list[int]]
    counts: Counter


def read_blocks(path: Path, longest: int | None = None, splits_carriage_returns: bool = False) -> Iterator[Block]:
    """Yield the lines of a log, plain or packed, without byte order mark, NULs and colours; too long lines are cut.

    longest: the longest line in bytes; default: LONGEST_LINE_BYTES. splits_carriage_returns: a carriage return ends a
    line too, as bars of progress use it.

    faults holds at most five numbers of lines with NULs (nul), with bytes or escapes that are no character
    (undecodable) and of cut lines (cut); counts holds how many there are. Raises StudyError for a damaged archive.
    """
    number = 1
    for data, cut_lines in _read_whole_lines(path, longest or LONGEST_LINE_BYTES, splits_carriage_returns):
        counts: Counter[str] = Counter()
        faults: dict[str, list[int]] = {}
        cuts = [number + line for line in cut_lines]
        data = data.removeprefix(BYTE_ORDER_MARK) if number == 1 else data
        if cuts:
            counts["cut"], faults["cut"] = len(cuts), cuts[:5]
        if b"\0" in data:
            _count_faulty_lines(data, "nul", lambda line: b"\0" in line, number, counts, faults)
            data = data.replace(b"\0", b"")
        if b"\x1b" in data:
            data = _COLOUR.sub(b"", data)
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if not _is_text(data):
            _count_faulty_lines(data, "undecodable", lambda line: not _is_text(line), number, counts, faults)
            data = _LONE_SURROGATE.sub(rb"\\ufffd", data)
        lines = pl.Series("line", [data.decode("utf-8", "replace").removesuffix("\n")]).str.split("\n").explode()
        yield Block(lines, number, faults, counts)
        number += len(lines)


def _is_text(data: bytes) -> bool:
    # A search for fixed bytes takes a tenth of the time.
    has_escape = b"\\ud" in data or b"\\uD" in data
    return is_utf8(data) and not (has_escape and _LONE_SURROGATE.search(data))


def _count_faulty_lines(
    data: bytes,
    code: str,
    has_fault: Callable[[bytes], bool],
    first: int,
    counts: Counter[str],
    faults: dict[str, list[int]],
) -> None:
    rows = [row for row, line in enumerate(data.removesuffix(b"\n").split(b"\n")) if has_fault(line)]
    counts[code], faults[code] = len(rows), [first + row for row in rows[:5]]


def _read_whole_lines(path: Path, longest: int, splits_carriage_returns: bool) -> Iterator[tuple[bytes, list[int]]]:
    """Yield (whole lines, rows of the cut ones); a line that is too long keeps its start."""
    rest, is_cut = b"", False
    pieces: list[bytes] = []
    size = 0
    for chunk in read_unpacked(path, size=min(1 << 20, BLOCK_BYTES)):
        if splits_carriage_returns and b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        pieces.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            whole, cuts, rest, is_cut = _cut_block(b"".join((rest, *pieces)), is_cut, longest)
            pieces, size = [], 0
            if whole:
                yield whole, cuts
    whole, cuts, rest, is_cut = _cut_block(b"".join((rest, *pieces)), is_cut, longest)
    if whole:
        yield whole, cuts
    if rest:
        yield rest + b"\n", [0] if is_cut else []


def _cut_block(data: bytes, is_cut: bool, longest: int) -> tuple[bytes, list[int], bytes, bool]:
    """Return (whole lines, rows of cut lines among them, the unfinished line, whether it is cut)."""
    end = data.rfind(b"\n") + 1
    whole, rest = data[:end], data[end:]
    cuts = [0] if is_cut and whole else []
    half = longest // 2
    if any(whole.find(b"\n", at, at + half) < 0 for at in range(0, len(whole) - half, half)):
        lines = whole.removesuffix(b"\n").split(b"\n")
        cuts += [row for row, line in enumerate(lines) if len(line) > longest and row not in cuts]
        whole = b"\n".join(line[:longest] for line in lines) + b"\n"
    is_cut = (is_cut and not end) or len(rest) > longest
    return whole, cuts, rest[:longest], is_cut
