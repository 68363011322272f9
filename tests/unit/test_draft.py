"""The draft of a mapping for an unknown table of jobs: what is sure, what is not, and what the file then asks for."""

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ttf.commands.run import write_configuration
from ttf.study import studies
from ttf.study.configuration.config import DEFAULTS, resolve
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml, parse_yaml
from ttf.study.recognition.format_declarations import load_formats
from ttf.study.recognition.recognise import format_configuration, recognise
from ttf.study.study import Study

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_yaml(ROOT / "config" / "traces.yaml")
TABLES = {name: format["tables"] for name, format in load_formats().items()}
START = datetime(2024, 3, 1, tzinfo=UTC)
ISO, EPOCH = "%Y-%m-%dT%H:%M:%SZ", "epoch"
STATES = ("succeeded", "failed", "cancelled")


def moments(form, first_s=0, rows=60):
    """Return ascending times in a form: strptime's, epoch, or epoch with a unit such as ms."""
    times = [START + timedelta(seconds=first_s + 50_000 * n) for n in range(rows)]
    if form.startswith(EPOCH):
        factor = {"": 1, "ms": 10**3, "us": 10**6}[form.removeprefix(EPOCH)]
        return [str(int(time.timestamp()) * factor) for time in times]
    return [time.strftime(form) for time in times]


def make_columns(form=ISO, **changes):
    """Return the columns of the engineer's table, some replaced (None: left out)."""
    rows = range(60)
    columns = {
        "run_id": [f"r{n}" for n in rows],
        "owner": [f"u{n % 7}" for n in rows],
        "gpus": [str(2 ** (n % 4)) for n in rows],
        "created_at": moments(form),
        "finished_at": moments(form, 3_600),
        "state": [STATES[n % 3] for n in rows],
    }
    return {name: values for name, values in (columns | changes).items() if values is not None}


def write_table(folder, columns, delimiter=",", name="runs.csv"):
    lines = [delimiter.join(columns), *map(delimiter.join, zip(*columns.values(), strict=True))]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def draft(folder, columns, **options):
    return recognise(write_table(folder, columns, **options))


def load_trace(recognised):
    layers = [
        ("config.yaml", load_yaml(DEFAULTS)),
        ("my.yaml", parse_yaml(format_configuration(recognised), "my.yaml")),
    ]
    (trace,) = Study(layers).traces.values()
    return trace


def test_the_table_of_an_engineer(tmp_path):
    match = draft(tmp_path, make_columns())
    assert (match.format, match.name, match.missing) == ("table", "runs", {})
    assert match.entry == {
        "format": "table",
        "folder": str(tmp_path),
        "mapping": {
            "job_id": "run_id",
            "status": "state",
            "submit": "created_at",
            "start": "created_at",
            "end": "finished_at",
            "user": "owner",
            "gpus": "gpus",
        },
        "outcomes": {"success": ["succeeded"], "failure": ["failed"], "cancelled": ["cancelled"]},
    }
    assert "  submit: created_at (also start, so no waits are computed)" in match.explanation.splitlines()
    assert load_trace(match).raw_files == {"rows": [f"{tmp_path}/runs.csv"]}


@pytest.mark.parametrize(
    ("names", "delimiter"),
    [
        ("job id,User,numGPUs,JobStartTime,EndTime,Job State", ";"),
        ("ID,user_name,gpu_count,start_ts,end_ms,Status", "\t"),
        ("id,user,gpus,start,end,state", "|"),
    ],
)
def test_other_names_and_delimiters(names, delimiter, tmp_path):
    names = names.split(",")
    match = draft(tmp_path, dict(zip(names, make_columns().values(), strict=True)), delimiter=delimiter)
    assert not match.missing
    assert [*match.entry["mapping"].values()] == [names[n] for n in (0, 5, 3, 3, 4, 1, 2)]
    assert match.entry["delimiter"] == delimiter
    load_trace(match)


@pytest.mark.parametrize(
    "form",
    ["%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%a %b %d %H:%M:%S %Y"],
)
def test_other_forms_of_times(form, tmp_path):
    match = draft(tmp_path, make_columns(form))
    assert not match.missing
    assert match.entry["times"] == {"format": form, "zone": "UTC"}
    assert "times.zone: UTC is assumed" in match.explanation


def test_submit_and_start_are_told_apart(tmp_path):
    columns = make_columns(started_at=moments(ISO, 60))
    mapping = draft(tmp_path, columns).entry["mapping"]
    assert (mapping["submit"], mapping["start"]) == ("created_at", "started_at")
    columns = make_columns(created_at=None, submit_time=moments(ISO))
    match = draft(tmp_path, columns)
    assert not match.missing
    assert match.entry["mapping"]["submit"] == "submit_time"
    assert "start" not in match.entry["mapping"]
    assert "start: no column, so no run times are computed" in match.explanation


def test_a_run_time_whose_name_tells_the_unit(tmp_path):
    numbers = [str(n + 1) for n in range(60)]
    match = draft(tmp_path, make_columns(finished_at=None, duration_min=numbers, memory_gb=numbers, ram=numbers[::-1]))
    assert match.entry["mapping"]["runtime"] == {"column": "duration_min", "unit": "min"}
    assert "memory: not taken; it could be memory_gb or ram" in match.explanation
    assert draft(tmp_path, make_columns(finished_at=None, duration=numbers)).missing == {
        "mapping.runtime.unit": "s, min, h, d or ms? The median of duration is 30.5"
    }
    match = draft(tmp_path, make_columns(memory_gb=numbers))
    assert match.entry["mapping"]["memory"] == {"column": "memory_gb", "unit": "GB"}


def test_words_for_no_value_and_infrastructure(tmp_path):
    columns = make_columns()
    columns["finished_at"][-1], columns["gpus"][3] = "NaT", "None"
    columns["state"] = [state.upper() for state in columns["state"][:-2]] + ["NODE_FAIL", "RUNNING"]
    entry = draft(tmp_path, columns).entry
    assert entry["blank"] == ["NaT", "None"]
    assert entry["outcomes"]["failure"] == ["FAILED", "NODE_FAIL"]
    assert entry["infra_failures"] == {"states": ["NODE_FAIL"]}


def test_a_status_by_its_words_and_by_its_first_word(tmp_path):
    columns = make_columns(state=None, zustand=["COMPLETED", "CANCELLED by 123", "FAILED"] * 20)
    assert "mapping.status" in draft(tmp_path, columns).missing
    columns = make_columns(state=["COMPLETED", "CANCELLED by 123", "FAILED"] * 20)
    assert draft(tmp_path, columns).entry["mapping"]["status"] == {"column": "state", "first_word": True}
    columns = make_columns(state=None, zustand=["COMPLETED", "CANCELLED", "FAILED"] * 20)
    assert draft(tmp_path, columns).entry["mapping"]["status"] == "zustand"


# What is not sure ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        (make_columns(state=None), {"mapping.status": "no column has the name or the words", "outcomes": "list its"}),
        (
            make_columns(state=["failed", "flaky", "weird"] * 20),
            {"outcomes.unclear": "move each word to the outcome that it means: flaky, weird"},
        ),
        (
            make_columns(status=["failed", "done", "done", "done"] * 15),
            {"mapping.status": "it could be state or status", "outcomes": "list its words"},
        ),
        (make_columns(end=moments(ISO, 99)), {"mapping.end": "it could be finished_at or end"}),
        (make_columns(finished_at=moments("%Y-%m-%d")), {"mapping.end": "finished_at has no time of day"}),
        (make_columns(created_at=["soon"] * 60), {"mapping.start": "no column looks like it"}),
        (make_columns(run_id=["a", "b"] * 30), {"unique_ids": "ids repeat: false if each row is a job"}),
        (
            make_columns(finished_at=moments("%d.%m.%Y %H:%M", 3_600)),
            {"times.format": "created_at, finished_at: the times have different forms"},
        ),
    ],
)
def test_what_is_not_sure_is_to_be_completed(columns, missing, tmp_path):
    match = draft(tmp_path, columns)
    assert match.missing.keys() == missing.keys()
    for key, text in missing.items():
        assert match.missing[key].startswith(text)
        assert f"# To complete: {key}: {text}" in format_configuration(match)
    # Not completed, it stops the study with the path of the key.
    document = parse_yaml(format_configuration(match), "my.yaml")
    with pytest.raises(ConfigError) as error:
        resolve([("my.yaml", document)], REGISTRY, TABLES)
    assert f"registry.runs.{next(iter(missing))}" in str(error.value)


def test_days_and_months_that_no_value_tells_apart(tmp_path):
    form = "%m/%d/%Y %H:%M"
    columns = {name: values[:20] for name, values in make_columns(form).items()}
    assert not [text for text in columns["created_at"] if int(text[3:5]) > 12]
    match = draft(tmp_path, columns)
    text = "created_at, finished_at: no value decides between %d/%m/%Y %H:%M and %m/%d/%Y %H:%M"
    assert match.missing == {"times.format": text}


def test_hostile_names(tmp_path):
    extra = {
        "$(touch x)": ["`x`"] * 60,
        "line": ["<script>"] * 60,
        "\x1b[31mred": ["x"] * 60,
        "x" * 500: ["\x00"] * 60,
        "": ["y"] * 60,
        "{a}": ["%s"] * 60,
        "__import__('os')": ["!!python/object"] * 60,
    }
    match = draft(tmp_path, make_columns(**extra))
    assert not match.missing
    assert match.explanation.replace("\n", "").isprintable()
    assert "not used: $(touch x), {a}, __import__('os')" in match.explanation
    columns = make_columns(state=["failed", "'} # x: &a *b", "<b>"] * 20)
    match = draft(tmp_path, columns)
    assert match.entry["outcomes"]["unclear"] == ["'} # x: &a *b", "<b>"]
    assert yaml.safe_load(format_configuration(match))["registry"]["runs"]["outcomes"] == match.entry["outcomes"]
    columns = {f" {name}\x1b": values for name, values in make_columns().items()}
    with pytest.raises(ConfigError, match="None tells an outcome or a run time"):
        draft(tmp_path, columns)


CELLS = st.sampled_from(["", "1", "failed", "done", "2024-01-01", "2024-01-01T00:00:01Z", "1700000000", "NA", '"', "é"])
NAMES = st.sampled_from(["id", "job_id", "state", "status", "start", "end", "created", "gpus", "line", "", "x", "user"])


@given(st.lists(st.tuples(NAMES, st.lists(CELLS, min_size=4, max_size=4)), max_size=8), st.sampled_from(",;\t| "))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_table_is_drafted_or_refused(tmp_path, columns, delimiter):
    rows = [[name for name, _ in columns], *zip(*(cells for _, cells in columns), strict=True)]
    (tmp_path / "runs.csv").write_text("".join(delimiter.join(row) + "\n" for row in rows))
    try:
        match = recognise(tmp_path / "runs.csv")
    except ConfigError as error:
        assert "runs.csv" in str(error).splitlines()[0]
    else:
        if not match.missing:
            load_trace(match)


# Files --------------------------------------------------------------------------------------------------


def test_packed_quoted_and_parquet_files(tmp_path):
    columns = make_columns()
    text = write_table(tmp_path, {f'"{name}"': values for name, values in columns.items()}).read_bytes()
    entry = recognise(tmp_path / "runs.csv").entry
    assert entry["quoted"]
    (tmp_path / "runs.csv").unlink()
    (tmp_path / "runs.csv.gz").write_bytes(gzip.compress(text))
    assert recognise(tmp_path / "runs.csv.gz").entry == entry
    frame = pl.DataFrame(columns).with_columns(
        pl.col("created_at", "finished_at").str.to_datetime(ISO, time_zone="UTC"), pl.col("gpus").cast(int)
    )
    frame.write_parquet(tmp_path / "runs.parquet")
    match = recognise(tmp_path / "runs.parquet")
    assert match.entry["files"] == {"rows": "runs.parquet"}
    assert match.entry["mapping"] == entry["mapping"]
    assert not match.missing
    assert "times" not in match.entry


def test_the_files_of_a_folder(tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    for name in ("a.csv", "b.csv"):
        write_table(folder, make_columns(), name=name)
    (folder / "README.md").write_text("About it")
    match = recognise(folder)
    assert (match.name, match.missing) == ("exports", {})
    assert len(load_trace(match).parts) == 2


def test_a_table_that_is_nearly_of_a_format_is_not_drafted(tmp_path):
    columns = make_columns()
    names = {"run_id": "JobIDRaw", "state": "State", "created_at": "Start", "finished_at": "End"}
    dump = {names.get(name, name): values for name, values in columns.items()}
    with pytest.raises(ConfigError, match=r"',' stands where '\|' is expected"):
        draft(tmp_path, dump)
    with pytest.raises(ConfigError, match=r"helios: cluster_log\.csv: the header row has no columns"):
        draft(tmp_path, columns, name="cluster_log.csv")


def test_the_file_is_completed_and_then_used(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path, make_columns(state=["failed", "flaky", "done"] * 20))
    file = studies.STUDIES / "runs" / studies.DATA_CONFIG_NAME
    for _ in range(2):
        with pytest.raises(ConfigError) as error:
            write_configuration(Path("runs.csv"))
        assert str(error.value).splitlines() == [
            "runs.csv: no known format; drafted as a table of jobs from its header and 60 rows:",
            "  job_id: run_id; start: created_at; end: finished_at; user: owner; gpus: gpus",
            "  status: state (success: done 20; failure: failed 20)",
            "  submit: created_at (also start, so no waits are computed)",
            f"Complete under registry.runs in {file}:",
            "  outcomes.unclear: move each word to the outcome that it means: flaky",
            "Then type:",
            "  ttf report runs.csv",
        ]
    file.write_text(file.read_text().replace("unclear", "cancelled"))
    assert write_configuration(Path("runs.csv")) == str(file)
    assert f"{file} was edited, and is used as it stands." in capsys.readouterr().err
