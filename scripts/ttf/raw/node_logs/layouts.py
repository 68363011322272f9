"""Recognise the layout of a node log from its first lines. Plain Python, so that planning can ask.

A layout is one way to write a line: how its time, node and message are found.
"""

import csv
import json
import re
from contextlib import suppress

# journalctl -o short-iso and short-iso-precise, and files of rsyslog with ISO times. dmesg writes a decimal comma.
_HOUR, _MINUTE = r"(?P<hour>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2})", r"(?P<minute>[0-9]{2}:[0-9]{2})"
_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY_HOUR = rf"(?P<hour>(?:{'|'.join(MONTHS)}) [ 0-9][0-9] [0-9]{{2}})"
_NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"
# Layout -> pattern of the head of a line. Only ASCII classes, and no step back: any other pattern takes ten times as
# long.
TEXT_LAYOUTS = {
    "iso": rf"{_HOUR}:{_MINUTE}(?:\.[0-9]{{1,9}})?{_ZONE} (?P<node>{_NAME}) ",
    "dmesg": rf"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_DAY_HOUR}:{_MINUTE} (?P<zone>[0-9]{{4}})\] ",
    "dmesg_iso": rf"{_HOUR}:{_MINUTE},[0-9]{{6}}{_ZONE} ",
    "syslog": rf"(?:<[0-9]{{1,3}}>)?{_DAY_HOUR}:{_MINUTE} (?P<node>{_NAME}) ",
}
# A line of pdsh or clush starts with the node.
PREFIX = rf"(?P<prefix>{_NAME}): "
# The program that wrote the message, behind the node.
PROGRAM = r"^[A-Za-z0-9_./()@-]+(?:\[[0-9]+\])?: "
# The journal's own lines between those of the kernel.
JOURNAL_NOTE = r"^-- .* --$|^-- (?:Logs|Journal) begin"
UPTIME = r"^\[ *[0-9]+\.[0-9]{6}\] "
JSON_TIME, JSON_HOST = "__REALTIME_TIMESTAMP", "_HOSTNAME"
JSON_CODED = r'"MESSAGE" ?: ?\[|\\'
CSV_COLUMNS = ("node", "time", "code")
_MOST_LINES = 200


def detect_layout(head: bytes) -> str | None:
    """Return the layout of a file that starts with these bytes; None if it is not a node log.

    It is the layout of most of the first lines: iso, dmesg, dmesg_iso, syslog, journal_json, csv or event_json.
    """
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")
    lines = [line.rstrip("\r") for line in text.split("\n")[:_MOST_LINES] if line.strip()]
    if not lines:
        return None
    if (names := parse_csv_header(lines[0])) and set(CSV_COLUMNS) <= set(names):
        return "csv"
    if text.lstrip()[:1] in "{[" and (layout := _detect_json(text.lstrip(), lines[0])):
        return layout
    lines = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) for line in lines if not re.search(JOURNAL_NOTE, line)]
    counts = {
        name: sum(bool(re.match(f"(?:{PREFIX})?{pattern}", line)) for line in lines)
        for name, pattern in TEXT_LAYOUTS.items()
    }
    layout = max(counts, key=lambda name: counts[name])
    return layout if counts[layout] * 2 > len(lines) else None


def parse_csv_header(line: str) -> list[str]:
    """Return the names in the header row of a CSV file, in lower case."""
    return [name.strip().lower() for name in split_csv_line(line)]


def split_csv_line(line: str) -> list[str]:
    """Return the fields of a line of a CSV file; none if it is no such line."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a lone carriage return, a field of more than 128 kB
        return []


def _detect_json(text: str, line: str) -> str | None:
    with suppress(ValueError, RecursionError):
        record = json.loads(line)
        if isinstance(record, dict) and JSON_TIME in record:
            return "journal_json"
    # Keys of NVSentinel's health events, as written by protobuf, Kubernetes and MongoDB; and of gpud's events.
    words = set(re.findall(r'"([A-Za-z_]+)"\s*:', text))
    lower = {word.lower() for word in words}
    if {"nodename", "checkname"} <= lower or ({"component", "events"} <= words and {"time", "name"} & words):
        return "event_json"
    # A record that is cut or damaged; json-pretty has several lines a record.
    return "journal_json" if JSON_TIME in line else None
