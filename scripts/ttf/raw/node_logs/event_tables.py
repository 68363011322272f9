"""Events that a monitor has written, and lines of logs as records: CSV and JSON as rows of one form."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from ttf.raw.line_columns import blank_implausible, read_lines
from ttf.raw.line_heads import detect_head
from ttf.raw.node_logs.layouts import FIELD_START, decode_documents, explode_records, name_fields, split_csv_line
from ttf.raw.node_logs.text_lines import decode_message

COLUMNS = ("node", "time", "code", "gpu", "message", "severity")
SCHEMA = {"line": pl.Int64, **dict.fromkeys(COLUMNS, pl.String), "own_kind": pl.String}
_SEVERITIES = {
    "error": "error fatal critical crit high emergency alert err severe",
    "warning": "warning warn medium moderate degraded minor",
    "info": "info informational information low notice debug none ok",
}
# An XID, but no SXID, in the words of a monitor; in NVSentinel's, a word with an s is before it.
_XID_WORD = re.compile(r"(?i)(?<!\bs)(?<!ss)xid(?:.*?\bErrorCode:|[ _-]?(?:error)?[ _:-]?)([0-9]{1,3})(?![0-9])")
# Labels of a metric that name the node; the exporter's own Hostname may be its pod.
_METRIC_NODES = ("node", "kubernetes_node", "nodename", "hostname", "instance")
_SEVERITY_BY_WORD = {word: severity for severity, words in _SEVERITIES.items() for word in words.split()}


def parse_csv(rows: pl.DataFrame, names: list[str], delimiter: str = ",") -> pl.DataFrame:
    """Return SCHEMA for the lines of a CSV file below its header; a line that is no row has no time."""
    indices = {name: names.index(name) for name in COLUMNS if name in names}
    has_quotes = rows.height and rows["text"].str.contains('"', literal=True).any()
    if has_quotes:
        fields = [split_csv_line(text, delimiter) for text in rows["text"]]
        lists = pl.Series("fields", fields, dtype=pl.List(pl.String))
    else:
        lists = rows["text"].str.split(delimiter)
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


def read_times(times: pl.Series, zone: str, boot_s: int | None = None) -> pl.Series:
    """Return seconds since 1970 of times in seconds, or in the form of most of them.

    A number of 13, 16 or 19 digits is in milli-, micro- or nanoseconds; one of fewer than 9 counts from boot_s.
    """
    number = times.str.extract(r"^([0-9]{9}|[0-9]{10}(?:[0-9]{3}){0,3})(?:\.[0-9]+)?$").str.head(10).cast(pl.Int64)
    uptime = times.str.extract(r"^([0-9]{1,8})(?:\.[0-9]+)?$").cast(pl.Int64) + pl.Series([boot_s], dtype=pl.Int64)
    moments = blank_implausible(number.fill_null(uptime))
    texts = pl.select(pl.when(moments.is_null()).then(times)).to_series()
    head = detect_head(texts.drop_nulls().head(1000).to_list(), has_hosts=False)
    is_whole = (pl.col("rest") == "") & (head.clock == "dated")
    by_head = read_lines(texts.fill_null(""), head, zone).select(pl.when(is_whole).then("time_s")).to_series()
    american = texts.str.to_datetime("%m/%d/%Y, %I:%M:%S%.f %p", strict=False, time_unit="ms").dt.epoch("s")
    return moments.fill_null(by_head).fill_null(american)


def has_event_lines(text: str) -> bool:
    """Return whether most lines that are not blank are whole JSON documents."""
    lines = [[*decode_documents(line)] for line in text.split("\n") if line.strip()]
    return sum(all(isinstance(item, dict | list) for item in line) for line in lines) * 2 >= len(lines)


def parse_json(texts: Iterable[tuple[int, str]], node: str | None, is_log: bool) -> pl.DataFrame:
    """Return SCHEMA for events, or records of a log, in texts of JSON documents and the numbers of their first lines.

    node: of those that name none.
    """
    return _tabulate(((line, item) for line, text in texts for item in decode_documents(text)), node, is_log)


def parse_fields(text: str) -> pl.DataFrame:
    """Return SCHEMA for the lines KEY=value of the journal's forms export and verbose."""
    records: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        key, _, value = line.strip().partition("=")
        if re.match(FIELD_START, line):
            # -o verbose starts a record by its time.
            records.append((number, {"time": line.partition(" [s=")[0]} if key != "__CURSOR" else {}))
        elif records:
            records[-1][1].setdefault(key, value)
    return _tabulate(records, None, is_log=True)


def _tabulate(documents: Iterable[tuple[int, Any]], node: str | None, is_log: bool) -> pl.DataFrame:
    rows = []
    for line, document in documents:
        try:
            cells = [*_read_document(document, node, is_log)]
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # of another form
            cells = [{}]
        rows += [{"line": line, **dict.fromkeys(SCHEMA.keys() - {"line"}), **event} for event in cells]
    frame = pl.DataFrame(rows, schema=SCHEMA)
    return frame.with_columns(severity=read_severity())


def _read_document(document: Any, node: str | None, is_log: bool) -> Iterator[dict[str, str | None]]:
    """Yield the cells of the events or records in a document; none for what is neither."""
    if is_log:
        records: list[Mapping] = [*explode_records(document)]
        yield from (_read_record(record, node) for record in records)
    else:
        records = [*_list_events(document)]
        yield from (_read_event(event, node) for event in records)
    if not records:
        # A monitor that has seen nothing writes an empty list.
        is_empty = document is not None and not is_log
        yield {"node": node, "own_kind": "note"} if is_empty else {}


def _read_record(fields: Mapping, node: str | None) -> dict[str, str | None]:
    message = fields.get("message")
    text = decode_message(message) if isinstance(message, list) and message else message
    texts = {name: _text(fields.get(name)) for name in ("node", "time")}
    return {"node": texts["node"] or node, "time": texts["time"], "message": (_text(text) or "").strip() or None}


def _list_events(document: Any) -> Iterator[Mapping]:
    """Yield the events in a document: of lists, of `events` and `items`, and of `spec` and the like."""
    if isinstance(document, list):
        if any("metric" in item for item in document if isinstance(item, dict)):
            yield from _list_samples(document)
            return
        for item in document:
            yield from _list_events(item)
    elif isinstance(document, dict):
        keys = ("spec", "healthevent", "healthEvent", "_source", "data", "object")
        inner = next((document[key] for key in keys if isinstance(document.get(key), dict)), None)
        lists = [document[key] for key in ("events", "items", "result") if isinstance(document.get(key), list)]
        if "metric" in document:
            yield from _list_samples([document])
        elif lists:
            shared = {key: document[key] for key in ("component", "node", "nodeName") if key in document}
            for event in _list_events(lists[0]):
                yield {**shared, **event}
        elif inner is not None:
            yield from _list_events(inner)
        else:
            yield document
            # Kubernetes counts repeats of an event between two times.
            first = document.get("firstTimestamp")
            if first and first != document.get("lastTimestamp"):
                yield {**document, "lastTimestamp": first}


def _list_samples(series: Iterable) -> Iterator[Mapping]:
    """Yield events of DCGM's metric with the last XID of each GPU: an XID that changes is an error.

    The exporter may write the metric only after the first XID of a GPU. Of one that is there from the start of the
    range the time is not known. Counters rise, and have the XID, or the node problem detector's reason, as a label.
    """
    samples: dict[tuple[str, str | None, str | None], list[tuple[float, float]]] = {}
    for item in series:
        metric = {key.lower(): value for key, value in item["metric"].items()}
        node = next((metric[key] for key in _METRIC_NODES if key in metric), "").partition(":")[0]
        gpu = metric.get("pci_bus_id") or metric.get("gpu") or metric.get("uuid")
        severity = "warning" if "reason" in metric else "error"
        label = f"XID {metric['xid']}" if "xid" in metric else metric.get("reason")
        pairs = item.get("values", ())
        if "timestamps" in item:  # VictoriaMetrics has milliseconds
            pairs = [(time / 1000, value) for time, value in zip(item["timestamps"], pairs, strict=False)]
        samples.setdefault((node, gpu, label), []).extend((float(time), float(value)) for time, value in pairs)
    first = min((min(pairs)[0] for pairs in samples.values() if pairs), default=0)
    for (node, gpu, label), pairs in samples.items():
        previous = None
        for time, value in sorted(pairs):
            is_new = value > 0 and (time > first if previous is None else value != previous)
            is_new &= label is None or previous is None or value > previous
            code = (label or f"XID {value:.0f}") if is_new else None
            yield {"node": node or None, "gpu": gpu, "time": str(time), "name": code, "type": severity}
            previous = value


def _read_event(event: Mapping, node: str | None) -> dict[str, str | None]:
    plain = {key.lower(): value for key, value in event.items()}  # MongoDB has small letters only
    if "checkname" in plain:
        return _read_nvsentinel(plain)
    fields = name_fields(event)
    if "involvedobject.kind" in fields or "regarding.kind" in fields:
        return _read_kubernetes(fields)
    name, message = _text(fields.get("name")), _text(fields.get("message"))
    # gpud writes an XID as "XID 79 ... detected on GPU PCI:0000:05:00"; its name is only error_xid.
    is_own = "xid" in (name or "").lower() and not re.fullmatch("XID [0-9]+", name or "")
    return {
        "node": _text(fields.get("node")) or node,
        "time": _text(fields.get("time")),
        "code": None if is_own else name,
        "gpu": _text(fields.get("gpu")) or _find_gpu(message),
        "message": message,
        "severity": _text(fields.get("type")),
    }


def _find_gpu(message: str | None) -> str | None:
    """Return the GPU in a monitor's message: "PCI:0000:05:00", or the number in "GPU 3"."""
    gpu = re.search(r"\b(PCI:[0-9A-Fa-f:.]+)|\bGPU[ :]([0-9]+)\b", message or "")
    return (gpu[1] or gpu[2]).rstrip(".:") if gpu else None


def _read_kubernetes(fields: Mapping) -> dict[str, str | None]:
    """Read an event of Kubernetes about a node, as of the node problem detector; its message has the kernel's line."""
    is_node = "Node" in (fields.get("involvedobject.kind"), fields.get("regarding.kind"))
    times = ("lasttimestamp", "series.lastobservedtime", "time", "deprecatedlasttimestamp", "firsttimestamp")
    message = _text(fields.get("message") or fields.get("note"))
    text = f"{_text(fields.get('reason'))} {message}"
    xid = _XID_WORD.search(text)
    return {
        "node": _text(fields.get("involvedobject.name") or fields.get("regarding.name")) if is_node else None,
        "time": next((time for key in times if (time := _text(fields.get(key)))), None),
        "code": f"XID {xid[1]}" if xid and "NVRM: Xid" not in text else None,
        "gpu": _find_gpu(message),
        "message": message,
        "own_kind": None if is_node else "note",
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
        "node": _text(fields.get("nodename")),
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
