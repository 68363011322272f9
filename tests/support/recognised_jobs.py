"""The jobs of a file as `ttf report FILE` reads it, without a run of the workflow."""

from pathlib import Path

import polars as pl
from format_tables import FILES, FORMATS, derive_table
from ttf.formats.protocol import load_schemas_and_readers
from ttf.raw.ingest import ingest
from ttf.study.recognition.format_declarations import read_schema_text
from ttf.study.recognition.recognise import recognise
from ttf.study.trace_files import find_raw_tables


def read_recognised(data: Path, folder: Path, max_share: float = 0.01) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the jobs and the quarantine of a file or folder; folder: for the raw table."""
    trace = recognise(data)
    assert not trace.missing, trace.missing
    entry, format_ = trace.entry, trace.entry["format"]
    schema = "" if "mapping" in entry else read_schema_text(FILES[format_])
    schemas, readers = load_schemas_and_readers(FORMATS[format_]["reader"], entry, schema)
    table = next(iter(schemas))
    files = find_raw_tables(trace.name, entry, FORMATS)[table]
    _, quarantine = ingest({table: list(map(Path, files))}, schemas, folder, max_share, readers)
    jobs = derive_table(format_, "jobs", {table: pl.scan_parquet(folder / f"{table}.parquet")}, entry)
    return jobs.lazy().collect(), quarantine
