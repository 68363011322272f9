"""Read a log of a training run as a raw table: a row per event, and one for each use of its lines."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import polars as pl
from ttf.formats.protocol import Reading
from ttf.raw.raw_tables import QUARANTINED_SCHEMA, Reader, RowPair, TableSchema, raw_lines
from ttf.raw.training_logs.event_reader import read_rows
from ttf.raw.training_logs.profiles import Profiles


def read_log(path: Path, schema: TableSchema, profiles: Profiles, zone: str) -> Iterator[RowPair]:
    """Yield (events and counts of lines, no quarantined row). Each line that is not blank is in `lines` once."""
    for rows in read_rows(path, profiles, zone):
        yield rows.select(*schema.dtypes), pl.DataFrame(schema=QUARANTINED_SCHEMA)


def build_readers(entry: Mapping) -> dict[str, Reader]:
    """Return the reader for the profiles and the zone of a trace."""
    options = entry["training_logs"]
    profiles = Profiles.from_options(options["profiles"])
    return {"logs": Reader(partial(read_log, profiles=profiles, zone=options["zone"]), raw_lines)}


READING = Reading({}, build_readers=build_readers)
