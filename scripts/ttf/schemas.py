"""The schemas and readers of a trace's raw tables, as the rules that read them need both."""

import importlib
from collections.abc import Mapping
from pathlib import Path

import yaml

from ttf.raw_tables import Reader, TableSchema, table_schemas


def schemas_and_readers(
    reader: str | None, entry: Mapping, schema: str | Path | None
) -> tuple[dict[str, TableSchema], Mapping[str, Reader] | None]:
    """Table -> schema, and table -> reader (None where every table is a plain one of lines).

    reader: the module under ttf/traces/ that formats.yaml names, one of a closed list. entry: what the registry says of
    the columns of a trace in the format table, whose schema follows from it; of another nothing, and the schema is in
    the file `schema`. Raises StudyError as ttf.traces.table.schema_document does.
    """
    module = importlib.import_module(f"ttf.traces.{reader}") if reader else None
    document = module.schema_document(entry) if entry else yaml.safe_load(Path(schema).read_text(encoding="utf-8"))
    return table_schemas(document), module.READERS if module else None
