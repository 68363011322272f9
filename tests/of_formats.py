"""What tests need of a format: the schema of its raw tables, and the tables that its code makes of them."""

from dataclasses import replace

import polars as pl
import yaml
from study.formats import declarations, load_formats, meaning_of, schema_text
from ttf.formats.protocol import Source, code_of
from ttf.raw_tables import table_schemas

FORMATS = load_formats()
FILES = declarations()


def raw_schemas(name):
    """Table -> the schema of a format's raw table."""
    return table_schemas(yaml.safe_load(schema_text(FILES[name])))


def table_of(name, product, raw, entry=None):
    """A common table (jobs, attempts, placements, lives, nodes) of a trace, from its typed raw tables.

    raw: the tables by name. entry: the trace's entry in the registry.
    """
    about = FORMATS[name]
    format_ = code_of(about["code"])
    source = Source(raw, meaning_of(entry or {}, about))
    if format_.records:
        source = replace(source, records=format_.records(source))
    if product == "placements" and format_.attempts:
        source = replace(source, attempts=format_.attempts(source).lazy())
    return getattr(format_, product)(source)


def scanned(folder, *names):
    """The typed raw tables in a folder."""
    return {name: pl.scan_parquet(folder / f"{name}.parquet") for name in names}
