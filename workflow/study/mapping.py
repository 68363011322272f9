"""What the schema cannot say of a column mapping: keys that need or exclude each other, words that stand twice."""

import difflib
from collections.abc import Iterator
from zoneinfo import available_timezones

TIMES = ("submit", "start", "end")
# The formats whose columns a mapping names, with the keys that each must have.
MAPPED = {"table": ("job_id", "status"), "outages": ("unit",)}
_OF_OUTAGES = ("unit", "duration", "level", "class", "cause", "planned", "group", "rack", "node", "kind")
_OF_BOTH = ("start", "end")


def mapping_problems(entry: dict) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path within the entry, what is wrong) of an entry of a format of MAPPED.

    What the schema refuses anyway (a wrong type, a missing key) is passed over.
    """
    mapping = _mapping(entry.get("mapping"))
    columns = {key: _column(part) for key, part in mapping.items()}
    columns = {key: column for key, column in columns.items() if column}
    if mapping:
        yield from _keys(mapping, entry)
        yield from _run_time(mapping, entry)
    if any(key in mapping for key in TIMES) and "times" not in entry:
        text = "is missing; say how the times are written, for example "
        yield ("times",), text + '{format: "%Y-%m-%d %H:%M:%S", zone: America/Denver}.'
    yield from _columns(columns)
    yield from _words(entry)


def zone_problems(entry: dict) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path within the entry, what is wrong) of `times`: of the format sacct they have a zone and nothing else."""
    times = _mapping(entry.get("times"))
    is_table = entry.get("format") in MAPPED
    if "times" in entry and is_table and "format" not in times:
        yield ("times", "format"), "is missing; expected text, for example '%Y-%m-%d %H:%M:%S'."
    for key in () if is_table else ("format", "zero_is_blank"):
        if key in times:
            text = "works with the formats table and outages only; sacct writes its times in two ways, both known."
            yield ("times", key), text
    zone, zones = times.get("zone"), available_timezones()
    if isinstance(zone, str) and zone and zones and zone not in zones:
        near = difflib.get_close_matches(zone, zones, n=1)
        text = f"there is no time zone {zone!r}{f'; did you mean {near[0]}?' if near else '.'}"
        yield ("times", "zone"), f"{text} Expected a name of the IANA time zone database, as in America/Denver."


def mapped_columns(mapping: dict) -> list[str]:
    """Their names of the columns that are mapped: all of them must be in the table."""
    return [column for part in mapping.values() if (column := _column(part))]


def _keys(mapping: dict, entry: dict) -> Iterator[tuple[tuple[str, ...], str]]:
    """What a row must say, and what it cannot: those of the one format are jobs, of the other outages."""
    format = entry.get("format")
    for key in mapping:
        other = "outages" if key in _OF_OUTAGES else "table"
        if format in MAPPED and key not in _OF_BOTH and format != other:
            yield ("mapping", key), f"works with the format {other} only, and the format here is {format}."
    for key in MAPPED.get(format, ()):
        if key not in mapping:
            yield ("mapping", key), "is missing; expected a column's name on one line, for example their_name."


def _run_time(mapping: dict, entry: dict) -> Iterator[tuple[tuple[str, ...], str]]:
    """A run time comes from start and end, or from a column of its own; how long an outage lasted may be unknown."""
    if entry.get("format") == "outages":
        if "end" in mapping and "duration" in mapping:
            yield ("mapping",), "has both end and duration; an outage would have two ends. Keep one."
    elif "end" in mapping and "runtime" in mapping:
        yield ("mapping",), "has both end and runtime; the run time would have two sources. Keep one."
    elif "end" not in mapping and "runtime" not in mapping:
        yield ("mapping",), "has neither end nor runtime; map one of them, for example end: end_time."


def _columns(columns: dict[str, str]) -> Iterator[tuple[tuple[str, ...], str]]:
    first: dict[str, str] = {}
    for key, column in columns.items():
        if column in first:
            yield ("mapping", key), f"the column {column!r} is mapped twice, to {first[column]} too; keep one of them."
        if column == "line":
            yield ("mapping", key), "a column called line cannot be mapped (it is the line number); rename it."
        first.setdefault(column, key)


def _words(entry: dict) -> Iterator[tuple[tuple[str, ...], str]]:
    """A status word says one outcome, and can occur."""
    status = _mapping(_mapping(entry.get("mapping")).get("status"))
    blank = {word.strip() for word in _texts(entry.get("blank"))}
    outcomes = entry.get("outcomes")
    first: dict[str, str] = {}
    for outcome, words in _mapping(outcomes).items():
        for word in _texts(words):
            where = ("outcomes", outcome)
            if first.setdefault(word, outcome) != outcome:
                yield where, f"the word {word!r} stands under {first[word]} too; a status has one outcome."
            if word.strip() in blank:
                yield where, f"the word {word!r} stands under blank too, where it means no value; keep one of them."
            if word != word.strip():
                yield where, f"the word {word!r} has blanks around it; a status is read without them."
            elif status.get("first_word") is True and len(word.split()) > 1:
                yield where, f"{word!r} is more than a word, and first_word is on; only the first word is compared."
    if isinstance(outcomes, dict) and not outcomes:
        yield ("outcomes",), "names no outcome; list the status words, for example {failure: [FAILED, TIMEOUT]}."


def _mapping(value: object) -> dict:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def _column(part: object) -> str | None:
    name = part.get("column") if isinstance(part, dict) else part
    return name if isinstance(name, str) else None
