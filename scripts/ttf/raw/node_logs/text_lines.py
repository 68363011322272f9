"""Lines of text and of the journal's JSON as columns: node, hour, minute and the whole line; and their messages."""

import json
from typing import Any

import polars as pl

from ttf.raw.line_columns import format_minute, split_heads
from ttf.raw.node_logs.layouts import JSON_HOST, JSON_TIME, Layout


def parse_lines(lines: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Return line, node, hour, minute and text of lines (line: number, text); hour is null where it cannot be read."""
    return _parse_journal(lines) if layout.name == "journal_json" else split_heads(lines, layout.head)


def _parse_journal(lines: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("text")
    time_s = text.str.extract(rf'"{JSON_TIME}" ?: ?"?([0-9]{{10}})[0-9]{{6}}"?').cast(pl.Int64)
    is_whole = text.str.strip_chars_end().str.ends_with("}")
    return lines.select(
        "line",
        "text",
        node=text.str.extract(rf'"{JSON_HOST}" ?: ?"([A-Za-z0-9][A-Za-z0-9._-]*)"'),
        hour=pl.when(is_whole).then((time_s // 3600).cast(pl.String)),
        minute=format_minute(time_s),
    )


def read_messages(texts: pl.Series, layout: Layout) -> pl.Series:
    """Return the messages in lines, without their heads and programs; null for a record of the journal without one."""
    if layout.name == "journal_json":
        return pl.Series([_read_message(record) for record in texts], dtype=pl.String)
    lines = pl.DataFrame({"line": pl.int_range(len(texts), eager=True), "text": texts})
    return strip_uptime(split_heads(lines, layout.head, has_rests=True)["rest"])


def strip_uptime(messages: pl.Series) -> pl.Series:
    """Remove the kernel's own time since its start, which syslog keeps."""
    return messages.str.replace(r"^\[ *[0-9]+\.[0-9]+\] ", "")


def _read_message(record: str) -> str | None:
    try:
        return decode_message(json.loads(record[record.find("{") :]).get("MESSAGE"))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def decode_message(message: Any) -> str | None:
    """Return a message of the journal, which may be a list of bytes."""
    return bytes(message).decode("utf-8", "replace") if isinstance(message, list) else message and str(message)
