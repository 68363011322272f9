"""File and folder names with wildcard characters are read literally."""

import re
from pathlib import Path

import polars as pl
import pytest
from ttf.engine.storage.on_disk import read_csv, read_parquet, scan_csv, scan_ipc, scan_parquet
from ttf.engine.storage.tables import scan_columns

ROOT = Path(__file__).parents[2]
BY_PATH = re.compile(r"\bpl\.(scan|read)_(parquet|csv|ipc|ipc_stream|ndjson|lines|avro|delta|excel)\(")
NAMES = ("d[1]", "d*", "d?", "d[!x]", "zone=1")


@pytest.fixture
def folders(tmp_path):
    """Make folders whose names match each other as patterns; each has tables with the folder's name."""
    for name in ("d1", *NAMES):
        (tmp_path / name).mkdir()
        frame = pl.DataFrame({"name": [name]})
        frame.write_parquet(tmp_path / name / "t.parquet")
        frame.write_ipc(tmp_path / name / "t.ipc")
        frame.write_csv(tmp_path / name / "t.csv")
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_a_file_name_is_not_read_as_a_pattern(folders, name):
    folder = folders / name
    for read in (read_csv, scan_csv):
        assert read(folder / "t.csv").lazy().collect().rows() == [(name,)]
    for read in (read_parquet, scan_parquet):
        assert read(folder / "t.parquet").lazy().collect().rows() == [(name,)]
    assert scan_ipc(folder / "t.ipc").collect().rows() == [(name,)]
    assert scan_columns(folder / "t.parquet", ["name"]).collect().rows() == [(name,)]


def test_only_one_module_opens_tables_by_path():
    sources = [*ROOT.glob("scripts/**/*.py"), *ROOT.glob("workflow/**/*.py"), *ROOT.glob("workflow/**/*.smk")]
    offenders = [str(file.relative_to(ROOT)) for file in sources if BY_PATH.search(file.read_text(encoding="utf-8"))]
    assert offenders == []
