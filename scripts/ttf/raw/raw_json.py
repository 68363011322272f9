"""Raw tables that are one array of objects in JSON: read record by record, so that a message can name the one amiss.

A record's number, from 1, stands where the line of a table of lines does.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from ttf.engine.errors import StudyError
from ttf.raw.headers import BYTE_ORDER_MARK
from ttf.raw.raw_files import is_a_table, unpacked
from ttf.raw.raw_tables import LONGEST_TEXT_SHOWN, TableSchema, printable

# Thirty times the largest published one. It is held in memory whole.
LARGEST_BYTES = 1 << 30
# Eight times as many as the largest has.
MOST_RECORDS = 1_000_000
_SPACE = re.compile(r"[ \t\n\r]*")
_FETCH_AGAIN = "Fetch the file again; compare its size or checksum with the publisher's."


def whole(path: Path) -> bytes:
    """The file's bytes, unpacked, without a byte order mark. Raises StudyError for one that is far too long."""
    pieces, size = [], 0
    for chunk in unpacked(path, size=1 << 23):
        pieces.append(chunk)
        size += len(chunk)
        if size > LARGEST_BYTES:
            raise StudyError(f"{path}: more than {LARGEST_BYTES:,} bytes: not the table expected. {_FETCH_AGAIN}")
    text = b"".join(pieces).removeprefix(BYTE_ORDER_MARK)
    is_a_table(path, text[:4096])
    return text


def records_in(path: Path, text: str, number: Callable[[str], Any] = lambda _: 0) -> Iterator[tuple[object, int, int]]:
    """(record, its first character, the one after its last) of each record of the array.

    number: what is made of the text of a number, which may have a million digits.
    Raises StudyError where the text is no JSON array, or is cut short.
    """
    decoder = json.JSONDecoder(parse_int=number, parse_float=number, parse_constant=_no_json)
    count, position = 0, _skip(text, 0)
    if text[position : position + 1] != "[":
        start = text[position : position + 60]
        raise StudyError(
            f"{path}: line {_line(text, position)}: expected one JSON array of objects, from [ to ], "
            f"found {printable(start)!r}. {_FETCH_AGAIN}"
        )
    position = _skip(text, position + 1)
    mark = text[position : position + 1]
    while mark != "]":
        count += 1
        if count > MOST_RECORDS:
            raise StudyError(f"{path}: more than {MOST_RECORDS:,} records: not the table expected. {_FETCH_AGAIN}")
        try:
            record, end = decoder.raw_decode(text, position)
        except RecursionError:
            raise StudyError(
                f"{path}: line {_line(text, position)}: record {count} of the array is nested far deeper than a record "
                f"can be. {_FETCH_AGAIN}"
            ) from None
        except ValueError as error:
            raise StudyError(_no_record(path, count, text, error)) from None
        yield record, position, end
        position = _skip(text, end)
        mark = text[position : position + 1]
        if mark == ",":
            position = _skip(text, position + 1)
        elif mark != "]":
            raise StudyError(
                _no_record(path, count, text, json.JSONDecodeError("Expecting ',' or ']'", text, position))
            )
    if (rest := _skip(text, position + 1)) != len(text):
        raise StudyError(
            f"{path}: line {_line(text, rest)}: the array ends before this line; found "
            f"{printable(text[rest : rest + 60])!r}. Keep one array in the file."
        )


def texts_of_records(path: Path, _: TableSchema, numbers: set[int]) -> dict[int, str]:
    """The text of the records with these numbers, as the quarantine keeps it."""
    text = whole(path).decode("utf-8", errors="surrogateescape")
    return {
        number: shown(text, start, end)
        for number, (_, start, end) in enumerate(records_in(path, text), start=1)
        if number in numbers
    }


def shown(text: str, start: int, end: int) -> str:
    """The start of a record as the quarantine keeps it."""
    piece = text[start : min(end, start + LONGEST_TEXT_SHOWN)]
    return piece.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace")[:LONGEST_TEXT_SHOWN]


def _skip(text: str, position: int) -> int:
    return _SPACE.match(text, position).end()


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _no_record(path: Path, number: int, text: str, error: ValueError) -> str:
    """What to say of the place where the text is no JSON any more."""
    position, problem = getattr(error, "pos", 0), getattr(error, "msg", str(error))
    is_cut = _skip(text, position) == len(text) or problem.startswith("Unterminated string")
    return (
        f"{path}: line {_line(text, position)}: record {number} of the array is "
        f"{'cut short' if is_cut else 'no valid JSON'} ({problem}). {_FETCH_AGAIN}"
    )
