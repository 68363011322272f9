"""Schemas of raw tables: shipped schemas are valid, adopted ones are checked, and changes are reported."""

import dataclasses
from pathlib import Path

import pytest
import yaml
from format_tables import FILES, FORMATS
from ttf.raw.raw_tables import Column, TableSchema, table_schemas
from ttf.study.configuration.documents import load_schema
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.registry_options import check_windows
from ttf.study.configuration.table_schema import find_contradictions, resolve_schema
from ttf.study.configuration.yaml_files import load_yaml

SHIPPED = {name: FILES[name] for name, declaration in FORMATS.items() if "schema" in declaration}
OPENB = FILES["openb"]


@pytest.mark.parametrize("path", SHIPPED.values(), ids=SHIPPED)
def test_shipped_schemas_are_valid(path):
    assert table_schemas(load_yaml(path)["schema"])
    assert not list(find_contradictions(load_yaml(path)["schema"]))
    assert yaml.safe_load(resolve_schema("t", {}, path)) == load_yaml(path)["schema"]


def test_the_closed_schema_knows_the_keys_of_the_study():
    (table,) = load_schema("table.schema.yaml")["properties"]["tables"]["patternProperties"].values()
    column = table["properties"]["columns"]["items"]
    # How long a text may be is for a reader to say.
    assert column["properties"].keys() == {field.name.rstrip("_") for field in dataclasses.fields(Column)} - {"longest"}
    assert table["properties"].keys() == {field.name for field in dataclasses.fields(TableSchema)} - {"name"}


@pytest.fixture
def adopted(tmp_path, monkeypatch):
    """Adopt a changed copy of openb's schema: the text in force, or the message."""
    monkeypatch.chdir(tmp_path)

    def run(change=lambda document: None, path="mine.yaml"):
        document = load_yaml(OPENB)["schema"]
        change(document)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(yaml.safe_dump(document, sort_keys=False))
        try:
            return resolve_schema("t", {"schema": path}, OPENB)
        except ConfigError as error:
            return str(error)

    return run


def column(document, name, table="pods"):
    return next(column for column in document["tables"][table]["columns"] if column["name"] == name)


def test_a_schema_is_adopted_by_its_name(adopted):
    def wider(document):
        column(document, "pod_phase")["values"].append("Interrupted")
        column(document, "gpu_milli")["maximum"] = 1500

    assert adopted(wider) == Path("mine.yaml").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: column(d, "qos").update(minimum=1),
            "qos.minimum: works with the type seconds or number or count or time or clock or duration only; here it is",
        ),
        (lambda d: column(d, "qos").update({"as": "name"}), "tables.pods: two columns have the as 'name'"),
        (lambda d: column(d, "gpu_milli").update(minimum=2000), "the minimum is larger than the maximum"),
        (lambda d: d["tables"].pop("nodes"), "tables: the table nodes is missing; the format reads it"),
        (lambda d: column(d, "cpu_milli").update(scale=1000), "tables.pods.cpu_milli: scale must be 1"),
        (lambda d: column(d, "qos").update(type="count"), "tables.pods.qos: the type count cannot replace text"),
    ],
)
def test_a_schema_that_cannot_be_adopted(adopted, change, message):
    answer = adopted(change)
    assert answer.startswith("registry.t.schema: mine.yaml: ")
    assert message in answer
    assert "Traceback" not in answer


def test_where_an_adopted_schema_may_lie(adopted, tmp_path, monkeypatch):
    assert "lies in results/" in adopted(path="results/t/quality/suggested_schema.yaml")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"registry\.t\.schema: no\.yaml: there is no such file"):
        resolve_schema("t", {"schema": "no.yaml"}, OPENB)


def test_the_schema_of_the_format_table_follows_from_its_entry():
    assert resolve_schema("t", {"format": "table"}, Path("none.yaml")) is None
    with pytest.raises(ConfigError, match=r"registry\.t\.schema: the schema of the format table follows from mapping"):
        resolve_schema("t", {"format": "table", "schema": "mine.yaml"}, Path("none.yaml"))


def test_windows():
    assert check_windows("t", {}, ["t"]) == {}
    assert check_windows("t", {"windows": {"by": "week", "against": "u"}}, ["t", "u"]) == {"by": "week", "against": "u"}
    for against, traces in (("t", ["t", "u"]), ("x", ["t"])):
        with pytest.raises(ConfigError, match=r"registry\.t\.windows\.against: '[tx]' is not another trace"):
            check_windows("t", {"windows": {"against": against}}, traces)
    with pytest.raises(ConfigError, match="the format titan has none"):
        check_windows("t", {"format": "titan", "windows": {"by": "week"}}, [])
    with pytest.raises(ConfigError, match=r"registry\.t\.windows\.by: this trace has no parts"):
        check_windows("t", {"windows": {"by": "part"}}, ["t"])
    assert check_windows("t", {"windows": {"by": "part"}}, ["t"], {"t": {}}) == {"by": "part"}
