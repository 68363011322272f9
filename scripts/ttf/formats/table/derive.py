"""The jobs of a table of any layout: those of a mapping on the columns that its raw table is stored with."""

from dataclasses import replace

import polars as pl
from ttf.formats import column_mapping
from ttf.formats.protocol import Format, Source
from ttf.formats.table.read import BYTES, COLUMNS, EXTRAS, PHRASE, TABLE, stored_as


def jobs(source: Source) -> pl.DataFrame:
    """As `mapped.jobs`, by the `mapping` of the registry; reason and exit_code are extras where they are mapped."""
    theirs = source.meaning["mapping"]
    mapping = {key: stored_as(key, part) for key, part in theirs.items() if key in COLUMNS and key not in EXTRAS}
    mapping["status"] = {"column": mapping["status"], "first_word": mapping["status"] == PHRASE}
    if mapping.get("memory") == BYTES:
        mapping["memory"] = {"column": BYTES, "unit": "B"}
    mapping |= {"table": TABLE, "attempts": 1, "extras": [key for key in EXTRAS if key in theirs]}
    return column_mapping.jobs(replace(source, meaning=dict(source.meaning) | {"mapping": mapping}))


FORMAT = Format(jobs=jobs)
