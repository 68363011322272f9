"""Recognise the layout of a node log from its first lines. Plain Python, so that planning can ask.

Lines of text have a head, see ttf.raw.line_heads. Records of other programs, as CSV or JSON, have names for the time,
the node and the message; a message may be a line with a head itself.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from typing import Any, NamedTuple

from ttf.raw.line_heads import KERNEL_TIMES, LABELS, LineHead, detect_head

# Lines of the journal, and of the syslog daemon, itself.
JOURNAL_NOTE = r"^-- .* --$|^-- (?:Logs|Journal) begin| last message repeated [0-9]+ times?$"
JSON_TIME, JSON_HOST = "__REALTIME_TIMESTAMP", "_HOSTNAME"
JSON_CODED = r'"MESSAGE" ?: ?\[|\\'
# What other programs write before a record.
_JSON_START = re.compile(r"[\s,\x1e]*(?:data: ?)?(?=\S)")
# First line of a record of the journal's forms export and verbose
FIELD_START = r"__CURSOR=|[A-Z].* \[s="
# A time and a tag before a record, as Fluentd writes them to a file.
_TABBED = re.compile(r"(?m)^([^\s{]+)\t[^\t\n]+\t\{(?=\")")
# Columns of ours <- names of columns and keys of other programs, the most certain first.
_NAMES = {
    "time": "time @timestamp timestamp _time isodate date ts __realtime_timestamp eventtime timereported timegenerated "
    "tsns timeunixnano _messagetime",
    "node": "node tags.hostname host hostname host.name host.hostname nodename _hostname kubernetes.host "
    "kubernetes.node_name k8s.node.name computer fromhost compute.googleapis.com/resource_name source logstreamname "
    "@logstream _sourcehost",
    "message": "message msg line _raw log short_message syslogmessage textpayload body.stringvalue body @message",
}
_CANDIDATES = {ours: names.split() for ours, names in _NAMES.items()}
_CONTAINER = re.compile(r"(?:^|\.)(?:stream$|container|docker|kubernetes|pod\b)")
_KERNEL_WORDS = {"kernel", "kern", "kmsg", "dmesg"}
_ANCHOR = re.compile(
    r"\[ *([0-9]+)\.[0-9]{6}\].*(?:setting system clock to .* \(([0-9]{10})\)|audit\(([0-9]{10})\.[0-9]{3}:)"
)
_MOST_RECORDS, _DEEPEST = 200, 20
# Start of a text that is not read -> what it is, and how to print it again.
_UNREAD_FORMS = {
    rf"(?:{LABELS['level'].pattern})?\[ *[0-9]+\.[0-9]{{6}}|\{{\s*\"dmesg\"": (
        "its times count from the start of the node. Set node_log_boot to the time of uptime -s; or write it with "
        "dmesg -T, or journalctl -k -o short-iso"
    ),
    r"(?:\S+ (?:stdout|stderr) [FP] |\{\"log\" ?:)": (
        "the log of a container, whose lines name no node. Print what the container reads on the node itself: "
        "journalctl -k -o short-iso"
    ),
    r"\[(?: *\+[0-9]+\.[0-9]{6}|[A-Z][a-z]{2} ?[0-9]+ [0-9]{2}:[0-9]{2})\] ": (
        "its times are steps from line to line. Write it with dmesg -T, or journalctl -k -o short-iso"
    ),
    r"LAST SEEN +TYPE|NAMESPACE +LAST SEEN": "its times are ages. Write the events with kubectl get events -o json",
    r"(?:NVRM: |nvidia|mce: |EDAC |pcieport |usb )": (
        "its lines have no time. Write it with dmesg -T, or journalctl -k -o short-iso"
    ),
    r" *[A-Z][^\n]*\n *-{3,}(?: +-{3,})+ *(?:\n|$)": (
        "a table in columns of fixed width, which cut the cells. Print it again with -P"
    ),
}


class Layout(NamedTuple):
    """How the lines of a file tell time, node and message.

    name: text, journal_json, csv and event_json for events, log_csv, log_json and log_fields for other records of
    lines, log_dmesg for those of dmesg -J. head: of the lines, or of the messages in records. delimiter: of CSV.
    boot_s: when the node started, if the times count from then and a line tells it. has_nodes: whether the lines name
    their nodes; else the file does.
    """

    name: str
    head: LineHead = LineHead()
    delimiter: str = ","
    boot_s: int | None = None
    has_nodes: bool = True

    @property
    def clock(self) -> str:
        """Return yearless or uptime for times that need a year, or the node's start; else dated."""
        return "uptime" if self.name == "log_dmesg" else self.head.clock if self.name == "text" else "dated"

    @property
    def needs_boot(self) -> bool:
        return self.clock == "uptime" and self.boot_s is None


def detect_layout(head: bytes) -> Layout | None:
    """Return the layout of a file that starts with these bytes; None if it is not a node log."""
    text = decode_head(head)
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    if not lines:
        return None
    for delimiter in ",\t;":
        names = parse_csv_header(lines[0], delimiter)
        if {*names} >= {"node", "time", "code"}:
            return Layout("csv", delimiter=delimiter)
        if {*names} >= {"time", "message"} and len(names) == len({*names}):
            rows = [dict(zip(names, split_csv_line(line, delimiter), strict=False)) for line in lines[1:_MOST_RECORDS]]
            return _detect_records("log_csv", rows or [dict.fromkeys(names)], delimiter)
    if layout := _detect_json(text, lines):
        return layout
    if re.match(FIELD_START, lines[0]):
        return Layout("log_fields")
    lines = [line for line in map(clean_line, lines) if not re.search(JOURNAL_NOTE, line)]
    line_head = detect_head(lines)
    is_dated = line_head.clock in ("dated", "yearless", "uptime")
    if not is_dated or not (line_head.has_host or ("stream" not in line_head.forms and _is_kernel(line_head))):
        return None
    boot_s = find_boot(lines) if line_head.clock == "uptime" else None
    return Layout("text", line_head, boot_s=boot_s, has_nodes=line_head.has_host)


def clean_line(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line)


def _is_kernel(head: LineHead) -> bool:
    """Return whether a head without a host is that of dmesg, in a file named after its node."""
    piece = head.pieces[head.time or 0]
    is_by_dmesg = piece.form in KERNEL_TIMES and (piece.form != "ctime" or piece.pattern.startswith(r"\["))
    return is_by_dmesg or "level" in head.forms


def find_boot(lines: Iterable[str]) -> int | None:
    """Return when a node started, from the first line that tells its time since then and the clock; else None."""
    for line in lines:
        if match := _ANCHOR.search(line):
            return int(match[2] or match[3]) - int(match[1])
    return None


def decode_head(head: bytes) -> str:
    return head.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")


def describe_unread_form(head: bytes) -> str:
    """Return what a file is that starts with these bytes, and how to print it again; empty for any other file."""
    text = decode_head(head).lstrip("\r\n").replace("\r\n", "\n")
    if words := next((words for pattern, words in _UNREAD_FORMS.items() if re.match(pattern, text)), ""):
        return words
    names = parse_csv_header(text.partition("\n")[0])
    if {*names} >= {"time", "message"}:
        return "a log that names no node. Add a column node, or name the one with the node so"
    if record := next(_list_records(text), None):
        return f"records that name no node ({', '.join(islice(record, 6))}). Add it: jq -c '. + {{host: \"gpu01\"}}'"
    if detect_head(text.splitlines()).time is not None:
        return (
            "lines with a time, but without a node and a program behind it. journalctl -k -o short-iso writes the log "
            "of a node"
        )
    return ""


# Records ------------------------------------------------------------------------------------------------


def parse_csv_header(line: str, delimiter: str = ",") -> list[str]:
    """Return the names in the header row of a CSV file, in small letters, and as `name_columns`."""
    names = (re.sub(r" \[[^]]*\]$", "", name.strip().lower()) for name in split_csv_line(line, delimiter))
    return name_columns(tuple(names))


@cache
def name_columns(names: tuple[str, ...]) -> list[str]:
    """Replace names of other programs by ours, such as @timestamp by time, unless ours is there too."""
    columns = list(names)
    for ours, candidates in _CANDIDATES.items():
        ends = [name for name in candidates if name not in names]
        exact = (names.index(name) for name in candidates if name in names)
        inner = (i for end in ends for i, name in enumerate(names) if name.endswith(f".{end}"))
        index = next(exact, next(inner, None))
        if index is not None:
            columns[index] = ours
    return columns


def name_fields(record: Mapping) -> dict[str, Any]:
    """Return the values of a JSON record by `name_columns`; those inside objects by names such as host.name."""
    fields = dict(_flatten(record, ""))
    return dict(zip(name_columns(tuple(fields)), fields.values(), strict=True))


def _flatten(value: Mapping, prefix: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        name = f"{prefix}{key}".lower()
        if isinstance(item, dict) and prefix.count(".") < _DEEPEST:
            yield from _flatten(item, f"{name}.")
        elif isinstance(item, list) and item and all(isinstance(pair, dict) and "key" in pair for pair in item):
            # OpenTelemetry's attributes
            for pair in item:
                inner = pair.get("value")
                yield str(pair["key"]).lower(), next(iter(inner.values()), None) if isinstance(inner, dict) else inner
        else:
            yield name, item


def split_csv_line(line: str, delimiter: str = ",") -> list[str]:
    """Return the fields of a line of a CSV file; none if it is no such line."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a lone carriage return, a field of more than 128 kB
        return []


def _detect_json(text: str, lines: Sequence[str]) -> Layout | None:
    if not _is_json(text):
        return None
    has_times = [re.search(rf'"{JSON_TIME}" ?:', line) is not None for line in lines]
    # A record on each line is read by patterns, which takes a tenth of the time.
    if sum(has_times) * 2 > len(lines) and lines[0][0] != "[":
        return Layout("journal_json")
    if _has_event_keys(text):
        return Layout("event_json")
    if re.match(r'\{\s*"dmesg"', text):
        lines = [f"[{time}] {message}" for time, message in re.findall(r'"time": *([0-9.]+),\s*"msg": *"(.*)"', text)]
        return Layout("log_dmesg" if lines else "log_json", boot_s=find_boot(lines), has_nodes=False)
    return _detect_records("log_json", [*islice(_list_records(text), _MOST_RECORDS)])


def _is_json(text: str) -> bool:
    # A list has records in it; another bracket is around the time of a line.
    return re.match(rf"{_JSON_START.pattern}(?:{{|\[\s*[\[{{\]])", _TABBED.sub("{", text)) is not None


def _list_records(text: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of records of a log in the JSON at the start of a file, which may be cut."""
    for document in decode_documents(text, _MOST_RECORDS) if _is_json(text) else ():
        yield from (fields for fields in explode_records(document) if fields.keys() >= {"time", "message"})


def decode_documents(text: str, most_faults: int = 1) -> Iterator[Any]:
    """Yield the JSON documents in a text; None for what is none, and then those inside it, up to most_faults."""
    decoder, at, text = json.JSONDecoder(), 0, _TABBED.sub(r'{"time": "\1", ', text)
    while at >= 0 and (start := _JSON_START.match(text, at)):
        try:
            document, at = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            document, most_faults = None, most_faults - 1
            at = text.find("{", start.end() + 1) if most_faults else -1
        yield document


def explode_records(document: Any, inherited: Mapping | None = None) -> Iterator[dict[str, Any]]:
    """Yield the fields of the records in a document, with those of what they are in.

    Records are the items of lists in it, or Loki's pairs of a time and a line, or the document itself.
    """
    if isinstance(document, list):
        for item in document:
            yield from explode_records(item, inherited)
    elif isinstance(document, dict):
        if isinstance(document.get("stream"), dict) and isinstance(document.get("values"), list):
            labels = name_fields({"labels": document["stream"]})
            pairs = (pair for pair in document["values"] if isinstance(pair, list) and len(pair) > 1)
            yield from (labels | {"time": pair[0], "message": pair[1]} for pair in pairs)
            return
        flat = name_fields(document)
        message = flat.get("message")
        if isinstance(message, str) and message.startswith("{"):
            with suppress(ValueError, RecursionError):
                flat |= name_fields(json.loads(message))
        own = {**flat, **{key: value for key, value in (inherited or {}).items() if key not in flat}}
        is_record = flat.keys() >= {"time", "message"}
        lists = [
            value for value in flat.values() if isinstance(value, list) and any(isinstance(x, dict) for x in value)
        ]
        parts = [] if is_record else [[*explode_records(items, own)] for items in lists]
        records = [part for part in parts if any(record.keys() >= {"time", "message"} for record in part)]
        yield from chain.from_iterable(records or parts or [[own]])


def _detect_records(name: str, records: Sequence[Mapping], delimiter: str = ",") -> Layout | None:
    """Return the layout of records of a log, if each names a node, or its message does."""
    messages = [message for record in records if isinstance(message := record.get("message"), str)]
    head = detect_head(clean_line(message.strip()) for message in messages)
    # Libraries of applications write a level, and the pod as the host.
    is_application = any(
        _CONTAINER.search(key) or (key == "level" and name == "log_json") for record in records[:9] for key in record
    )
    texts = {value for record in records for value in record.values() if isinstance(value, str)}
    is_by_kernel = texts & _KERNEL_WORDS or any("NVRM: " in message for message in messages)
    has_node = any("node" in record for record in records[:9]) and (is_by_kernel or not is_application)
    return Layout(name, head if head.time is not None else LineHead(), delimiter) if head.has_host or has_node else None


def _has_event_keys(text: str) -> bool:
    """Return whether a text has keys of a monitor's events.

    They are NVSentinel's, as protobuf and MongoDB have them, gpud's, Kubernetes's, or those of a range of a metric.
    """
    words = set(re.findall(r'"([A-Za-z_]+)"\s*:', text))
    is_nvsentinel = {"nodename", "checkname"} <= {word.lower() for word in words}
    is_gpud = {"component", "events"} <= words and bool({"time", "name"} & words)
    is_metric = {"metric", "values"} <= words and bool(re.search("DCGM_[A-Z_]*XID|problem_counter", text))
    return is_nvsentinel or is_gpud or is_metric or "involvedObject" in words or "regarding" in words
