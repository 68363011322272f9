"""Define the interface between the study and the code of a format."""

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
from ttf.records.jobs import Rows


@dataclass(frozen=True)
class Source:
    """The inputs for deriving the tables of a trace.

    raw: the typed raw tables by name. meaning: mapping, words and zone of the raw tables
    (ttf.study.recognition.format_declarations.select_meaning). records, jobs, attempts, placements, results: products
    of earlier steps, see Format; empty before them. spilled: a temporary folder, or None if all may be held in memory.
    """

    raw: Mapping[str, pl.LazyFrame]
    meaning: Mapping = field(default_factory=dict)
    records: Any = None
    jobs: pl.LazyFrame = field(default_factory=pl.LazyFrame)
    attempts: pl.LazyFrame = field(default_factory=pl.LazyFrame)
    placements: pl.LazyFrame | None = None
    results: Results = field(default_factory=dict)
    spilled: Path | None = None


Derive = Callable[[Source], Rows]


@dataclass(frozen=True)
class Format:
    """The code of a format: functions of a Source. None: the format has no such table, as its declaration says.

    jobs, attempts, placements, durations, nodes: the common tables, with the columns of ttf.records.record_contracts.
    nodes: only if no raw table lists the nodes.
    outage_records: a row per record of an outage, with RECORD_COLUMNS of ttf.records.outages.outage_records. exposure:
    the columns of EXPOSURE, or None if the trace does not say which units were under observation, and when. Both
    functions get the placements of a trace with jobs.
    records: in a format with attempts, the common source of all tables, computed once. jobs_on_disk: the jobs are
    already on the disk and can be read several times. placements_of_attempts: placements are derived from the attempts,
    so that the records can be freed. by_partition: in a large trace, computes the `results` of each partition for the
    jobs.
    """

    jobs: Derive | None = None
    attempts: Derive | None = None
    placements: Derive | None = None
    durations: Derive | None = None
    nodes: Derive | None = None
    outage_records: Derive | None = None
    exposure: Derive | None = None
    records: Callable[[Source], Any] | None = None
    jobs_on_disk: bool = False
    placements_of_attempts: bool = False
    by_partition: Make | None = None


@dataclass(frozen=True)
class Reading:
    """The readers, by table, of raw tables that are no plain tables of lines.

    schema: builds the schema of the raw tables from the trace's registry entry, if the format has no fixed schema.
    build_readers: builds the readers from that entry, if they depend on it.
    """

    readers: Mapping[str, Reader]
    schema: Callable[[Mapping], dict] | None = None
    build_readers: Callable[[Mapping], Mapping[str, Reader]] | None = None


def load_reading(module: str | None) -> Reading:
    """Return the Reading of the module that a format declares, or an empty one."""
    return importlib.import_module(module).READING if module else Reading({})


def load_schemas_and_readers(
    reader: str | None, entry: Mapping, schema: str
) -> tuple[dict[str, TableSchema], Mapping[str, Reader]]:
    """Return table -> schema, and table -> reader for tables that are no plain tables of lines.

    Both include ttf.raw.extra_tables.

    reader: the module that the format declares. entry: the trace's entry in the registry. If it has a mapping, the
    schema follows from it; else the schema is the YAML text `schema`, and `times` may name the zone of its times.
    Raises StudyError as ttf.formats.table.read.schema_document does.
    """
    reading = load_reading(reader)
    readers = extra_table_reader.READERS | dict(
        reading.build_readers(entry) if reading.build_readers else reading.readers
    )
    if reading.schema and "mapping" in entry:
        return extra_table_reader.add_extra_tables(table_schemas(reading.schema(entry))), readers
    schemas = table_schemas(yaml.safe_load(schema))
    if zone := entry.get("times", {}).get("zone"):
        for name, table in schemas.items():
            columns = (replace(column, zone=zone) if column.type == "time" else column for column in table.columns)
            schemas[name] = replace(table, columns=tuple(columns))
    return extra_table_reader.add_extra_tables(schemas), readers


def load_format(module: str) -> Format:
    """Return the Format of a module that a format declares; the registry's schema admits a closed list of modules."""
    return importlib.import_module(module).FORMAT


def load_format_and_source(
    folder: str | Path, code: str, meaning: Mapping, tables: Iterable[str]
) -> tuple[Format, Source]:
    """Return the Format of a module and its Source, with these typed raw tables of the folder, and meaning."""
    raw = {name: scan_parquet(Path(folder) / f"{name}.parquet") for name in tables}
    return load_format(code), Source(raw, meaning)
