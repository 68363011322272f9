"""The schemas and readers of a trace's raw tables, as the rules that read them need both."""

from collections.abc import Mapping
from dataclasses import replace

import yaml

from ttf.formats.protocol import reading_in
from ttf.raw_tables import Reader, TableSchema, table_schemas


def schemas_and_readers(
    reader: str | None, entry: Mapping, schema: str
) -> tuple[dict[str, TableSchema], Mapping[str, Reader]]:
    """Table -> schema, and table -> reader (of those that are no plain tables of lines).

    reader: the module that the format declares. entry: what the registry says of how the trace is read. In the format
    table the schema follows from its mapping; else it is the YAML text `schema`, and `times` may name the zone of its
    times. Raises StudyError as ttf.formats.table.read.schema_document does.
    """
    reading = reading_in(reader)
    if "mapping" in entry:
        return table_schemas(reading.schema(entry)), reading.readers
    schemas = table_schemas(yaml.safe_load(schema))
    zone = entry.get("times", {}).get("zone")
    return {name: in_zone(schema, zone) for name, schema in schemas.items()} if zone else schemas, reading.readers


def in_zone(schema: TableSchema, zone: str) -> TableSchema:
    """The schema with its times in another zone than its file says."""
    columns = (replace(column, zone=zone) if column.type == "time" else column for column in schema.columns)
    return replace(schema, columns=tuple(columns))
