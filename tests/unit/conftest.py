"""Fixtures shared by unit tests: the schemas of raw tables and a function that ingests a few lines."""

import pytest
from format_tables import raw_schemas
from ttf.raw import raw_files
from ttf.raw.ingest import ingest


@pytest.fixture(scope="session")
def schemas():
    """Format -> table -> schema."""
    return {format_: raw_schemas(format_) for format_ in ("openb", "pai2020")}


@pytest.fixture
def ingested(tmp_path, schemas):
    """Return a function that ingests text or bytes into tmp_path/raw and returns the account and the quarantine."""

    def run(format_, max_share=1.0, **tables):
        files = {}
        for name, content in tables.items():
            files[name] = tmp_path / f"{name}.csv"
            files[name].write_bytes(content if isinstance(content, bytes) else content.encode())
        (tmp_path / "raw").mkdir(exist_ok=True)
        return ingest({table: [path] for table, path in files.items()}, schemas[format_], tmp_path / "raw", max_share)

    return run


@pytest.fixture
def small_blocks(monkeypatch):
    """Read every table in blocks of 64 bytes, so that small tables span several blocks as large ones do."""
    monkeypatch.setattr(raw_files, "BLOCK_BYTES", 64)
