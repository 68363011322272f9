"""Events that a monitor has written, and lines of logs as records: CSV and JSON as rows of one form."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from ttf.raw.node_logs.layouts import name_fields, split_csv_line
from ttf.raw.node_logs.text_lines import blank_implausible, to_epoch_s

COLUMNS = ("node", "time", "code", "gpu", "message", "severity")
SCHEMA = {"line": pl.Int64, **dict.fromkeys(COLUMNS, pl.String), "own_kind": pl.String}
_SEVERITIES = {
    "error": "error fatal critical crit high emergency alert err severe",
    "warning": "warning warn medium moderate degraded minor",
    "info": "info informational information low notice debug none ok",
}
_DATE, _CLOCK, _OFFSET = (
    "([0-9]{4}-[0-9]{2}-[0-9]{2})",
    "([0-9]{2}:[0-9]{2}:[0-9]{2})",
    "(Z|UTC|[+-][0-9]{2}:?[0-9]{2})",
)
_TIME = rf"^{_DATE}[T ]{_CLOCK}(?:[.,][0-9]+)? ?(Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}})?$"
_SEVERITY_BY_WORD = {word: severity for severity, words in _SEVERITIES.items() for word in words.split()}


def parse_csv(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Return SCHEMA for the lines of a CSV file below its header; a line that is no row has no time."""
    indices = {name: names.index(name) for name in COLUMNS if name in names}
    has_quotes = rows.height and rows["text"].str.contains('"', literal=True).any()
    if has_quotes:
        fields = [split_csv_line(text) for text in rows["text"]]
        lists = pl.Series("fields", fields, dtype=pl.List(pl.String))
    else:
        lists = rows["text"].str.split(",")
    cells = {name: lists.list.get(index, null_on_oob=True).str.strip_chars() for name, index in indices.items()}
    frame = pl.DataFrame({"line": rows["line"], **cells}, schema_overrides=dict.fromkeys(cells, pl.String))
    blanks = {name: pl.lit(None, pl.String) for name in COLUMNS if name not in indices}
    frame = frame.with_columns(**blanks, own_kind=pl.lit(None, pl.String))
    texts = {name: pl.when(pl.col(name) != "").then(name) for name in COLUMNS}
    return frame.with_columns(**texts).with_columns(severity=read_severity()).select(*SCHEMA)


def read_severity() -> pl.Expr:
    """Return error, warning or info for a monitor's word of severity; null for other words."""
    word = pl.col("severity").str.strip_chars().str.to_lowercase()
    return word.replace_strict(_SEVERITY_BY_WORD, default=None, return_dtype=pl.String)


def read_times(times: pl.Series, zone: str) -> pl.Series:
    """Return seconds since 1970 of times in seconds, or as 2025-03-01T08:00:00 with or without an offset.

    A number of 13, 16 or 19 digits is in milli-, micro- or nanoseconds.
    """
    text = pl.col("time")
    parts = text.str.extract_groups(_TIME)
    clock = pl.concat_str(parts.struct.field("1"), parts.struct.field("2"), separator=" ")
    clock = clock.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="ms")
    number = text.str.extract(r"^([0-9]{9}|[0-9]{10}(?:[0-9]{3}){0,3})(?:\.[0-9]+)?$").str.head(10).cast(pl.Int64)
    moment = pl.coalesce(number, to_epoch_s(clock, parts.struct.field("3"), zone))
    return blank_implausible(times.to_frame("time").select(moment).to_series())


def has_event_lines(text: str) -> bool:
    """Return whether most lines that are not blank are whole JSON documents."""
    are_whole = [isinstance(_parse_json_or_none(line), dict | list) for line in text.split("\n") if line.strip()]
    return sum(are_whole) * 2 >= len(are_whole)


def parse_event_lines(rows: pl.DataFrame, node: str | None) -> pl.DataFrame:
    """Return SCHEMA for events, or records of a log, a JSON document on each line. node: of events that name none."""
    return _tabulate_events(
        ((line, _parse_json_or_none(text)) for text, line in rows.select("text", "line").iter_rows()), node
    )


def parse_event_document(text: str, node: str) -> pl.DataFrame:
    """Return SCHEMA for the events in a file that is one document."""
    return _tabulate_events([(1, _parse_json_or_none(text))], node)


def _tabulate_events(documents: Iterable[tuple[int, Any]], node: str | None) -> pl.DataFrame:
    rows = []
    for line, document in documents:
        events: list[Mapping] = list(_list_events(document))
        # A monitor that has seen nothing writes an empty list.
        kind = None if events or document is None else "note"
        cells = [_read_event(event, node) for event in events] or [{"node": kind and node, "own_kind": kind}]
        rows += [{"line": line, **dict.fromkeys(SCHEMA.keys() - {"line"}), **event} for event in cells]
    frame = pl.DataFrame(rows, schema=SCHEMA)
    return frame.with_columns(severity=read_severity())


def _parse_json_or_none(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _list_events(document: Any) -> Iterator[Mapping]:
    """Yield the events in a document: of lists, of `events` and `items`, and of `spec` and the like."""
    if isinstance(document, list):
        for item in document:
            yield from _list_events(item)
    elif isinstance(document, dict):
        keys = ("spec", "healthevent", "healthEvent", "_source")
        inner = next((document[key] for key in keys if key in document), None)
        lists = [document[key] for key in ("events", "items") if isinstance(document.get(key), list)]
        if isinstance(inner, dict):
            yield inner
        elif lists:
            shared = {key: document[key] for key in ("component", "node", "nodeName") if key in document}
            for item in lists[0]:
                for event in _list_events(item):
                    yield {**shared, **event}
        else:
            yield document


def _read_event(event: Mapping, node: str | None) -> dict[str, str | None]:
    fields = name_fields(event)  # MongoDB has small letters only
    if "checkname" in fields:
        return _read_nvsentinel(fields)
    name, message = _text(fields.get("name")), _text(fields.get("message"))
    # gpud writes an XID as "XID 79 ... detected on GPU PCI:0000:05:00"; its name is only error_xid.
    is_xid = "xid" in (name or "").lower()
    gpu = re.search(r"\bGPU (PCI:[0-9A-Fa-f:.]+)", message or "")
    return {
        "node": _text(fields.get("node")) or node,
        "time": _text(fields.get("time")),
        "code": None if is_xid else name,
        "gpu": gpu[1].rstrip(".:") if gpu else None,
        "message": message,
        "severity": _text(fields.get("type")),
    }


def _read_nvsentinel(fields: Mapping) -> dict[str, str | None]:
    codes = fields.get("errorcode") or fields.get("errorcodes") or []
    code = _text(codes[0] if isinstance(codes, list) and codes else codes or None)
    check = _text(fields["checkname"]) or ""
    if code and code.isdigit():
        xid_word = re.search("s?xid", check.lower().removeprefix("syslogs"))
        code = f"{xid_word[0].upper()} {code}" if xid_word else code
    entities = fields.get("entitiesimpacted") or []
    values = {}
    for entity in entities if isinstance(entities, list) else ():
        pairs = {key.lower(): value for key, value in entity.items()} if isinstance(entity, dict) else {}
        kind = _text(pairs.get("entitytype") or pairs.get("type")) or ""
        values[kind.upper()] = _text(pairs.get("entityvalue") or pairs.get("value"))
    return {
        "node": _text(fields.get("node")),
        "time": _read_timestamp(fields.get("generatedtimestamp") or fields.get("detectedat")),
        "code": code or check,
        "gpu": next((values[kind] for kind in ("PCI", "GPU", "GPU_UUID") if values.get(kind)), None),
        "message": _text(fields.get("message")),
        "severity": "error" if fields.get("isfatal") else "warning",
        "own_kind": "recovered" if fields.get("ishealthy") is True else None,
    }


def _read_timestamp(value: Any) -> str | None:
    if isinstance(value, dict):  # protobuf's and MongoDB's forms
        value = value.get("seconds", value.get("$date"))
        value = value.get("$numberLong") if isinstance(value, dict) else value
    return _text(value)


def _text(value: Any) -> str | None:
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return re.sub(r"[\0\r\n]+", " ", str(value)) if is_plain else None
