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
    assert "start: no usable column, so no run times are computed" in match.explanation


def test_a_run_time_whose_name_tells_the_unit(tmp_path):
    numbers = [str(n + 1) for n in range(60)]
    match = draft(tmp_path, make_columns(finished_at=None, duration_min=numbers, memory_gb=numbers, ram=numbers[::-1]))
    assert match.entry["mapping"]["runtime"] == {"column": "duration_min", "unit": "min"}
    assert "memory: not taken; it could be memory_gb or ram" in match.explanation
    assert draft(tmp_path, make_columns(finished_at=None, duration=numbers)).missing == {
        "mapping.runtime.unit": "s, min, h, d or ms? The median of duration is 31"
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
        (
            make_columns(state=None),
            {"mapping.status": "no usable column has the name or the words", "outcomes": "list its"},
        ),
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
        (make_columns(created_at=["soon"] * 60), {"mapping.start": "no usable column looks like it"}),
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
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


# What stands in place of what a mapping needs --------------------------------------------------------------


def without_end(**columns):
    return make_columns(finished_at=None, **columns)


@pytest.mark.parametrize(
    ("name", "cells", "unit"),
    [
        ("Duration", ["7.6s", "2.1min", "1h 3m"], "text"),
        ("elapsed", ["1-02:03:04", "00:10:00", "2:00:00"], "text"),
        ("WallTime(sec)", ["10", "20", "30"], "s"),
        ("exec_time_hours", ["1,5", "0,25", "1.024,5"], "h"),
        ("runtimeMs", ["10", "20.5", "x"], None),
    ],
)
def test_a_run_time_in_place_of_an_end(name, cells, unit, tmp_path):
    match = draft(tmp_path, without_end(**{name: cells * 20}), delimiter=";")
    if unit is None:  # a third of the cells are no numbers
        assert match.missing == {"mapping.end": "no usable column looks like it"}
        return
    assert not match.missing
    assert match.entry["mapping"]["runtime"] == {"column": name, "unit": unit}
    assert match.entry.get("numbers") == ({"decimal": ","} if unit == "h" else None)
    load_trace(match)


def test_a_comma_that_no_value_explains(tmp_path):
    match = draft(tmp_path, make_columns(memory_gb=["1,024", "2,048"] * 30), delimiter=";")
    assert match.missing == {"numbers.decimal": 'in 1,024, is the comma a decimal mark? Then ",", otherwise "."'}
    match = draft(tmp_path, make_columns(memory_gb=["1,024.5", "2,048"] * 30), delimiter=";")
    assert match.entry["numbers"] == {"decimal": "."}


BAD_CELLS = {
    "gpus": ("two", "gpus: cells that count as blank: 'two' in line 9"),
    "created_at": ("2024-02-30T00:00:00Z", "start: cells that count as blank: '2024-02-30T00:00:00Z' in line 9"),
    "finished_at": ("failed", "end: cells that count as blank: 'failed' in line 9"),
    "state": ("", "state"),
}


@pytest.mark.parametrize("name", BAD_CELLS)
def test_bad_cells_are_named_and_cost_nothing_else(name, tmp_path):
    columns = make_columns()
    columns[name][7], line = BAD_CELLS[name]
    match = draft(tmp_path, columns)
    assert not match.missing and match.entry["mapping"].keys() >= {"start", "end", "gpus", "status"}
    assert line in match.explanation
    assert match.entry.get("blank", [""]) == [columns[name][7]]
    load_trace(match)


def test_placeholders_and_numbers_below_zero_are_told(tmp_path):
    columns = make_columns()
    columns["finished_at"][0], columns["gpus"][1] = "9999-12-31T00:00:00Z", "-1"
    text = draft(tmp_path, columns).explanation
    assert "end: placeholders count as blank: '9999-12-31T00:00:00Z' in line 2" in text
    assert "gpus: cells below zero count as blank: '-1' in line 3" in text


def test_a_column_of_too_many_bad_cells_is_no_time(tmp_path):
    match = draft(tmp_path, make_columns(finished_at=[*moments(ISO)[:50], *["never"] * 10]))
    text = "10 of 60 cells of finished_at are no times in one form: 'never' in line 52, 'never' in line 53"
    assert match.missing["mapping.end"].startswith(text)


def test_states_with_reasons_are_counted_by_their_first_word(tmp_path):
    states = [f"CANCELLED by {n}" if n % 3 else "COMPLETED" for n in range(60)]
    match = draft(tmp_path, make_columns(state=states))
    assert match.entry["mapping"]["status"] == {"column": "state", "first_word": True}
    assert "status: state (success: COMPLETED 20; cancelled: CANCELLED 40)" in match.explanation


def test_a_flag_and_an_exit_code_in_place_of_a_state(tmp_path):
    match = draft(tmp_path, make_columns(state=None, is_failed=["True", "False"] * 30))
    assert match.entry["outcomes"] == {"success": ["False"], "failure": ["True"]} and not match.missing
    match = draft(tmp_path, make_columns(state=None, exit_status=["0", "137", "1"] * 20))
    assert match.entry["mapping"]["status"] == "exit_status"
    text = "exit_status is the only outcome: 0 in 20 rows, another in 40. If 0 is success: "
    assert match.missing == {"outcomes": text + '{success: ["0"], failure: ["*"]}'}


def test_names_of_kubernetes_and_no_ids(tmp_path):
    columns = make_columns(run_id=None, owner=None, gpus=None, namespace=["ml"] * 60, queue=["a"] * 60)
    match = draft(tmp_path, columns | {"nvidia.com/gpu": ["1"] * 60, "gpu_product": ["A100"] * 60})
    mapping = match.entry["mapping"]
    assert [mapping[key] for key in ("account", "partition", "gpus", "gpu_type")] == (
        ["namespace", "queue", "nvidia.com/gpu", "gpu_product"]
    )
    assert "job_id" not in mapping and not match.missing
    load_trace(match)


def test_times_that_count_from_zero(tmp_path):
    columns = make_columns(created_at=[f"{n}.5" for n in range(60)], finished_at=[f"{n + 9}.5" for n in range(60)])
    text = "created_at, finished_at: the times count from 0, not from 1970; write seconds, if that is their unit"
    assert draft(tmp_path, columns).missing == {"times.format": text}


def test_repeated_names_long_lines_and_steps(tmp_path):
    rows = zip(*make_columns().values(), strict=True)
    lines = ["run_id,owner,gpus,created_at,finished_at,gpus", *map(",".join, rows)]
    (tmp_path / "runs.csv").write_text("\n".join([*lines, "x" * 200_000]))
    text = recognise(tmp_path / "runs.csv").explanation
    assert "not used: gpus: two columns have this name; rename one of them" in text
    assert "not used: line 62: has more than 131,072 characters, so its row is excluded" in text
    match = draft(tmp_path, make_columns(run_id=[f"{n}.batch" for n in range(60)]))
    assert match.missing["mapping.job_id"].startswith("each row is a step, such as 0.batch")


def test_a_recipe_is_named_and_used(tmp_path):
    columns = {"Name": ["a", "b"] * 30, "State": ["finished"] * 60, "Created": moments("%Y-%m-%dT%H:%M:%S.000Z")}
    match = draft(tmp_path, columns | {"Runtime": ["5"] * 60, "loss": ["0.1"] * 60})
    assert match.explanation == "runs.csv: the columns and states of config/mappings/wandb.yaml, which is used."
    assert match.entry["mapping"]["runtime"] == "Runtime" and not match.missing
    match = draft(tmp_path, columns | {"State": ["finished", "odd"] * 30, "Runtime": ["5"] * 60})
    assert match.missing == {"outcomes.unclear": "move each word to the outcome that it means: odd"}
    # With other states it is an ordinary draft.
    assert "drafted" in draft(tmp_path, columns | {"State": ["done"] * 60}).explanation


def test_a_draft_to_complete_has_ten_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    many = {f"a rather long name of column {n}": ["x"] * 60 for n in range(40)}
    columns = make_columns(
        run_id=["a"] * 60,
        state=["flaky"] * 60,
        created_at=["soon"] * 60,
        finished_at=moments("%Y-%m-%d"),
        gpus=["-1"] * 60,
    )
    columns |= {"submit_time": ["late"] * 30 + moments(ISO)[:30], "memory_gb": ["1,024"] * 60}
    write_table(tmp_path, columns | many, delimiter=";")
    with pytest.raises(ConfigError) as error:
        write_configuration(Path("runs.csv"))
    lines = str(error.value).splitlines()
    assert len(lines) == 10 and lines[-1] == "  ttf report runs.csv"
    assert lines[-3] == "  and 1 more, which are null"
    assert sum(-(-len(line) // 100) for line in lines) <= 20


# Files that are refused -----------------------------------------------------------------------------------


def csv_text(columns=None, encoding="utf-8"):
    columns = columns or make_columns()
    return "\n".join([",".join(columns), *map(",".join, zip(*columns.values(), strict=True)), ""]).encode(encoding)


SIMULATED = {"job_id": ["1", "2"], "arrival_time": ["0", "30"], "num_gpu": ["1", "2"], "duration": ["100", "200"]}
REFUSED = {
    "the compressed file is damaged or cut short": ("runs.csv.gz", gzip.compress(csv_text() * 900)[:5_000]),
    "iconv -f UTF-16 -t UTF-8 runs.csv": ("runs.csv", csv_text(encoding="utf-16")),
    "iconv -f LATIN1 -t UTF-8": ("runs.csv", csv_text(make_columns(owner=["Jürgen"] * 60), "latin-1")),
    "this is a workbook": ("runs.csv", b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml"),
    "the list of jobs is empty": ("runs.json", b'{"meta": {}, "jobs": []}'),
    "a table with the columns id, title. None tells": ("runs.json", b'[{"id": 1, "title": "a"}]'),
    "jq -c '.where.the.list.is[]'": ("runs.json", b'{"jobs": {"a": [\n {"id": 1}]}}'),
    "the file is empty": ("runs.csv", b""),
    "the file holds blank lines only": ("runs.csv", b"\n\n"),
    "line 1 has more than 65,534 characters": ("runs.csv", b"a," * 500_000 + b"b\n1,2\n"),
    "Remove it: tail -n +2": ("runs.csv", b"sep=;\n" + csv_text()),
    "there is no header row": ("runs.csv", csv_text().partition(b"\n")[2]),
    "line 1 names 6 columns, but no row follows": ("runs.csv", csv_text().partition(b"\n")[0] + b"\n"),
    "line 2 has 7 fields, but the header row 6": (
        "runs.csv",
        csv_text().replace(b"\n", b",x\n").replace(b",x", b"", 1),
    ),
    "line 1 is one field, 'Dear all'": ("runs.csv", b"Dear all\nthis is a letter\n"),
    "columns of fixed width": ("runs.txt", b"ID   STATE    START\n1    DONE     2024-01-01T00:00:00\n"),
    "printed by sacct in columns of fixed width, which cut cells, as in CANCELLED+, and without Start, End": (
        "jobs.txt",
        b"       JobID      State\n------------ ----------\n1             COMPLETED\n",
    ),
    "printed by sacct, and without Start, End. 2 rows.\nstatus: State (failure: FAILED 1; cancelled: CANCELLED 1)": (
        "jobs.txt",
        b"JobID|State|Submit|QOS\n1|CANCELLED by 5|2024-01-01T00:00:00|a\n2|FAILED|2024-01-01T00:00:00|a\n",
    ),
    "with steps (1.batch)": ("jobs.txt", b"1|u|COMPLETED|02:26:11|0:0\n1.batch||COMPLETED|02:26:11|0:0\n" * 2),
    "this is a simulator's input": ("runs.csv", csv_text(SIMULATED)),
    "None tells an outcome or a run time of jobs": ("runs.csv", b"class,weight\na,1\nb,2\n"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_file_is_refused_with_the_reason_and_what_to_type(words, tmp_path):
    name, content = REFUSED[words]
    (tmp_path / name).write_bytes(content)
    for data in (tmp_path, tmp_path / name):
        with pytest.raises(ConfigError) as error:
            recognise(data)
        assert words in str(error.value) and f"{tmp_path}/{name}: " in str(error.value)
        assert sum(-(-len(line) // 100) for line in str(error.value).splitlines()) <= 20
        assert "matches no format" not in str(error.value)


def test_a_folder_with_one_table_says_what_is_not_read(tmp_path):
    write_table(tmp_path, make_columns())
    (tmp_path / "about.csv").write_text("a,b\n1,2\n")
    (tmp_path / "notes.pdf").write_text("x")
    match = recognise(tmp_path)
    text = "Not read: about.csv, notes.pdf. Their columns are not those of runs.csv."
    assert match.explanation.splitlines()[-1] == text
    assert load_trace(match).has_named_file
    # A file that is named has no such neighbours.
    assert text not in recognise(tmp_path / "runs.csv").explanation


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
