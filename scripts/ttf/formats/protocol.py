"""What a format may give, and what it is given: the one interface between the study and the code of a format."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.partitions import Make, Results
from ttf.raw import extra_table_reader
from ttf.raw.raw_tables import Reader, TableSchema, table_schemas


@dataclass(frozen=True)
class Source:
    """What the tables of a trace are derived from.

    raw: its typed raw tables by name. meaning: the mapping, words and zone by which they are read (meaning_of in
    workflow/study/format_declarations.py). records, jobs, attempts, placements, results: what was made of them before,
    see Format.
    spilled: a folder for a while; None where all may be held.
    """

    raw: Mapping[str, pl.LazyFrame]
    meaning: Mapping = field(default_factory=dict)
    records: Any = None
    jobs: pl.LazyFrame | None = None
    attempts: pl.LazyFrame | None = None
    placements: pl.LazyFrame | None = None
    results: Results | None = None
    spilled: Path | None = None


Rows = pl.DataFrame | pl.LazyFrame
Derive = Callable[[Source], Rows]


@dataclass(frozen=True)
class Format:
    """The code of a format: functions of a Source. None: the format has no such table, and its declaration says so.

    jobs, attempts, placements, lives, nodes: the common tables, with the columns of ttf.records.record_contracts.
    outage_records: a row per record of an outage, with RECORD_COLUMNS of ttf.records.outages.outage_records. exposure:
    the columns of EXPOSURE; None where the trace does not tell which units were watched, and since when. Both are given
    the placements of a trace with jobs.
    nodes: where no raw table is that of the nodes. records: of a format with attempts what all its tables
    come from, worked out once and given to them. jobs_on_disk: of these, jobs are read from the disk, so that they may
    be read several times. placements_of_attempts: placements come from the attempts instead, so that the records need
    not be held any longer. by_partition: of a large trace, what is made of each partition for its jobs, and given to
    them as `results`.
    """

    jobs: Derive | None = None
    attempts: Derive | None = None
    placements: Derive | None = None
    lives: Derive | None = None
    nodes: Derive | None = None
    outage_records: Derive | None = None
    exposure: Derive | None = None
    records: Callable[[Source], Any] | None = None
    jobs_on_disk: bool = False
    placements_of_attempts: bool = False
    by_partition: Make | None = None


@dataclass(frozen=True)
class Reading:
    """How raw tables are read that are no plain tables of lines: readers by table.

    schema: the schema of the raw tables from the trace's entry in the registry, of a format that has none of its own.
    """

    readers: Mapping[str, Reader]
    schema: Callable[[Mapping], dict] | None = None


def reading_in(module: str | None) -> Reading:
    """The reader in a module that a format declares; of a format without one the plain one."""
    return importlib.import_module(module).READING if module else Reading({})


def schemas_and_readers(
    reader: str | None, entry: Mapping, schema: str
) -> tuple[dict[str, TableSchema], Mapping[str, Reader]]:
    """Table -> schema, and table -> reader (of those that are no plain tables of lines); also those of
    ttf.raw.extra_tables.

    reader: the module that the format declares. entry: what the registry says of how the trace is read. In the format
    table the schema follows from its mapping; else it is the YAML text `schema`, and `times` may name the zone of its
    times. Raises StudyError as ttf.formats.table.read.schema_document does.
    """
    reading = reading_in(reader)
    readers = extra_table_reader.READERS | dict(reading.readers)
    if "mapping" in entry:
        return table_schemas(reading.schema(entry)) | extra_table_reader.SCHEMAS, readers
    schemas = table_schemas(yaml.safe_load(schema))
    if zone := entry.get("times", {}).get("zone"):
        for name, table in schemas.items():
            columns = (replace(column, zone=zone) if column.type == "time" else column for column in table.columns)
            schemas[name] = replace(table, columns=tuple(columns))
    return schemas | extra_table_reader.SCHEMAS, readers


def code_of(module: str) -> Format:
    """The code in a module that a format declares, one of a closed list: the registry's schema admits no other."""
    return importlib.import_module(module).FORMAT


def format_and_source(folder: str | Path, code: str, meaning: Mapping, tables: Iterable[str]) -> tuple[Format, Source]:
    """The code in a module, and what it is given: the typed raw tables with these names in the folder, and meaning."""
    raw = {name: scan_parquet(Path(folder) / f"{name}.parquet") for name in tables}
    return code_of(code), Source(raw, meaning)
