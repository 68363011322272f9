"""The declaration of a format agrees with its code, and a single file defines a new format."""

import polars as pl
import pytest
import yaml
from format_tables import FILES, FORMATS, MADE_UP, RUNS
from ttf.formats.protocol import Reading, Source, load_format, load_reading
from ttf.raw.ingest import ingest
from ttf.raw.raw_tables import table_schemas
from ttf.records.jobs import JOB_COLUMNS, OUTCOMES, read_nodes
from ttf.study.configuration.documents import load_document
from ttf.study.recognition.format_declarations import FOLDER, load_formats, read_schema_text, select_meaning


@pytest.mark.parametrize("name", FORMATS)
def test_a_declaration_keeps_to_its_schema(name):
    declaration = load_document(FILES[name], "format.schema.yaml")
    if "schema" in declaration:
        assert list(declaration["schema"]["tables"]) == list(declaration["tables"])
        assert list(declaration)[-1] == "schema", "the code reads only the keys before it"
    assert "sample" not in declaration or set(declaration["sample"]["files"]) >= set(declaration["tables"])


@pytest.mark.parametrize("name", FORMATS)
def test_the_declaration_matches_the_code(name):
    declaration, format_ = FORMATS[name], load_format(FORMATS[name]["code"])
    parts = {
        key: getattr(format_, key) is not None for key in ("jobs", "attempts", "placements", "durations", "records")
    }
    assert parts == {
        "jobs": declaration["gives"] == "jobs",
        "attempts": "attempts" in declaration,
        "placements": "placements" in declaration,
        "durations": declaration["gives"] == "durations",
        "records": "attempts" in declaration,
    }
    assert bool(format_.by_partition) == ("large" in declaration)
    assert not (format_.nodes and "node_table" in declaration), "two sources of the nodes"
    assert set(declaration.get("outcomes", [])) <= set(OUTCOMES)
    reading = load_reading(declaration.get("reader"))
    assert isinstance(reading, Reading)
    assert set(reading.readers) <= set(declaration["tables"])
    assert (reading.schema is None) == ("schema" in declaration)


def test_format_folders_hold_only_declared_code():
    for name, file in FILES.items():
        declared = {value.rpartition(".")[2] for key, value in FORMATS[name].items() if key in ("code", "reader")}
        modules = {path.stem for path in file.parent.glob("*.py")} if file.name == "format.yaml" else set()
        assert {"derive", "read"} & modules == {"derive", "read"} & declared, name
    assert not [path for path in FOLDER.iterdir() if path.is_dir() and path.name[0] != "_" and path.name not in FILES]


def test_one_file_defines_a_format(tmp_path):
    (tmp_path / "made_up.yaml").write_text(MADE_UP)
    declaration = load_formats(tmp_path)["made_up"]
    schemas = table_schemas(yaml.safe_load(read_schema_text(tmp_path / "made_up.yaml")))
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "hosts.csv").write_text("host,cards\nn1,8\n")
    files = {name: [tmp_path / f"{name}.csv"] for name in ("runs", "hosts")}
    ingest(files, schemas, tmp_path, 0.0)
    raw = {name: pl.scan_parquet(tmp_path / f"{name}.parquet") for name in files}
    jobs = load_format(declaration["code"]).jobs(Source(raw, select_meaning({}, declaration)))
    extras = {"file": pl.Int32, "note": pl.String, "is_test": pl.Boolean}
    assert jobs.schema == pl.Schema(JOB_COLUMNS | extras)
    columns = ("outcome", "status_raw", "start_s", "end_s", "runtime_s", "queue_s")
    assert jobs.select(columns).rows() == [
        ("success", "ok", 10, 130, 120, 10),
        ("failure", "broken by 7", 20, 80, 60, 15),
        ("waiting", "queued", None, None, None, None),
        ("unknown", "strange", 30, 570, 540, 23),
    ]
    assert jobs.select("account", "gpu_milli", "mem_mib", "size", "nodes", "attempts", "is_test").rows() == [
        ("test", 1000, 1000, 2, 2, 1, True),
        ("lab", 4000, None, 1, 1, 1, False),
        ("lab", 8000, None, 1, None, None, False),
        ("lab", 0, None, 1, 1, 1, False),
    ]
    assert read_nodes(raw, declaration["node_table"]).rows() == [("n1", None, 8, None, None)]
