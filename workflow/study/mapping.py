"""What the schema cannot say of an entry's mapping, times, words and window: keys that need or exclude each other."""

import difflib
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import available_timezones

TIMES = ("submit", "start", "end")
# The formats whose columns a mapping names, with the keys that each must have.
MAPPED = {"table": ("job_id", "status"), "outages": ("unit",)}
_OF_OUTAGES = ("unit", "duration", "level", "class", "cause", "planned", "group", "rack", "node", "kind")
_OF_BOTH = ("start", "end")
EntryProblem = tuple[tuple[str, ...], str]


def mapping_problems(entry: dict) -> Iterator[EntryProblem]:
    """(path within the entry, what is wrong) of an entry of a format of MAPPED that keeps to the schema."""
    format, mapping = entry["format"], entry["mapping"]
    for key in mapping:
        other = "outages" if key in _OF_OUTAGES else "table"
        if key not in _OF_BOTH and format != other:
            yield ("mapping", key), f"works with the format {other} only, and the format here is {format}."
    for key in MAPPED[format]:
        if key not in mapping:
            yield ("mapping", key), "is missing; expected a column's name on one line, for example their_name."
    length, text = ("duration", "an outage") if format == "outages" else ("runtime", "a run")
    if "end" in mapping and length in mapping:
        yield ("mapping",), f"has both end and {length}; {text} would have two ends. Keep one."
    elif format == "table" and "end" not in mapping and length not in mapping:
        yield ("mapping",), "has neither end nor runtime; map one of them, for example end: end_time."
    if any(key in mapping for key in TIMES) and "times" not in entry:
        text = "is missing; say how the times are written, for example "
        yield ("times",), text + '{format: "%Y-%m-%d %H:%M:%S", zone: America/Denver}.'
    first: dict[str, str] = {}
    for key, column in zip(mapping, mapped_columns(mapping), strict=True):
        if first.setdefault(column, key) != key:
            yield ("mapping", key), f"the column {column!r} is mapped twice, to {first[column]} too; keep one of them."
        if column == "line":
            yield ("mapping", key), "a column called line cannot be mapped (it is the line number); rename it."
    yield from _words(entry)


def zone_problems(entry: dict) -> Iterator[EntryProblem]:
    """The same of `times`: of the format sacct they have a zone and nothing else."""
    times, is_table = entry.get("times", {}), entry["format"] in MAPPED
    if "times" in entry and is_table and "format" not in times:
        yield ("times", "format"), "is missing; expected text, for example '%Y-%m-%d %H:%M:%S'."
    for key in times.keys() - {"zone"} if not is_table else ():
        text = "works with the formats table and outages only; sacct writes its times in two ways, both known."
        yield ("times", key), text
    zone, zones = times.get("zone"), available_timezones()
    if zone and zones and zone not in zones:
        near = difflib.get_close_matches(zone, zones, n=1)
        text = f"there is no time zone {zone!r}{f'; did you mean {near[0]}?' if near else '.'}"
        yield ("times", "zone"), f"{text} Expected a name of the IANA time zone database, as in America/Denver."


def window_of(entry: dict) -> tuple[int, int] | None:
    """(from, to) of the entry's window in seconds since 1970, the end not in it; None where it has none."""
    window = entry.get("window")
    return (_seconds(window["from"]), _seconds(window["to"])) if window else None


def window_problems(entry: dict) -> Iterator[EntryProblem]:
    """The same of `window`: a day that no calendar has, an end before the start."""
    found = {}
    for key, moment in entry.get("window", {}).items():
        try:
            found[key] = _seconds(moment)
        except (ValueError, OverflowError):
            text = f"there is no such moment as {moment!r}; write a date and time of the calendar with its offset, "
            yield ("window", key), text + "for example '2017-10-03T00:00:00-07:00'."
    if len(found) == 2 and found["from"] >= found["to"]:
        yield ("window", "to"), "is not after from; the window would be empty."


def _seconds(moment: str | int) -> int:
    return moment if isinstance(moment, int) else int(datetime.fromisoformat(moment).timestamp())


def mapped_columns(mapping: dict) -> list[str]:
    """Their names of the columns that are mapped: all of them must be in the table."""
    return [part["column"] if isinstance(part, dict) else part for part in mapping.values()]


def _words(entry: dict) -> Iterator[EntryProblem]:
    """A status word says one outcome, and can occur."""
    status, outcomes = entry["mapping"].get("status"), entry.get("outcomes", {})
    is_first_word = isinstance(status, dict) and status.get("first_word", False)
    blank = {word.strip() for word in entry.get("blank", [])}
    first: dict[str, str] = {}
    for outcome, words in outcomes.items():
        for word in words:
            where = ("outcomes", outcome)
            if first.setdefault(word, outcome) != outcome:
                yield where, f"the word {word!r} stands under {first[word]} too; a status has one outcome."
            if word.strip() in blank:
                yield where, f"the word {word!r} stands under blank too, where it means no value; keep one of them."
            if word != word.strip():
                yield where, f"the word {word!r} has blanks around it; a status is read without them."
            elif is_first_word and len(word.split()) > 1:
                yield where, f"{word!r} is more than a word, and first_word is on; only the first word is compared."
    if "outcomes" in entry and not outcomes:
        yield ("outcomes",), "names no outcome; list the status words, for example {failure: [FAILED, TIMEOUT]}."
