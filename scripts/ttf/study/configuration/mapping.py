"""Problems of an entry's mapping, times, words and window that the schema cannot express."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import available_timezones

from ttf.study.configuration.documents import Problem, suggest_match

# The formats whose columns a mapping names, with the keys that each must have.
MAPPED_FORMATS = {"table": ("status",), "outages": ("unit", "start")}
OUTAGE_KEYS = ("unit", "duration", "level", "class", "cause", "planned", "group", "rack", "node", "kind")
_SHARED_KEYS = ("start", "end")
# Outcomes of jobs that have not ended.
UNENDED = {"running", "waiting"}
EntryProblem = tuple[tuple[str, ...], str]


def find_mapping_problems(entry: dict) -> Iterator[EntryProblem]:
    """Yield (path within the entry, message) for an entry with a mapping that follows the schema."""
    format, mapping = entry["format"], entry["mapping"]
    for key in mapping:
        required_format = "outages" if key in OUTAGE_KEYS else "table"
        if key not in _SHARED_KEYS and format != required_format:
            yield ("mapping", key), f"works with the format {required_format} only; here it is {format}."
    for key in MAPPED_FORMATS[format]:
        if key not in mapping:
            yield ("mapping", key), "is missing; expected a column's name on one line, for example their_name."
    length_key, subject = ("duration", "an outage") if format == "outages" else ("runtime", "a run")
    if "end" in mapping and length_key in mapping:
        yield ("mapping",), f"has both end and {length_key}; {subject} would have two end times. Keep one."
    elif format == "table" and "end" not in mapping and length_key not in mapping:
        yield ("mapping",), "has neither end nor runtime; map one of them, for example end: end_time."
    if format == "table" and "start" not in mapping:
        if "submit" not in mapping:
            yield ("mapping", "start"), "is missing; expected a column's name, here or under submit, or under both."
        elif "runtime" in mapping:
            yield ("mapping", "runtime"), "needs a start, from which it counts; map start, or end instead of runtime."
    keys: dict[str, str] = {}
    for key, column in zip(mapping, list_mapped_columns(mapping), strict=True):
        if keys.setdefault(column, key) != key and {key, keys[column]} != {"submit", "start"}:
            yield ("mapping", key), f"the column {column!r} is mapped twice, also to {keys[column]}; keep one of them."
        if column == "line":
            yield (("mapping", key), "a column named line cannot be mapped (line numbers use this name); rename it.")
    yield from _find_word_problems(entry)


def find_zone_problems(entry: dict) -> Iterator[EntryProblem]:
    """Yield problems of `times`; in the format sacct it has a zone only."""
    times, is_table = entry.get("times", {}), entry["format"] in MAPPED_FORMATS
    for key in times.keys() - {"zone"} if not is_table else ():
        text = "works with the formats table and outages only; the two time formats of sacct are known."
        yield ("times", key), text
    if text := describe_unknown_zone(times.get("zone")):
        yield ("times", "zone"), text


def describe_unknown_zone(zone: str | None) -> str:
    """Return why a name is no time zone; empty if it is one, or if the machine knows none."""
    zones = available_timezones() if zone else set()
    if not zone or not zones or zone in zones:
        return ""
    expected = "Expected a name of the IANA time zone database, as in America/Denver."
    return f"there is no time zone {zone!r}{suggest_match(zone, zones)} {expected}"


def parse_window(entry: dict) -> tuple[int, int] | None:
    """Return the entry's window [from, to) in seconds since 1970; None if it has none."""
    window = entry.get("window")
    return (_to_epoch_s(window["from"]), _to_epoch_s(window["to"])) if window else None


def find_window_problems(entry: dict) -> Iterator[EntryProblem]:
    """Yield problems of `window`: an impossible date, an end before the start."""
    seconds_by_key = {}
    for key, moment in entry.get("window", {}).items():
        try:
            seconds_by_key[key] = _to_epoch_s(moment)
        except (ValueError, OverflowError):
            text = f"{moment!r} is not a date and time; write one with its UTC offset, "
            yield ("window", key), text + "for example '2017-10-03T00:00:00-07:00'."
    if len(seconds_by_key) == 2 and seconds_by_key["from"] >= seconds_by_key["to"]:
        yield ("window", "to"), "is not after from; the window would be empty."


def _to_epoch_s(moment: str | int) -> int:
    return moment if isinstance(moment, int) else int(datetime.fromisoformat(moment).timestamp())


def list_mapped_columns(mapping: dict) -> list[str]:
    return [column["column"] if isinstance(column, dict) else column for column in mapping.values()]


def _find_word_problems(entry: dict) -> Iterator[EntryProblem]:
    """Yield status words that mean two outcomes or cannot occur."""
    status, outcomes = entry["mapping"].get("status"), entry.get("outcomes", {})
    is_first_word = isinstance(status, dict) and status.get("first_word", False)
    outcome_by_word: dict[str, str] = {}
    for outcome, words in outcomes.items():
        for word in words:
            path = ("outcomes", outcome)
            if outcome_by_word.setdefault(word, outcome) != outcome:
                yield path, f"the word {word!r} is also listed under {outcome_by_word[word]}; a status has one outcome."
            if word != word.strip():
                yield path, f"the word {word!r} has spaces around it; a status is read without them."
            elif is_first_word and len(word.split()) > 1:
                yield path, f"{word!r} is more than one word, but first_word compares only the first word."
    if "outcomes" in entry and not outcomes:
        yield ("outcomes",), "names no outcome; list the status words, for example {failure: [FAILED, TIMEOUT]}."


def find_outcome_problems(trace: str, entry: dict, format: dict) -> Iterator[Problem]:
    """Yield words of `outcomes` that the format does not have, or that cannot mean another outcome."""
    outcomes = format.get("outcomes", {})
    outcome_by_word = {word: outcome for outcome, words in outcomes.items() for word in words}
    changes = entry.get("outcomes", {}) if outcomes else {}
    counts = Counter(word for words in changes.values() for word in words)
    for outcome, words in changes.items():
        for word in words:
            if word not in outcome_by_word:
                text = f"the format {entry['format']} has no status {word!r}{suggest_match(word, outcome_by_word)} "
                text += f"It has {', '.join(outcome_by_word)}."
            elif counts[word] > 1:
                text = f"the word {word!r} is listed twice; a status has one outcome."
            elif UNENDED & {outcome, outcome_by_word[word]}:
                text = f"{word!r} is {outcome_by_word[word]}; only what a job that has ended means can be changed."
            else:
                continue
            yield Problem(("registry", trace, "outcomes", outcome), text)
