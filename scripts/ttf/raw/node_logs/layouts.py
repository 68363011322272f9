"""Recognise the layout of a node log from its first lines. Plain Python, so that planning can ask.

A layout is one way to write a line: how its time, node and message are found. The head of a line of text is a form of
time, then a form of host; the rest is the message.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

_HOUR, _MINUTE = r"(?P<hour>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2})", r"(?P<minute>[0-9]{2}:[0-9]{2})"
_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY_HOUR = rf"(?P<hour>(?:{'|'.join(MONTHS)}) [ 0-9][0-9] [0-9]{{2}})"
_WEEKDAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"
# Form of time -> its pattern. Only ASCII classes, and no step back: any other pattern takes ten times as long.
_TIMES = {
    # journalctl -o short-iso and short-iso-precise, and files of rsyslog with ISO times.
    "iso": rf"{_HOUR}:{_MINUTE}(?:\.[0-9]{{1,9}})?{_ZONE}",
    # journalctl -o short-full.
    "full": rf"{_WEEKDAY} {_HOUR}:{_MINUTE}(?:\.[0-9]{{1,6}})? (?P<zone>[A-Z]{{3,5}}|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)",
    "syslog": rf"{_DAY_HOUR}:{_MINUTE}(?:\.[0-9]{{1,6}})?",
    "dmesg": rf"\[{_WEEKDAY} {_DAY_HOUR}:{_MINUTE} (?P<zone>[0-9]{{4}})\]",
    # dmesg --time-format=iso.
    "dmesg_iso": rf"{_HOUR}:{_MINUTE},[0-9]{{6}}{_ZONE}",
    # talosctl dmesg.
    "brackets": rf"\[{_HOUR}:{_MINUTE}(?:\.[0-9]{{1,9}})?{_ZONE}\]:",
}
_PRIORITY = "(?:<[0-9]{1,3}>)?"
# The node, and the program that wrote the message. Without a program, any word behind a time would be a node.
_HOST = rf" (?P<node>{_NAME}) [!-9;-Z\\-~]+(?:\[[!-Z\\^-~]*\])?:(?: |$)"
# RFC 5424: node, program, process, kind of message, structured data.
_HOST_5424 = rf" (?P<node>{_NAME}) [!-~]+ [!-~]+ [!-~]+ (?:-|(?:\[[ -Z\\^-~]*\])+)(?: |$)"
# Facility and level of dmesg --decode and talosctl.
_LEVEL = "[a-z0-9]+ *: *[a-z]+ *: "
# Layout -> pattern of the head of a line. A head without a host is that of dmesg, in a file named after its node.
TEXT_LAYOUTS = {
    **{time: f"{_PRIORITY}{_TIMES[time]}{_HOST}" for time in ("iso", "full", "syslog")},
    "rfc5424": f"{_PRIORITY}1 {_TIMES['iso']}{_HOST_5424}",
    **{time: f"{_TIMES[time]} " for time in ("dmesg", "dmesg_iso")},
    **{f"level_{time}": f"{_LEVEL}{_TIMES[time]} " for time in ("dmesg", "dmesg_iso", "brackets")},
}
# Words that other programs write behind the time.
_NO_NODE = re.compile(
    "[0-9]+|[a-z]*debug|trace|info|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|alert|emerg|fatal|panic|severe|verbose",
    re.IGNORECASE,
)
# A line of pdsh or clush starts with the node.
PREFIX = rf"(?P<prefix>{_NAME}): "
# Lines of the journal, and of the syslog daemon, itself.
JOURNAL_NOTE = r"^-- .* --$|^-- (?:Logs|Journal) begin| last message repeated [0-9]+ times?$"
JSON_TIME, JSON_HOST = "__REALTIME_TIMESTAMP", "_HOSTNAME"
JSON_CODED = r'"MESSAGE" ?: ?\[|\\'
# Names of columns and keys of other programs -> ours.
_COLUMN_BY_NAME = {
    **dict.fromkeys(("@timestamp", "timestamp", "_time", "date", "ts"), "time"),
    **dict.fromkeys(("host", "hostname", "host.name", "host.hostname", "nodename"), "node"),
    **dict.fromkeys(("msg", "_raw"), "message"),
}
_CONTAINER = "stream$|container|docker|kubernetes"
_RECORD = {"node", "time", "message"}
_MOST_LINES = 200
# Start of a text that is not read -> what it is, and how to print it again.
_UNREAD_FORMS = {
    rf"(?:{_LEVEL})?\[ *[0-9]+\.[0-9]{{6}}\] ": (
        "its times count from the start of the node. Write it with dmesg -T, or journalctl -k -o short-iso"
    ),
    r"\S+ (?:stdout|stderr) [FP] ": (
        "the log of a container. If it repeats lines of a node's log, remove its heads: "
        "sed -E 's/^[^ ]+ (stdout|stderr) [FP] //'"
    ),
    r'\{"log" ?:': "the log of a container. If it repeats lines of a node's log, take them out: jq -j .log",
    r"__CURSOR=": "the journal's form for export. Write it with journalctl -k -o short-iso",
    r" *[A-Z][^\n]*\n *-{3,}(?: +-{3,})+ *(?:\n|$)": (
        "a table in columns of fixed width, which cut the cells. Print it again with -P"
    ),
    r"[\[{]\s*\n": "JSON with records of several lines. Write each on one line: jq -c '.[]?' or jq -c .",
}


def detect_layout(head: bytes) -> str | None:
    """Return the layout of a file that starts with these bytes; None if it is not a node log.

    It is the layout of most of the first lines: one of TEXT_LAYOUTS, journal_json, or csv and event_json for events,
    or log_csv and log_json for other records of lines.
    """
    text = decode_head(head)
    lines = [line.rstrip("\r") for line in text.split("\n")[:_MOST_LINES] if line.strip()]
    if not lines:
        return None
    names = {*parse_csv_header(lines[0])}
    if names >= {"node", "time", "code"}:
        return "csv"
    if names >= _RECORD and not is_container(names):
        return "log_csv"
    if text.lstrip()[:1] in "{[" and (layout := _detect_json(text, lines)):
        return layout
    lines = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) for line in lines if not re.search(JOURNAL_NOTE, line)]
    counts = {
        name: sum(_has_head(re.compile(f"(?:{PREFIX})?{pattern}"), line) for line in lines)
        for name, pattern in TEXT_LAYOUTS.items()
    }
    layout = max(counts, key=lambda name: counts[name])
    return layout if counts[layout] * 2 > len(lines) else None


def _has_head(pattern: re.Pattern, line: str) -> bool:
    match = pattern.match(line)
    return match is not None and not _NO_NODE.fullmatch(match.groupdict().get("node") or "")


def decode_head(head: bytes) -> str:
    return head.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")


def describe_unread_form(head: bytes) -> str:
    """Return what a file is that starts with these bytes, and how to print it again; empty for any other file."""
    text = decode_head(head).lstrip("\r\n").replace("\r\n", "\n")
    return next((words for pattern, words in _UNREAD_FORMS.items() if re.match(pattern, text)), "")


def parse_csv_header(line: str) -> list[str]:
    """Return the names in the header row of a CSV file, in small letters, and as `name_columns`."""
    return name_columns(name.strip().lower() for name in split_csv_line(line))


def name_columns(names: Iterable[str]) -> list[str]:
    """Replace names of other programs by ours, such as @timestamp by time, unless ours is there too."""
    names = list(names)
    columns = [_COLUMN_BY_NAME.get(name, name) for name in names]
    return [name if column in names else column for name, column in zip(names, columns, strict=True)]


def name_fields(record: Mapping) -> dict[str, Any]:
    """Return the values of a JSON record by `name_columns`; those of an object in it also as host.name."""
    fields: dict[str, Any] = {}
    for key, value in record.items():
        inner = {f"{key}.{name}": item for name, item in value.items()} if isinstance(value, dict) else {}
        fields |= {name.lower(): item for name, item in ({key: value} | inner).items()}
    # The object host does not replace its own host.name.
    columns = zip(name_columns(fields), fields.values(), strict=True)
    return {name: value for name, value in columns if name not in _RECORD or not isinstance(value, dict)}


def is_container(names: Iterable[str]) -> bool:
    """Return whether columns or keys with these names are those of a container's log."""
    return any(re.match(_CONTAINER, name) for name in names)


def split_csv_line(line: str) -> list[str]:
    """Return the fields of a line of a CSV file; none if it is no such line."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a lone carriage return, a field of more than 128 kB
        return []


def _detect_json(text: str, lines: list[str]) -> str | None:
    layouts = Counter(_detect_json_line(line) for line in lines)
    layout, count = layouts.most_common(1)[0]
    if layout and count * 2 > len(lines):
        return layout
    # A document of several lines; or the first line of a log that is damaged.
    return "event_json" if _has_event_keys(text) else None


def _detect_json_line(line: str) -> str | None:
    # Also a record that is cut or damaged.
    if JSON_TIME in line:
        return "journal_json"
    if _has_event_keys(line):
        return "event_json"
    with suppress(ValueError, RecursionError):
        record = json.loads(line)
        fields = name_fields(record.get("_source", record)) if isinstance(record, dict) else {}
        # Libraries of applications write a level, and the pod as the host.
        is_application = "level" in fields or is_container(fields)
        return "log_json" if fields.keys() >= _RECORD and not is_application else None
    return None


def _has_event_keys(text: str) -> bool:
    """Return whether a text has keys of NVSentinel's health events, as protobuf and MongoDB do, or of gpud's events."""
    words = set(re.findall(r'"([A-Za-z_]+)"\s*:', text))
    is_nvsentinel = {"nodename", "checkname"} <= {word.lower() for word in words}
    return is_nvsentinel or ({"component", "events"} <= words and bool({"time", "name"} & words))
