"""Schemas of raw tables: what is shipped is sound, what a person adopts is looked at, what changed is told."""

import copy
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from of_formats import FILES, FORMATS
from study.documents import load_schema
from study.messages import ConfigError
from study.table_schema import load_table_schema, schema_of
from study.windows import windows_of
from study.yaml_files import load_yaml
from ttf.quality.schema_diff import schema_diff
from ttf.raw_tables import Column, TableSchema, table_schemas

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = {name: FILES[name] for name, about in FORMATS.items() if "schema" in about}
OPENB = FILES["openb"]


@pytest.mark.parametrize("path", SHIPPED.values(), ids=SHIPPED)
def test_what_is_shipped_is_sound(path):
    assert table_schemas(load_table_schema(path))
    assert yaml.safe_load(schema_of("t", {}, path)) == load_yaml(path)["schema"]


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
            return schema_of("t", {"schema": path}, OPENB)
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
            lambda d: d.update(colour=1),
            "colour: there is no such key. Allowed here: version, header, tables.",
        ),
        (
            lambda d: column(d, "qos").update(typ="text"),
            "qos.typ: there is no such key; did you mean type? Allowed here: name, as,",
        ),
        (
            lambda d: column(d, "qos").update(type="str"),
            "tables.pods.columns.qos.type: 'str' is not allowed. Allowed: text, seconds, ",
        ),
        (
            lambda d: column(d, "qos").pop("type"),
            "tables.pods.columns.qos.type: is missing; expected text (text, seconds,",
        ),
        (
            lambda d: column(d, "qos").update(values="LS"),
            "columns.qos.values: found the text 'LS'; expected a list of names (each once); write [LS].",
        ),
        (
            lambda d: column(d, "qos").update(minimum=1),
            "qos.minimum: works with the type seconds or number or count or time or clock only, and the type here is",
        ),
        (
            lambda d: column(d, "qos").update(required="yes"),
            "columns.qos.required: found the text 'yes'; expected true or false.",
        ),
        (lambda d: d.pop("version"), "line 1, column 1: version: is missing; expected a whole number (1 or more)."),
        (lambda d: d["tables"]["pods"].update(delimiter=",,"), "tables.pods.delimiter: ',,' is not allowed"),
        (lambda d: column(d, "qos").update({"as": "name"}), "tables.pods: two columns have the as 'name'"),
        (lambda d: d["tables"]["pods"].update(key=["nam"]), "tables.pods.key: there is no stored column 'nam'"),
        (lambda d: column(d, "gpu_milli").update(minimum=2000), "the minimum is larger than the maximum"),
        (lambda d: d["tables"].pop("nodes"), "tables: the table nodes is missing; the format reads it"),
        (lambda d: column(d, "qos").update(keep=False), "there is no stored column 'qos'; the format reads it"),
        (lambda d: column(d, "cpu_milli").update(scale=1000), "tables.pods.cpu_milli: scale must stay 1"),
        (lambda d: column(d, "qos").update(type="count"), "tables.pods.qos: the type count cannot stand for text"),
    ],
)
def test_what_cannot_be_adopted(adopted, change, message):
    answer = adopted(change)
    assert answer.startswith("registry.t.schema: mine.yaml: ")
    assert message in answer
    assert "Traceback" not in answer


def test_where_an_adopted_schema_may_lie(adopted, tmp_path, monkeypatch):
    assert "lies in results/" in adopted(path="results/t/quality/suggested_schema.yaml")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"registry\.t\.schema: no\.yaml: there is no such file"):
        schema_of("t", {"schema": "no.yaml"}, OPENB)


def test_the_schema_of_the_format_table_follows_from_its_entry():
    assert schema_of("t", {"format": "table"}, Path("none.yaml")) is None
    with pytest.raises(ConfigError, match=r"registry\.t\.schema: the schema of the format table follows from mapping"):
        schema_of("t", {"format": "table", "schema": "mine.yaml"}, Path("none.yaml"))


def test_windows():
    assert windows_of("t", {}, ["t"]) == {}
    assert windows_of("t", {"windows": {"by": "week", "against": "u"}}, ["t", "u"]) == {"by": "week", "against": "u"}
    for against, others in (("t", ["t", "u"]), ("x", ["t"])):
        with pytest.raises(ConfigError, match=r"registry\.t\.windows\.against: '[tx]' is not another trace"):
            windows_of("t", {"windows": {"against": against}}, others)
    with pytest.raises(ConfigError, match="the format titan has none"):
        windows_of("t", {"format": "titan", "windows": {"by": "week"}}, [])
    with pytest.raises(ConfigError, match=r"registry\.t\.windows\.by: this trace is not given in parts"):
        windows_of("t", {"windows": {"by": "part"}}, ["t"])
    assert windows_of("t", {"windows": {"by": "part"}}, ["t"], {"t": {}}) == {"by": "part"}


# What changed ---------------------------------------------------------------------------------------------

OLD = {
    "version": 1,
    "header": True,
    "tables": {
        "job": {
            "key": ["job_id"],
            "columns": [
                {"name": "job_id", "type": "text", "required": True},
                {"name": "state", "type": "text", "values": ["A", "B"], "required": True},
                {"name": "gpus", "type": "count", "as": "gpu_count", "maximum": 1000},
                {"name": "gone", "type": "text"},
            ],
        },
        "node": {"columns": [{"name": "node", "type": "text"}]},
    },
}


def changed(change):
    new = copy.deepcopy(OLD)
    change(new)
    return schema_diff(OLD, new)


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        (lambda d: None, []),
        (lambda d: d.update(version=2), ["version 1 becomes 2"]),
        (lambda d: d["tables"].pop("node"), ["node: table removed"]),
        (lambda d: d["tables"].update(t=d["tables"]["node"]), ["t: new table of 1 column"]),
        (lambda d: d["tables"]["job"]["columns"].pop(), ["job.gone: column removed"]),
        (
            lambda d: d["tables"]["job"]["columns"].append({"name": "x", "type": "time", "as": "x_s"}),
            ["job.x: new column (time, stored as x_s)"],
        ),
        (
            lambda d: column(d, "state", "job").update(values=["B", "C", "D"]),
            ["job.state: the words C, D are now allowed", "job.state: the word A is no longer allowed"],
        ),
        (lambda d: column(d, "state", "job").pop("values"), ["job.state: any word is allowed (before: A, B)"]),
        (
            lambda d: column(d, "gone", "job").update(values=["A"]),
            ["job.gone: only the word A is allowed (before: any word)"],
        ),
        (lambda d: column(d, "state", "job").update(required=False), ["job.state: may now be blank"]),
        (lambda d: column(d, "gone", "job").update(required=True), ["job.gone: must now have a value"]),
        (
            lambda d: column(d, "gpus", "job").update(maximum=5000, minimum=-1),
            ["job.gpus: new minimum -1", "job.gpus: the maximum rises from 1,000 to 5,000"],
        ),
        (
            lambda d: column(d, "gpus", "job").pop("maximum"),
            ["job.gpus: the maximum 1,000 is dropped: the one of its type holds"],
        ),
        (lambda d: column(d, "gpus", "job").update(type="number"), ["job.gpus: the type count becomes number"]),
        (lambda d: column(d, "gpus", "job").update({"as": "g"}), ["job.gpus: stored as gpu_count becomes stored as g"]),
        (lambda d: column(d, "gpus", "job").update(blank=["N/A"]), ["job.gpus: the word N/A is now read as blank"]),
        (lambda d: column(d, "gpus", "job").update(keep=True, scale=1), []),
        (
            lambda d: d["tables"]["job"].update(key=["job_id", "state"]),
            ["job: rows are told apart by job_id, state (before: job_id)"],
        ),
        (lambda d: d["tables"]["job"].update(quoted=True), ["job: fields may now stand in double quotes"]),
        (lambda d: d["tables"]["job"]["columns"].reverse(), []),
        (
            lambda d: (d.update(header=False), d["tables"].pop("node"), d["tables"]["job"]["columns"].reverse()),
            [
                "job: files no longer have a header row",
                "job: the columns stand in another order: gone, gpus, state, job_id",
                "node: table removed",
            ],
        ),
    ],
)
def test_each_change_in_plain_words(change, sentences):
    assert changed(change) == sentences


def run(*arguments):
    command = [sys.executable, str(ROOT / "workflow/study/schema_diff.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command(tmp_path):
    new = tmp_path / "new.yaml"
    new.write_text(OPENB.read_text().replace("version: 1", "version: 2").replace("Pending]", "Pending, Lost]"))
    done = run(OPENB, new)
    assert (done.returncode, done.stdout) == (
        0,
        "version 1 becomes 2\npods.pod_phase: the word Lost is now allowed\n",
    )
    assert run(OPENB, OPENB).stdout == "The two say the same.\n"
    assert run(OPENB).returncode == 2
    bad = run(OPENB, tmp_path / "none.yaml")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr == f"{tmp_path / 'none.yaml'}: there is no such file.\n"
