"""What a job has at its submission: every column of every format is classified, and only such are features."""

from dataclasses import dataclass, replace
from pathlib import Path

import made_traces
import polars as pl
import pytest
from format_tables import FILES, FORMATS
from samples.pai2020.sample import write_sample as write_pai
from ttf.formats.common_tables import add_partition_results, write_jobs
from ttf.formats.protocol import load_format_and_source, load_schemas_and_readers
from ttf.raw.ingest import ingest
from ttf.records.record_contracts import JOBS
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.model_features import (
    COLUMNS_AFTER_SUBMISSION,
    IDENTIFIER_COLUMNS,
    describe_column_problem,
)
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.recognition.format_declarations import read_schema_text, select_meaning
from ttf.study.study import Study

ROOT = Path(__file__).resolve().parents[2]
UNUSABLE_COLUMNS = {*IDENTIFIER_COLUMNS, *COLUMNS_AFTER_SUBMISSION}
JOB_FORMATS = [name for name, declaration in FORMATS.items() if declaration["gives"] == "jobs"]
TABLE = {
    "format": "table",
    "folder": "x",
    "mapping": {"job_id": "id", "task": "part", "user": "who", "account": "team", "submit": "a", "start": "b"}
    | {"partition": "queue"}
    | {
        "end": "c",
        "status": "s",
        "gpu_type": "model",
        "gpus": "g",
        "cpus": "p",
        "memory": "m",
        "memory_peak": "peak",
        "size": "n",
    }
    | {"nodes": "hosts", "reason": "why", "exit_code": "code"},
    "times": {"format": "epoch"},
    "outcomes": {"success": ["ok"], "failure": ["bad"]},
}
ROWS = "id,part,who,team,a,b,c,s,model,g,p,m,peak,n,hosts,why,code,queue\n1,x,u,t,0,1,2,bad,T4,1,1,9,8,1,1,oom,1,gpu\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
PODS += "p,1000,9,1,500,T4,LS,Failed,5,90,40\n"
KALOS = "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
KALOS += "end_time,fail_time,stop_time,duration,queue,gpu_time\n"
KALOS += "k,u,2,16,240,100,,SFT,FAILED," + "2023-05-17 11:00:58+00:00," * 5 + "0,0,0\n"


def raw_files(name, folder):
    """Table -> its file of a small trace of the format, with all the tables from which jobs have extras."""
    texts = {
        "openb": {"pods": PODS},
        "table": {"rows": ROWS},
        "acme_kalos": {"kalos": KALOS},
        "helios": {"gpu_number": "date,total\n2020-04-01,64\n"},
    }.get(name, {})
    if name in made_traces.WRITERS:
        made_traces.WRITERS[name](folder)
    if name == "pai2020":
        write_pai(folder, tasks=1000)
    for table, text in texts.items():
        (folder / f"{table}.csv").write_text(text)
    files_by_table = {
        "pai2020": {table: f"pai_{table}_table.csv" for table in ("job", "task", "instance", "sensor", "group_tag")},
        "philly": {"job_log": "cluster_job_log", "gpu_util": "cluster_gpu_util"},
        "sacct": {"record": "2025.txt"},
        "acme": {"seren": "trace_seren.csv"},
        "helios": {"log": "cluster_log.csv"},
    }.get(name, {})
    return {table: [folder / file] for table, file in (files_by_table | {key: f"{key}.csv" for key in texts}).items()}


@dataclass
class Products:
    """Paths of the products of a small trace."""

    jobs: Path
    nodes: Path
    agreement: Path
    size_unit: Path


@pytest.fixture(scope="module")
def jobs_of(tmp_path_factory):
    """The jobs.parquet of a small trace of a format, given in parts; acme_kalos: the other cluster of acme."""

    def run(name):
        folder, declaration = tmp_path_factory.mktemp(name), FORMATS[name.partition("_")[0]]
        entry = TABLE if name == "table" else {}
        schema = read_schema_text(FILES[name.partition("_")[0]]) if "schema" in declaration else ""
        schemas, readers = load_schemas_and_readers(declaration.get("reader"), entry, schema)
        files = raw_files(name, folder)
        ingest(files, schemas, folder, 0.0, readers)
        format_, source = load_format_and_source(folder, declaration["code"], select_meaning(entry, declaration), files)
        if format_.records:
            source = replace(source, records=format_.records(source))
        source = add_partition_results(format_, source, [], 10**6, folder)
        (folder / "spilled").mkdir()
        output = Products(
            *(folder / f"out_{product}" for product in ("jobs", "nodes.parquet", "agreement.csv", "size_unit.csv"))
        )
        write_jobs(format_, source, "mine", ["part"], declaration.get("node_table"), 7, folder / "spilled", output)
        return pl.read_parquet(output.jobs)

    return run


# Every column has its place -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*JOB_FORMATS, "acme_kalos"])
def test_every_column_of_the_jobs_is_classified(jobs_of, name):
    jobs, declaration = jobs_of(name), FORMATS[name.partition("_")[0]]
    at_submission, written_later = set(declaration["at_submission"]), set(declaration["written_later"])
    assert set(jobs.columns) >= UNUSABLE_COLUMNS
    assert not at_submission & written_later and not (at_submission | written_later) & UNUSABLE_COLUMNS
    # A column in neither list is blank in the format, so it can leak nothing.
    for column in set(jobs.columns) - at_submission - written_later - UNUSABLE_COLUMNS:
        assert column in JOBS.columns, f"{column}: put it into at_submission or written_later of {name}"
        assert jobs[column].is_null().all(), f"{column}: put it into at_submission or written_later of {name}"
    # The other cluster of acme has columns of its own.
    kalos_columns = {"fail_s", "stop_s", "uneven_pods"} if name == "acme" else set()
    assert at_submission | written_later <= set(jobs.columns) | kalos_columns, "no such column"
    for feature in declaration["risk"]["features"].values():
        if "column" in feature:
            assert jobs[feature["column"]].dtype.is_integer() == (feature["kind"] == "numeric"), feature


@pytest.mark.parametrize("name", JOB_FORMATS)
def test_the_features_of_a_format_come_from_what_is_known(name):
    declaration = FORMATS[name]
    for feature in declaration["risk"]["features"].values():
        columns = {feature.get("column")} - {None} | {name for level in feature.get("keys", []) for name in level}
        assert columns <= set(declaration["at_submission"])


def test_what_was_requested_is_no_number_of_what_was_seen(jobs_of):
    """Kalos' 16 GPUs came in two pods; the job asked for 16."""
    shown = ["gpu_milli", "size", "gpu_requested_milli", "cpu_requested_milli"]
    assert jobs_of("acme_kalos").select(shown).row(0) == (8000, 2, 16_000, 240_000)


# What a trace gets ----------------------------------------------------------------------------------------


def make_registry(format="sacct", **keys):
    """A registry with a trace of the format; of a table with TABLE."""
    return {"mine": (TABLE if format == "table" else {}) | {"format": format, "folder": "x"} | keys}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    """Change to a folder with raw tables that nobody reads."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    for file in ("a.txt", "a.csv", "gc_full.csv", "openb_pod_list_default.csv", "cluster_log.csv"):
        (tmp_path / "x" / file).touch()


def study_of(features, *, study=("mine",), registry=None):
    layers = [("config/config.yaml", load_yaml(ROOT / "config/config.yaml"))]
    own = {"study": list(study), "registry": registry or make_registry(), "risk": {"features": features}}
    return Study([*layers, ("my.yaml", own)])


def risk(features=None, **keys):
    return study_of(features or {}, registry=make_registry(**keys)).traces["mine"].risk


def test_the_features_of_a_trace_are_complete_and_in_order():
    settings = risk()
    assert (settings["clock"], settings["unit"]) == ("UTC", "job")
    features = settings["features"]
    assert list(features) == list(FORMATS["sacct"]["risk"]["features"])
    assert features["qos"] == {"kind": "category", "column": "qos", "vocabulary": 12, "warm": True}
    assert features["gpus"] == {"kind": "numeric", "column": "gpu_requested_milli", "warm": True}
    assert features["history"] == {"kind": "history", "keys": [["user"], ["gpu_requested_milli"]], "warm": True}
    hashed = risk({"mine": {"id": {"kind": "hashed", "column": "job_id_shown", "warm": False}}})["features"]["id"]
    assert hashed == {"kind": "hashed", "column": "job_id_shown", "buckets": 16, "warm": False}
    assert list(hashed) == ["kind", "column", "buckets", "warm"]


def test_a_trace_wins_over_its_format_and_null_drops():
    format_features = {"qos": {"kind": "category", "column": "qos", "vocabulary": 3}, "account": None}
    trace_features = {"qos": {"kind": "hashed", "column": "qos"}, "when": {"kind": "clock"}, "cpus": None}
    features = risk({"sacct": format_features, "mine": trace_features})["features"]
    assert features["qos"] == {"kind": "hashed", "column": "qos", "buckets": 16, "warm": True}
    assert list(features) == ["partition", "qos", "time_limit", "gpus", "gpu_type", "memory", "history", "when"]
    # A trace brings back what was dropped of its format; another trace does not have it.
    account = {"kind": "category", "column": "account"}
    pair = {**make_registry(), "other": make_registry()["mine"]}
    study = study_of({"sacct": format_features, "mine": {"account": account}}, study=["mine", "other"], registry=pair)
    assert "account" in study.traces["mine"].risk["features"]
    assert "account" not in study.traces["other"].risk["features"]
    assert study.traces["other"].risk["features"]["qos"]["vocabulary"] == 3
    # Dropping what is not there is no mistake.
    assert risk({"mine": {"nonsense": None}}) == risk()


def test_a_table_has_the_features_that_it_maps():
    full = risk(format="table")
    assert list(full["features"]) == ["gpus", "cpus", "memory", "account", "partition", "clock", "history"]
    mapping = {key: column for key, column in TABLE["mapping"].items() if key not in ("gpus", "account", "partition")}
    settings = risk(format="table", mapping=mapping, times={"format": "seconds"})
    assert list(settings["features"]) == ["cpus", "memory", "history"]
    assert settings["features"]["history"]["keys"] == [["user"]]
    assert settings["clock"] is None
    no_user = {key: column for key, column in mapping.items() if key != "user"}
    assert list(risk(format="table", mapping=no_user)["features"]) == ["cpus", "memory", "clock"]


def test_no_risk_without_jobs_or_submissions():
    assert risk(format="titan") is None
    unsubmitted = {key: column for key, column in TABLE["mapping"].items() if key != "submit"}
    assert risk(format="table", mapping=unsubmitted) is None


def test_a_trace_of_an_unknown_origin_has_no_clock():
    assert risk(format="openb")["clock"] is None
    assert "clock" not in risk(format="openb")["features"]
    assert risk(format="helios")["clock"] == "Asia/Shanghai"


# What is refused ------------------------------------------------------------------------------------------


def error_lines(features, **keys):
    with pytest.raises(ConfigError) as error:
        risk(features, **keys)
    return str(error.value).split("\n")


MAY = f"Usable columns: {', '.join(FORMATS['sacct']['at_submission'])}."


@pytest.mark.parametrize(
    ("key", "feature", "text"),
    [
        (
            "mine",
            {"kind": "history", "keys": [["user"], ["qos", "runtime_s"]]},
            f"the column runtime_s is written after submission. {MAY}",
        ),
        (
            "mine",
            {"kind": "hashed", "column": "job_id"},
            f"the column job_id identifies a job but does not describe it. {MAY}",
        ),
        ("mine", {"kind": "numeric", "column": "zzz"}, f"zzz is not a column of jobs in the format sacct. {MAY}"),
    ],
)
def test_a_feature_that_is_not_known_at_submission_is_refused(key, feature, text):
    assert error_lines({key: {"x": feature}}) == [f"my.yaml: risk.features.{key}.x: {text}"]


def test_every_column_written_later_is_refused_in_every_format():
    for name in JOB_FORMATS:
        entry = {**TABLE, "format": name} if name == "table" else {"format": name}
        for column in (*FORMATS[name]["written_later"], *COLUMNS_AFTER_SUBMISSION):
            text = describe_column_problem(column, "mine", entry, FORMATS[name])
            assert text.startswith(f"the column {column} is written after submission. "), (name, column)
        for column in FORMATS[name]["at_submission"]:
            assert describe_column_problem(column, "mine", entry, FORMATS[name]) is None, (name, column)


def test_each_problem_has_one_line():
    late = {"kind": "numeric", "column": "wall_s"}
    lines = error_lines(
        {"sacct": {"x": late, "y": late}, "mine": {"y": {"kind": "history", "keys": [["nodes", "flags"]]}}}
    )
    assert [line.split(" is written")[0] for line in lines] == [
        "my.yaml: risk.features.sacct.x: the column wall_s",
        "my.yaml: risk.features.mine.y: the column nodes",
        "my.yaml: risk.features.mine.y: the column flags",
    ]


def test_a_table_is_refused_what_it_does_not_map_or_numbers():
    feature = {"kind": "category", "column": "account"}
    mapping = {key: column for key, column in TABLE["mapping"].items() if key != "account"}
    (line,) = error_lines({"mine": {"x": feature}}, format="table", mapping=mapping)
    assert line.startswith("my.yaml: risk.features.mine.x: the column account is not in the mapping of mine. Usable")
    task = {"x": {"kind": "category", "column": "task"}}
    assert risk({"mine": task}, format="table")["features"]["x"]["column"] == "task"
    (line,) = error_lines({"mine": task}, format="table", unique_ids=False)
    assert "the column task numbers the rows of an id, which are unknown at submission. " in line
    for column in ("reason", "exit_code"):
        (line,) = error_lines({"mine": {"x": {"kind": "category", "column": column}}}, format="table")
        assert f"the column {column} is written after submission. " in line


def test_a_trace_that_cannot_have_it():
    (line,) = error_lines({"titan": {"x": {"kind": "clock"}}}, format="titan")
    assert line == "my.yaml: risk.features.titan.x: risk needs jobs, and the format titan has none."
    (line,) = error_lines({"mine": {"x": {"kind": "clock"}}}, format="openb")
    message = "the times of mine count from an unknown origin, so the hour of day is unknown."
    assert line == f"my.yaml: risk.features.mine.x: {message}"


def test_a_name_that_is_neither_a_trace_nor_a_format():
    (line,) = error_lines({"sact": {"x": {"kind": "clock"}}})
    assert line.startswith("my.yaml: risk.features.sact: 'sact' is neither a trace nor a format; did you mean sacct? ")
