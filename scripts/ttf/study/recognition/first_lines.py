"""The first line of a raw file, and whether it is the header of its table; checked before any job.

The rule is that of ingest (ttf.raw.headers). Only the start of a file is read. What its start does not show is left to
ingest.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ttf.formats.outages import units_schema
from ttf.raw import extra_tables
from ttf.raw.headers import BYTE_ORDER_MARK, LONGEST_NAME, HeaderFit, RequestedColumn, fit_header, parse_header
from ttf.raw.node_logs.layouts import detect_layout
from ttf.raw.raw_files import check_is_table, read_unpacked
from ttf.study.configuration.mapping import list_mapped_columns
from ttf.study.configuration.messages import show
from ttf.study.configuration.table_schema import load_table_schema
from ttf.study.trace_files import get_disk_path, get_member

MOST_BYTES = 1 << 16
MOST_LOGS = 100


class Layout(NamedTuple):
    """The expected start of a raw table: its columns, and how their names are written.

    header: whether there is a header row. json: whether the table is an array of objects. parquet: whether .parquet
    files are read as such. repeats: whether a column may occur twice. first: regular expressions of the first lines, if
    the file is no table.
    """

    columns: tuple[RequestedColumn, ...]
    delimiter: str = ","
    quoted: bool = False
    header: bool = True
    json: bool = False
    parquet: bool = False
    repeats: bool = False
    first: tuple[str, ...] = ()

    def fit(self, names: Sequence[str]) -> HeaderFit[RequestedColumn]:
        """Fit the names at the start of a file to the columns."""
        return fit_header(names, self.columns, self.repeats)

    def describe_problem(self, names: Sequence[str]) -> str:
        """Return what is wrong with the names of an invalid header row."""
        label = "first object" if self.json else "header row"
        return f"the {label} {self.fit(names).describe_problem(self.delimiter)}"


def build_layouts(entry: Mapping, format: Mapping) -> dict[str, Layout]:
    """Map each table of a trace to its layout, from the declaration of its format.

    entry: the trace in the registry. Raises ConfigError for an invalid schema of the entry.
    """
    layouts = {}
    if "mapping" in entry:
        columns = tuple(map(RequestedColumn, list_mapped_columns(entry["mapping"])))
        delimiter, quoted = entry.get("delimiter", ","), entry.get("quoted", False)
        layouts = {
            table: Layout(columns, delimiter, quoted, parquet=".parquet" in spec.get("every", ()))
            for table, spec in format["tables"].items()
        }
        schema = units_schema.SCHEMA
    else:
        schema = load_table_schema(entry["schema"]) if "schema" in entry else format["schema"]
    layouts |= {
        table: Layout(
            tuple(
                RequestedColumn(column["name"], column.get("also", ()), column.get("optional", False))
                for column in table_options["columns"]
            ),
            table_options.get("delimiter", ","),
            table_options.get("quoted", False),
            table_options.get("header", schema.get("header", True)),
            format["tables"][table].get("json", False),
            repeats=table_options.get("may_repeat_columns", False),
        )
        for table, table_options in schema["tables"].items()
        if table in format["tables"]
    }
    if "records" in entry:
        first = tuple(entry["records"].get("first", ["."]))
        every = (table for table, spec in format["tables"].items() if "every" in spec)
        layouts |= dict.fromkeys(every, Layout((), json=True, first=first))
    return layouts


# Layouts of the extra tables that any format may have.
_EXTRA_LAYOUTS = build_layouts({}, {"schema": extra_tables.SCHEMA, "tables": extra_tables.SCHEMA["tables"]})


def find_wrong_headers(trace: str, entry: Mapping, raw_files: Mapping, format: Mapping) -> list[str]:
    """Return a line for each raw file of a trace whose header row ingest would refuse.

    entry: the trace in the registry. raw_files: table -> files, which may not exist yet. A line names the file, the
    missing columns, the closest names and a remedy. Ingest itself reports files that are no tables, and tables behind
    others in a .tar.gz. Raises ConfigError as build_layouts.
    """
    layouts = build_layouts(entry, format) | _EXTRA_LAYOUTS
    return [
        f"registry.{trace}: {show_name(file)}: {layouts[table].describe_problem(names)} "
        f"{_suggest_remedy(trace, entry, table)}"
        for table, files in raw_files.items()
        for file in (files if layouts[table].header and not layouts[table].json else ())
        if (names := read_names(file, layouts[table])) is not None and not layouts[table].fit(names).is_valid
    ]


def find_undated_logs(trace: str, files: Sequence[str], log_times: Mapping) -> list[str]:
    """Return a line for the first log of nodes whose times have no year, or count from a start, that no key tells.

    Only the first MOST_LOGS are inspected. log_times: end_s and boots of LogOptions.
    """
    is_known = {"yearless": log_times["end_s"] is not None, "uptime": bool(log_times["boots"])}
    for file in files[:MOST_LOGS] if not all(is_known.values()) else ():
        layout = detect_layout(read_first_bytes(file) or b"")
        if layout is None or is_known.get(layout.clock, True):
            continue
        if layout.needs_boot:
            return [
                f"registry.{trace}.node_log_boot: the times in {show_name(file)} count from the start of the node, and "
                "no line says when that was. Set what uptime -s prints on the node, as in node_log_boot: "
                '"2025-05-14 08:30:00"; or write the log with dmesg -T.'
            ]
        if layout.clock == "yearless":
            day = datetime.fromtimestamp(Path(get_disk_path(file)).stat().st_mtime, UTC).date()
            return [
                f"registry.{trace}.node_log_end: the times in {show_name(file)} have no year. Set the day on which the "
                f'logs ended; by the time of the file, node_log_end: "{day}". Or write them with years: journalctl -k '
                "-o short-iso."
            ]
    return []


def _suggest_remedy(trace: str, entry: Mapping, table: str) -> str:
    if table in extra_tables.SCHEMA["tables"] | units_schema.SCHEMA["tables"]:
        return "Rename the columns, or check that this file is the right table."
    if "mapping" in entry:
        return f"Correct registry.{trace}.mapping, or check that this file is the right table."
    return (
        f"Rename the columns, or check that this file is the table {table}; or give the trace its own schema, in which "
        f"a column has also: [its name here] (registry.{trace}.schema)."
    )


# Reading files ------------------------------------------------------------------------------------------


def read_names(file: str, layout: Layout) -> list[str] | None:
    """Return the names in the header row of a file, the keys of its first JSON object, or its first fields.

    None if there is no such plain file, or if its start is not conclusive.
    """
    if layout.parquet and file.lower().endswith(".parquet"):
        return _read_parquet_names(file)
    head = read_first_bytes(file)
    return None if head is None else parse_names(head, layout)


def parse_names(head: bytes, layout: Layout) -> list[str] | None:
    """Return the names that `read_names` returns, from the first bytes of a text table; None if inconclusive."""
    is_whole, head = len(head) < MOST_BYTES, head.removeprefix(BYTE_ORDER_MARK)
    if layout.json:
        return _parse_json_names(head)
    # Ingest itself reports lines that end in CR.
    line, line_break, _ = head.replace(b"\r", b"\n").partition(b"\n")
    return parse_header(line, layout.delimiter, layout.quoted) if line_break or is_whole else None


def read_first_bytes(file: str, size: int = MOST_BYTES) -> bytes | None:
    """Return the first bytes of a raw table, unpacked; None if it is not text.

    Only plain files are opened. Of a gzip archive only the first table is read.
    """
    if get_member(file) and not get_disk_path(file).lower().endswith(".zip"):
        return None
    try:
        if not Path(get_disk_path(file)).is_file():
            return None
        with closing(read_unpacked(Path(file), size=MOST_BYTES)) as pieces:
            head = b""
            while len(head) < size and (piece := next(pieces, b"")):
                head += piece
        return head[:size] if check_is_table(Path(file), head[:MOST_BYTES]) else None
    except Exception:  # StudyError, and whatever the library raises for a damaged archive
        return None


def _parse_json_names(head: bytes) -> list[str] | None:
    text = head.decode("utf-8", errors="replace")
    if start := re.match(r"\s*\[\s*", text):
        with suppress(ValueError, RecursionError):
            record, _ = json.JSONDecoder().raw_decode(text, start.end())
            return list(record) if isinstance(record, dict) else None
    return None


def _read_parquet_names(file: str) -> list[str] | None:
    import polars as pl  # takes 0.1 s, and only such files need it

    if not Path(file).is_file():
        return None
    try:
        with Path(file).open("rb") as source:
            return list(pl.read_parquet_schema(source))
    except (Exception, pl.exceptions.PanicException):
        return None


def show_name(name: str) -> str:
    """Return a name of a file or column that is safe to show, as names in a trace are untrusted."""
    return name if name.isprintable() and len(name) <= 4 * LONGEST_NAME else show(name)
