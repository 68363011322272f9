"""Read raw tables of JSON objects, record by record, so that a message can name a wrong record.

The number of a record, from 1, takes the place of a line number.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from ttf.engine.errors import StudyError
from ttf.raw.headers import BYTE_ORDER_MARK
from ttf.raw.raw_files import FETCH_AGAIN, check_is_table, read_unpacked
from ttf.raw.raw_tables import MAX_TEXT_SHOWN, TableSchema, escape_text

# Thirty times the largest published table. The text is held in memory.
MAX_BYTES = 1 << 30
# Eight times the number in the largest published table.
MAX_RECORDS = 1_000_000
_SPACE = re.compile(r"[ \t\n\r]+")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')
_IN_LIST = 1 << 20
_LIST = re.compile(r'"([^"\\]+)"\s*:\s*\[\s*\{')
# The list of records begins within so many characters of its object.
_MAX_PREFIX = 1 << 20


def read_whole(path: Path) -> bytes:
    """Return the unpacked bytes of the file without a byte order mark. Raises StudyError if there are far too many."""
    pieces, size = [], 0
    for chunk in read_unpacked(path, size=1 << 23):
        pieces.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            raise StudyError(f"{path}: more than {MAX_BYTES:,} bytes: not the table expected. {FETCH_AGAIN}")
    text = b"".join(pieces).removeprefix(BYTE_ORDER_MARK)
    check_is_table(path, text[:4096])
    return text


def read_records(
    path: Path, text: str, convert_number: Callable[[str], Any] = lambda _: 0
) -> Iterator[tuple[object, int, int]]:
    """Yield (record, index of its first character, index after its last) for each record of the array.

    convert_number: converts the text of a number, which may have a million digits.
    Raises StudyError if the text is no JSON array, or is truncated.
    """
    decoder = json.JSONDecoder(parse_int=convert_number, parse_float=convert_number, parse_constant=_refuse_constant)
    count, position = 0, _skip_space(text, 0)
    if text[position : position + 1] != "[":
        raise StudyError(
            f"{path}: line {_line_number(text, position)}: expected one JSON array of objects, from [ to ], "
            f"found {escape_text(text[position : position + 60])!r}. {FETCH_AGAIN}"
        )
    position = _skip_space(text, position + 1)
    next_character = text[position : position + 1]
    while next_character != "]":
        count += 1
        if count > MAX_RECORDS:
            raise StudyError(f"{path}: more than {MAX_RECORDS:,} records: not the table expected. {FETCH_AGAIN}")
        try:
            record, end = decoder.raw_decode(text, position)
        except RecursionError:
            raise StudyError(
                f"{path}: line {_line_number(text, position)}: record {count} of the array is nested too deeply. "
                f"{FETCH_AGAIN}"
            ) from None
        except ValueError as error:
            raise _invalid_record_error(path, count, text, error) from None
        yield record, position, end
        position = _skip_space(text, end)
        next_character = text[position : position + 1]
        if next_character == ",":
            position = _skip_space(text, position + 1)
        elif next_character != "]":
            raise _invalid_record_error(path, count, text, json.JSONDecodeError("Expecting ',' or ']'", text, position))
    if (rest := _skip_space(text, position + 1)) != len(text):
        raise StudyError(
            f"{path}: line {_line_number(text, rest)}: the array ends before this line; found "
            f"{escape_text(text[rest : rest + 60])!r}. Keep one array in the file."
        )


def read_record_texts(path: Path, _: TableSchema, numbers: set[int]) -> dict[int, str]:
    """Map each of these record numbers to the text that the quarantine shows: Reader.texts of a JSON table."""
    text = read_whole(path).decode("utf-8", errors="surrogateescape")
    return {
        number: record_start(text, start, end)
        for number, (_, start, end) in enumerate(read_records(path, text), start=1)
        if number in numbers
    }


def record_start(text: str, start: int, end: int) -> str:
    """Return the start of a record as the quarantine shows it."""
    start_text = text[start : min(end, start + MAX_TEXT_SHOWN)]
    return start_text.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace")[:MAX_TEXT_SHOWN]


def _skip_space(text: str, position: int) -> int:
    return match.end() if (match := _SPACE.match(text, position)) else position


def _line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _invalid_record_error(path: Path, number: int, text: str, error: Exception) -> StudyError:
    position, problem = getattr(error, "pos", 0), getattr(error, "msg", str(error))
    is_cut = _skip_space(text, position) == len(text) or problem.startswith("Unterminated string")
    return StudyError(
        f"{path}: line {_line_number(text, position)}: record {number} of the array is "
        f"{'cut short' if is_cut else 'no valid JSON'} ({problem}). {FETCH_AGAIN}"
    )


def read_nested_records(path: Path, text: str, key: str) -> Iterator[object]:
    """Yield the records of a JSON text; numbers stay texts.

    They are the items of an array, or of the array `key` of an object, or the values of an object if `key` is `*` (each
    with its own `key`), or the objects of the text. `key` may be several, as in a|b. Several such texts may follow each
    other, as pages of an answer do.
    Raises StudyError if the text is no JSON or is cut short.
    """
    decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=lambda _: None)
    array = re.compile(rf'"(?:{"|".join(map(re.escape, key.split("|")))})"\s*:\s*\[')
    position = count = 0

    def decode_next() -> Any:
        nonlocal position, count
        count += 1
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise _invalid_record_error(path, count, text, error) from None
        position = _skip_space(text, position)
        return value

    while (position := _skip_space(text, position)) < len(text):
        match = array.search(text, position, position + _MAX_PREFIX) if text[position] == "{" else None
        depth = _find_depth(text, position, match.start())[0] if match else 0
        is_nested = 0 < depth < _IN_LIST
        if is_nested or text[position] == "[":
            position = _skip_space(text, match.end() if match and is_nested else position + 1)
            while text[position : position + 1] != "]":
                yield decode_next()
                position = _skip_space(text, position + (text[position : position + 1] == ","))
            position += 1
        else:
            value = decode_next()
            is_map = (
                "*" in key.split("|") and isinstance(value, dict) and all(isinstance(v, dict) for v in value.values())
            )
            yield from ({"key": name} | item for name, item in value.items()) if is_map else [value]
        if is_nested:
            depth, position = _find_depth(text, position, len(text), depth)
            if depth:
                raise _invalid_record_error(path, count, text, json.JSONDecodeError("Expecting '}'", text, position))


def find_list_key(text: str) -> str:
    """Return the key of the first list of objects in the only object of a text; empty if there is none."""
    start = _skip_space(text, 0)
    is_object = text[start : start + 1] == "{" and not _find_depth(text, start, len(text))[1] < len(text.rstrip())
    for match in _LIST.finditer(text, 0, _MAX_PREFIX) if is_object else ():
        if 0 < _find_depth(text, 0, match.start())[0] < _IN_LIST:
            return match[1]
    return ""


def _find_depth(text: str, start: int, end: int, depth: int = 0) -> tuple[int, int]:
    """Return the open brackets at `end`, or at the first character after `start` where none is open.

    Each { counts 1, each [ counts _IN_LIST.
    """
    for token in _JSON_TOKEN.finditer(text, start, end):
        depth += {"{": 1, "[": _IN_LIST, "}": -1, "]": -_IN_LIST}.get(token[0], 0)
        if depth == 0:
            return 0, token.end()
    return depth, end
