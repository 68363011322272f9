"""Define the schemas and readers of the raw tables of `ttf.raw.extra_tables`, which any trace may have."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from ttf.engine.storage.on_disk import scan_parquet
from ttf.raw.extra_tables import SCHEMA
from ttf.raw.raw_tables import Reader, RowPair, TableSchema, apply_rules, raw_lines, read_raw_table, table_schemas

SCHEMAS = table_schemas(SCHEMA)
_LOSS = pl.col("loss").str.strip_chars().cast(pl.Float64, strict=False)


def add_extra_tables(schemas: dict[str, TableSchema]) -> dict[str, TableSchema]:
    """Add SCHEMAS to those of a trace. If the trace's times count from 1970, so do theirs."""
    if not any(column.type == "time" for table in schemas.values() for column in table.columns):
        return schemas | SCHEMAS
    return schemas | {
        name: replace(table, columns=tuple(replace(c, minimum=None) if c.type == "time" else c for c in table.columns))
        for name, table in SCHEMAS.items()
    }


def _read_losses(path: Path, schema: TableSchema) -> Iterator[RowPair]:
    return apply_rules(read_raw_table(path, schema), path, schema, [("not_a_number", "loss", _LOSS.is_null())])


READERS = {"loss": Reader(_read_losses, raw_lines)}


def health_events(raw: str | Path) -> pl.DataFrame:
    """Read the health events in a folder of typed raw tables: node, time_s (Int64), code, severity, in file order.

    time_s: on the trace's clock, for most traces since 1970. severity and code are free texts; severity may be blank.
    """
    return scan_parquet(Path(raw) / "health_event.parquet").select("node", "time_s", "code", "severity").collect()


def losses(raw: str | Path) -> pl.DataFrame:
    """Read the losses in a folder of typed raw tables: job, epoch, loss (float, may be nan), time_s, in file order."""
    return scan_parquet(Path(raw) / "loss.parquet").select("job", "epoch", loss=_LOSS, time_s="time_s").collect()
