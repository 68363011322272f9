"""The schemas and readers of a trace's raw tables, as the rules that read them need both."""

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from ttf.raw_tables import Reader, TableSchema, table_schemas


def schemas_and_readers(
    reader: str | None, entry: Mapping, schema: str | Path | None
) -> tuple[dict[str, TableSchema], Mapping[str, Reader] | None]:
    """Table -> schema, and table -> reader (None where every table is a plain one of lines).

    reader: the module under ttf/traces/ that formats.yaml names, one of a closed list. entry: what the registry says of
    how the trace is read. In the format table the schema follows from its mapping; else it is in the file `schema`, and
    `times` may name the zone of its times. Raises StudyError as ttf.traces.table.schema_document does.
    """
    module = importlib.import_module(f"ttf.traces.{reader}") if reader else None
    readers = module.READERS if module else None
    if "mapping" in entry:
        return table_schemas(module.schema_document(entry)), readers
    schemas = table_schemas(yaml.safe_load(Path(schema).read_text(encoding="utf-8")))
    zone = entry.get("times", {}).get("zone")
    return {name: in_zone(schema, zone) for name, schema in schemas.items()} if zone else schemas, readers


def in_zone(schema: TableSchema, zone: str) -> TableSchema:
    """The schema with its times in another zone than its file says."""
    columns = (replace(column, zone=zone) if column.type == "time" else column for column in schema.columns)
    return replace(schema, columns=tuple(columns))
