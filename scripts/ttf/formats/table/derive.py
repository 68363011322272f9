"""Derive the jobs of a table of any layout, by translating its mapping to the columns of the typed raw table."""

from dataclasses import replace
from typing import Any

import polars as pl
from ttf.formats import column_mapping
from ttf.formats.protocol import Format, Source
from ttf.formats.table.read import (
    COLUMNS,
    EXTRAS,
    MEMORY_BYTES,
    STATUS_PHRASE,
    TABLE,
    select_read_columns,
    stored_name,
)


def jobs(source: Source) -> pl.DataFrame:
    """Return the jobs as `column_mapping.jobs` does with the `mapping` of the registry; EXTRAS are extras if mapped."""
    table_mapping = source.meaning["mapping"]
    mapping: dict[str, Any] = {
        key: stored_name(key, part) for key, part in table_mapping.items() if key in COLUMNS and key not in EXTRAS
    }
    if "submit" in mapping and "submit" not in select_read_columns(table_mapping):
        mapping["submit"] = mapping["start"]
    mapping["status"] = {"column": mapping["status"], "first_word": mapping["status"] == STATUS_PHRASE}
    if mapping.get("memory") == MEMORY_BYTES:
        mapping["memory"] = {"column": MEMORY_BYTES, "unit": "B"}
    mapping |= {"table": TABLE, "attempts": 1, "extras": [COLUMNS[key] for key in EXTRAS if key in table_mapping]}
    return column_mapping.jobs(replace(source, meaning=dict(source.meaning) | {"mapping": mapping}))


FORMAT = Format(jobs=jobs)
