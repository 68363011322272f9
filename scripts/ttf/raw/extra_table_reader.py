"""Define the schemas and readers of the raw tables of `ttf.raw.extra_tables`, which any trace may have."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ttf.engine.storage.on_disk import scan_parquet
from ttf.raw.extra_tables import SCHEMA
from ttf.raw.raw_tables import Reader, RowPair, TableSchema, apply_rules, raw_lines, read_raw_table, table_schemas

SCHEMAS = table_schemas(SCHEMA)
_LOSS = pl.col("loss").str.strip_chars().cast(pl.Float64, strict=False)


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
