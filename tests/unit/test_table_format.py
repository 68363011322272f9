"""The format table: a table of any layout, described in the registry."""

import base64
import contextlib
import copy
import csv
import io
from datetime import datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from format_tables import derive_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ttf.engine.errors import StudyError
from ttf.formats.table import read as table
from ttf.formats.table.page_checksums import find_damaged_column
from ttf.raw import raw_files
from ttf.raw.ingest import anomalies, ingest
from ttf.raw.raw_tables import table_schemas
from ttf.records.durations import durations_of_jobs
from ttf.records.jobs import JOB_COLUMNS
from ttf.study.configuration.config import SCHEMA, resolve
from ttf.study.configuration.messages import ConfigError

ENTRY_SCHEMA = next(iter(SCHEMA["properties"]["registry"]["patternProperties"].values()))["properties"]
OUTCOMES = {
    "success": ["COMPLETED"],
    "failure": ["FAILED", "TIMEOUT"],
    "cancelled": ["CANCELLED"],
    "running": ["RUNNING"],
    "waiting": ["PENDING"],
}
SECONDS = {
    "format": "table",
    "folder": "raw",
    "mapping": {"job_id": "id", "status": "state", "submit": "sub", "start": "beg", "end": "fin"},
    "times": {"format": "seconds"},
    "outcomes": OUTCOMES,
}
HEADER = "id,state,sub,beg,fin"


def edit(base=SECONDS, mapping=(), drop=(), **keys):
    """Copy an entry with other mappings and keys; `drop` lists mappings to remove."""
    entry = copy.deepcopy(base) | keys
    entry["mapping"] = {key: part for key, part in (entry["mapping"] | dict(mapping)).items() if key not in drop}
    return entry


@pytest.fixture
def convert(tmp_path):
    """Ingest text as CSV or a frame as Parquet; return (jobs, account row, quarantine)."""

    def run(entry, content, max_share=1.0):
        if isinstance(content, pl.DataFrame):
            path = tmp_path / "rows.parquet"
            content.write_parquet(path)
        else:
            path = tmp_path / "rows.csv"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return derive(entry, [path], tmp_path / "raw", max_share)

    return run


def derive(entry, paths, folder, max_share=1.0):
    folder.mkdir(exist_ok=True)
    schemas = table_schemas(table.schema_document(entry))
    account, quarantine = ingest({"rows": paths}, schemas, folder, max_share, table.READERS)
    jobs = derive_table("table", "jobs", {"rows": pl.scan_parquet(folder / "rows.parquet")}, entry)
    return jobs, account.row(0)[1:], quarantine


def join(*rows, header=HEADER):
    return "".join(f"{row}\n" for row in (header, *rows))


# The job record -----------------------------------------------------------------------------------------


FULL_ENTRY = edit(
    mapping={
        "task": "part",
        "user": "who",
        "account": "acc",
        "gpu_type": "model",
        "gpus": {"column": "g", "unit": "percent"},
        "cpus": "c",
        "memory": {"column": "m", "unit": "GiB"},
        "size": "n",
        "nodes": "hosts",
    }
)


def test_columns_of_the_job_record(convert):
    # The order differs from the mapping's, and one column is not mapped.
    text = join(
        "x,V100,8,50,1.5,2.5,3,2,ann,lab,p,j1,COMPLETED,5,40,90",
        header=("comment,model,size_of_nothing,g,c,m,n,hosts,who,acc,part,id,state,sub,beg,fin"),
    )
    jobs, account, _ = convert(FULL_ENTRY, text)
    assert account == (1, 1, 0)
    assert jobs.schema == pl.Schema(JOB_COLUMNS | {"file": pl.Int32})
    assert {name: value for name, value in jobs.row(0, named=True).items() if value is not None} == {
        "job_id": "j1",
        "task": "p",
        "user": "ann",
        "account": "lab",
        "submit_s": 5,
        "start_s": 40,
        "end_s": 90,
        "queue_s": 35,
        "runtime_s": 50,
        "outcome": "success",
        "status_raw": "COMPLETED",
        "gpu_type": "V100",
        "gpu_milli": 500,
        "cpu_milli": 1500,
        "mem_mib": 2560,
        "size": 3,
        "nodes": 2,
        "attempts": 1,
        "trace_end_s": 90,
        "file": 0,
    }


def test_a_column_called_line_is_no_line_number(convert):
    entry = edit(mapping={"job_id": "line", "user": "who"})
    text = join("j7,ann,FAILED,0,0,0", "j9,bob,UNHEARD,0,0,0", header="line,who,state,sub,beg,fin")
    for content in (text, pl.read_csv(text.encode())):
        jobs, account, quarantine = convert(entry, content)
        assert (account, jobs["job_id"].to_list(), jobs["user"].to_list()) == ((2, 1, 1), ["j7"], ["ann"])
        assert "j9" in quarantine["text"].item()


def test_unmapped_columns_are_blank_and_a_job_is_one_instance(convert):
    jobs, _, _ = convert(SECONDS, join("a,FAILED,0,0,0"))
    row = jobs.row(0, named=True)
    blank = ["trace", "task", "user", "account", "gpu_type", "gpu_milli", "cpu_milli", "mem_mib", "nodes"]
    blank += ["runtime_max_s"]
    assert [name for name, value in row.items() if value is None] == blank
    assert (row["size"], row["start_s"], row["runtime_s"]) == (1, 0, 0)  # relative seconds: 0 is a time


def test_outcomes_and_censoring(convert):
    jobs, _, _ = convert(
        SECONDS,
        join(
            "a,COMPLETED,0,10,50",
            "b,TIMEOUT,0,10,60",
            "c,CANCELLED,0,10,70",
            "d,RUNNING,0,10,",
            "e,RUNNING,0,10,30",
            "f,PENDING,0,,",
            "g,PENDING,0,20,100",  # a waiting job has not started
            "h,CANCELLED,0,,90",  # before it started
            "i,FAILED,0,10,",
        ),
    )
    assert jobs.select("outcome", "start_s", "end_s", "queue_s", "runtime_s", "attempts").rows() == [
        ("success", 10, 50, 10, 40, 1),
        ("failure", 10, 60, 10, 50, 1),
        ("cancelled", 10, 70, 10, 60, 1),
        ("running", 10, None, 10, None, 1),
        ("unknown", 10, 30, 10, 20, 1),
        *[("waiting", None, None, None, None, None)] * 2,
        ("cancelled", None, None, None, None, None),
        ("failure", 10, None, 10, None, 1),
    ]
    assert jobs["trace_end_s"].unique().to_list() == [100]
    durations = durations_of_jobs(jobs)
    assert durations.filter(pl.col("unit_id").is_in(["d", "i"])).select("duration_s", "duration_max_s").rows() == [
        (90, None),
        (None, 90),
    ]


@pytest.mark.parametrize(("unit", "seconds"), [("s", 1), ("min", 60), ("h", 3600)])
def test_a_run_time_in_place_of_an_end(convert, unit, seconds):
    entry = edit(mapping={"runtime": {"column": "run", "unit": unit}}, drop=["end"])
    jobs, account, _ = convert(
        entry, join("a,FAILED,0,10,1.5", "b,FAILED,0,10,", "c,FAILED,0,10,-1", header="id,state,sub,beg,run")
    )
    run_s = int(Fraction(3, 2) * seconds + Fraction(1, 2))  # half a second is rounded up
    assert account == (3, 3, 0)
    assert jobs.select("start_s", "end_s", "runtime_s").rows() == [(10, 10 + run_s, run_s), *[(10, None, None)] * 2]
    assert jobs["trace_end_s"].to_list() == [10 + run_s] * 3


def test_the_run_time_of_a_running_job_is_no_end(convert):
    rows = ["a,RUNNING,0,5,7", "b,COMPLETED,0,5,90"]
    jobs, _, _ = convert(edit(mapping={"runtime": "run"}, drop=["end"]), join(*rows, header="id,state,sub,beg,run"))
    assert jobs.select("outcome", "runtime_s").rows() == [("running", 7), ("success", 90)]


# Units --------------------------------------------------------------------------------------------------


SMALL_UNITS = {
    ("gpus", "milli"): 1,
    ("gpus", "percent"): 10,
    ("cpus", "core"): 1000,
    ("memory", "GiB"): 1024,
    ("memory", "MB"): Fraction(10**6, 2**20),
    ("memory", "GB"): Fraction(10**9, 2**20),
    ("memory", "KiB"): Fraction(1, 2**10),
    ("memory", "B"): Fraction(1, 2**20),
}
JOB_COLUMN = {"gpus": "gpu_milli", "cpus": "cpu_milli", "memory": "mem_mib"}


@pytest.mark.parametrize(("key", "unit"), SMALL_UNITS)
def test_units(convert, key, unit):
    values = ["0", "0.5", "2.25", "123456", "68719476736" if unit == "B" else "512"]
    rows = (f"j{n},FAILED,0,0,1,{value}" for n, value in enumerate([*values, "-1", "x"]))
    jobs, _, quarantine = convert(edit(mapping={key: {"column": "v", "unit": unit}}), join(*rows, header=f"{HEADER},v"))
    expected = [int(Fraction(value) * SMALL_UNITS[key, unit] + Fraction(1, 2)) for value in values]
    assert jobs[JOB_COLUMN[key]].to_list() == [*expected, None]
    assert quarantine.select("reason", "column").rows() == [("negative_blanked", "v"), ("not_a_number", "v")]


DURATIONS = {
    "7.6s": 8,
    "2.1min": 126,
    "1-02:03:04": 93_784,
    "0:00:06.155": 6,
    "2 days, 3:04:05": 183_845,
    "1h3m20s": 3_800,
    "2d3h": 183_600,
    "1.5 hours": 5_400,
    "2500ms": 3,
    "PT1H2M3.4S": 3_723,
    "P1DT2H": 93_600,
    "1 hour, 2 minutes and 3 seconds": 3_723,
    "1,5 h": 5_400,
}


def test_run_times_as_text(convert):
    rows = (f"j{n},FAILED,0,0,{csv_cell(text)}" for n, text in enumerate([*DURATIONS, "12", "5x", "1m2"]))
    entry = edit(mapping={"runtime": {"column": "d", "unit": "text"}}, drop=["end"], quoted=True)
    jobs, _, quarantine = convert(entry, join(*rows, header="id,state,sub,beg,d"))
    assert jobs["runtime_s"].to_list() == [*DURATIONS.values()]
    assert quarantine["reason"].to_list() == ["not_a_duration"] * 3


def csv_cell(text):
    return f'"{text}"'


@pytest.mark.parametrize(("unit", "cell", "runtime_s"), [("ms", 9_500, 10), ("d", 2, 172_800), ("us", 9_000_000, 9)])
def test_other_units_of_run_times(unit, cell, runtime_s, convert):
    entry = edit(mapping={"runtime": {"column": "fin", "unit": unit}}, drop=["end"])
    jobs, _, _ = convert(entry, join(f"a,FAILED,0,0,{cell}"))
    assert jobs["runtime_s"].to_list() == [runtime_s]


@pytest.mark.parametrize(
    ("decimal", "cells"),
    [(",", ["0,5", "1.024", "1 024", "12"]), (".", ["0.5", "1,024", "1'024", "12"])],
)
def test_decimal_marks_and_groups_of_digits(decimal, cells, convert):
    bad_cells = ["1,2,3", "1.5,5", "x"]
    rows = (f"j{n};FAILED;0;0;1;{cell}" for n, cell in enumerate(cells + bad_cells))
    entry = edit(mapping={"gpus": "g"}, numbers={"decimal": decimal}, delimiter=";")
    jobs, _, quarantine = convert(entry, join(*rows, header="id;state;sub;beg;fin;g"))
    assert jobs["gpu_milli"].to_list() == [500, 1_024_000, 1_024_000, 12_000]
    assert quarantine["reason"].to_list() == ["not_a_number"] * 3


def test_a_table_without_ids_and_with_exit_codes(convert):
    entry = edit(
        mapping={"status": "code", "partition": "queue"},
        drop=["job_id"],
        outcomes={"success": ["0"], "failure": ["*"]},
    )
    jobs, _, quarantine = convert(entry, join("0,0,0,1,a", "137,0,0,2,b", ",0,0,3,b", header="code,sub,beg,fin,queue"))
    assert jobs.select("job_id", "outcome", "partition").rows() == [("2", "success", "a"), ("3", "failure", "b")]
    assert quarantine["reason"].to_list() == ["missing_value"]


def test_a_bare_name_has_the_default_unit_of_the_schema():
    keys = ENTRY_SCHEMA["mapping"]["properties"]
    assert list(keys) == list(table.COLUMNS)
    for key in [key for key in table.UNITS if key != "duration"]:
        unit = keys[key]["properties"]["unit"]
        assert unit["enum"] == list(table.UNITS[key])
        bare, explicit = (
            table.schema_document(edit(mapping={key: part}, drop=["end"]))
            for part in ("v", {"column": "v", "unit": unit["default"]})
        )
        assert bare == explicit
    assert ENTRY_SCHEMA["times"]["properties"]["zone"]["default"] == "UTC"


def test_a_request_of_zero_can_mean_blank(convert):
    entry = edit(mapping={"memory": {"column": "m", "zero_is_blank": True}, "gpus": "g"})
    jobs, _, _ = convert(entry, join("a,FAILED,0,0,1,0.0,0", "b,FAILED,0,0,1,5,2", header=f"{HEADER},m,g"))
    assert jobs.select("mem_mib", "gpu_milli").rows() == [(None, 0), (5, 2000)]


# Times --------------------------------------------------------------------------------------------------


def epoch(text, zone="UTC"):
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


@pytest.mark.parametrize(
    ("times", "text", "expected"),
    [
        (
            {"format": "%Y-%m-%d %H:%M:%S", "zone": "America/Denver"},
            "2019-07-01 12:00:00",
            epoch("2019-07-01T12:00:00", "America/Denver"),
        ),
        (
            {"format": "%Y-%m-%dT%H:%M:%S%z", "zone": "America/Denver"},  # the text's own offset wins
            "2019-07-01T12:00:00+08:00",
            epoch("2019-07-01T04:00:00"),
        ),
        ({"format": "%Y-%m-%dT%H:%M:%S%.f"}, "2019-07-01T12:00:00.75", epoch("2019-07-01T12:00:00")),
        ({"format": "%d/%m/%Y %I:%M %p", "zone": "Asia/Shanghai"}, "02/01/2019 03:04 PM", epoch("2019-01-02T07:04:00")),
        ({"format": "epoch"}, "1561982400.0", 1561982400),
        ({"format": "seconds"}, "12", 12),
    ],
)
def test_formats_of_time(convert, times, text, expected):
    jobs, _, _ = convert(edit(times=times), join(f"a,FAILED,,{text},{text}"))
    assert jobs.select("submit_s", "start_s", "end_s").row(0) == (None, expected, expected)


DENVER = edit(times={"format": "%Y-%m-%d %H:%M:%S", "zone": "America/Denver"}, drop=["submit"])


def test_run_times_across_a_change_of_the_clocks(convert):
    jobs, account, quarantine = convert(
        DENVER,
        join(
            "forward,FAILED,2019-03-10 01:00:00,2019-03-10 04:00:00",
            "back,FAILED,2019-11-03 00:30:00,2019-11-03 03:30:00",
            "none,FAILED,2019-06-01 01:00:00,2019-06-01 04:00:00",
            "skipped,FAILED,2019-03-10 02:30:00,2019-03-10 04:00:00",  # no clock showed this
            "first,FAILED,2019-11-03 01:10:00,2019-11-03 01:50:00",
            # Really 20 minutes. The second occurrence is read as the first, so the end is blank.
            "again,FAILED,2019-11-03 01:50:00,2019-11-03 01:10:00",
            header="id,state,beg,fin",
        ),
    )
    assert account == (6, 5, 1)
    assert jobs.select("job_id", "runtime_s").rows() == [
        ("forward", 2 * 3600),
        ("back", 4 * 3600),
        ("none", 3 * 3600),
        ("first", 40 * 60),
        ("again", None),
    ]
    assert quarantine.select("line", "reason", "column").rows() == [
        (5, "not_a_time", "beg"),
        (7, "before_previous_blanked", "fin"),
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    # Of so few rows, none is far from the others.
    st.lists(
        st.tuples(st.datetimes(datetime(1990, 1, 2), datetime(2037, 1, 1)), st.integers(0, 10**7)),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(["UTC", "America/Denver", "Asia/Shanghai", "Australia/Lord_Howe"]),
)
def test_times_of_a_zone_are_those_of_the_standard_library(tmp_path, spans, zone):
    """Write times after 1990 as wall clock time, except hours that occur twice."""
    timezone, rows = ZoneInfo(zone), []
    for moment, seconds in spans:
        start = moment.replace(microsecond=0, tzinfo=ZoneInfo("UTC"))
        local_times = [time.astimezone(timezone) for time in (start, start + timedelta(seconds=seconds))]
        if all(time.fold == 0 for time in local_times):
            rows.append((int(start.timestamp()), seconds, *(f"{time:%Y-%m-%d %H:%M:%S}" for time in local_times)))
    if not rows:
        return
    (tmp_path / "rows.csv").write_text(
        join(*(f"j{n},FAILED,{beg},{fin}" for n, (_, _, beg, fin) in enumerate(rows)), header="id,state,beg,fin")
    )
    entry = edit(DENVER, times={"format": "%Y-%m-%d %H:%M:%S", "zone": zone})
    jobs, _, _ = derive(entry, [tmp_path / "rows.csv"], tmp_path / "raw", 0)
    assert jobs.select("start_s", "runtime_s").rows() == [(start, seconds) for start, seconds, _, _ in rows]


@pytest.mark.parametrize(
    "format_", ["%H:%M:%S", "hello", "%Y-%m-%d %I:%M:%S", "%Q", "%", "%s", "%Y-%m-%d %Z", "%Y %j %"]
)
def test_a_format_without_a_whole_time_is_refused(format_):
    with pytest.raises(StudyError, match=r"^times\.format: .* is no format of a whole date and time; expected"):
        table.schema_document(edit(times={"format": format_}))


# Words --------------------------------------------------------------------------------------------------


def test_an_unknown_status_is_quarantined_with_the_allowed_words(convert):
    jobs, account, quarantine = convert(
        SECONDS, join("a,FAILED,0,0,1", "b,EXPLODED,0,0,1", "c,failed,0,0,1", "d,,0,0,1", "e, FAILED ,0,0,1")
    )
    assert jobs.select("job_id", "status_raw", "outcome").rows() == [
        ("a", "FAILED", "failure"),
        ("e", " FAILED ", "failure"),
    ]
    assert account == (5, 2, 3)
    words = "COMPLETED / FAILED / TIMEOUT / CANCELLED / RUNNING / PENDING"
    assert quarantine["text"][0] == f"'EXPLODED' is none of {words}: b,EXPLODED,0,0,1"
    unknown, missing = "unknown_value", "missing_value"
    assert quarantine.select("line", "reason").rows() == [(3, unknown), (4, unknown), (5, missing)]


def test_only_the_first_word_of_a_status_counts(convert):
    text = join("a,CANCELLED by 123,0,0,1", "b,CANCELLED,0,0,1", "c,BY CANCELLED,0,0,1", "d, FAILED +,0,0,1")
    jobs, _, quarantine = convert(edit(mapping={"status": {"column": "state", "first_word": True}}), text)
    assert jobs.select("job_id", "status_raw", "outcome").rows() == [
        ("a", "CANCELLED by 123", "cancelled"),
        ("b", "CANCELLED", "cancelled"),
        ("d", " FAILED +", "failure"),
    ]
    assert quarantine["text"][0].startswith("'BY' is none of COMPLETED / ")
    # Without the key the whole status counts.
    assert convert(SECONDS, text)[0]["job_id"].to_list() == ["b"]


def test_words_for_no_value(convert):
    entry = edit(FULL_ENTRY, blank=["NA", "None"])
    header = "id,state,sub,beg,fin,part,who,acc,model,g,c,m,n,hosts"
    text = join("a,FAILED,NA,1,2,NA, None ,,NA,NA,None,NA,NA,NA", header=header)
    jobs, account, _ = convert(entry, text)
    assert account == (1, 1, 0)
    row = jobs.row(0, named=True)
    names = ("task", "user", "account", "gpu_type", "gpu_milli", "cpu_milli", "mem_mib", "size", "nodes", "submit_s")
    assert [row[name] for name in names] == [None] * 10
    _, _, quarantine = convert(
        entry, join("NA,FAILED,NA,1,2,,,,,,,,,", "b,None,1,1,1,,,,,,,,,", "c,FAILED,1,1,1,,,,,,,,,", header=header)
    )
    assert quarantine.select("reason", "column").rows() == [("missing_value", "id"), ("missing_value", "state")]


# Ids ----------------------------------------------------------------------------------------------------


def test_rows_that_share_an_id_are_numbered(convert):
    rows = ["a,FAILED,0,0,1,x", "b,FAILED,0,0,1,x", "a,FAILED,0,0,1,y", "a,FAILED,0,0,1,x", "a,FAILED,0,0,1,"]
    for mapping, tasks in (({}, ["1", None, "2", "3", "4"]), ({"task": "part"}, ["x/1", "x", "y", "x/2", None])):
        entry = edit(mapping=mapping, unique_ids=False)
        jobs, account, _ = convert(entry, join(*rows, header=f"{HEADER},part"))
        assert account == (5, 5, 0)
        assert jobs["task"].to_list() == tasks
        assert durations_of_jobs(jobs)["unit_id"].n_unique() == 5


# Files --------------------------------------------------------------------------------------------------


def test_delimiter_and_quotes(convert):
    entry = edit(mapping={"user": "the user"}, delimiter=";", quoted=True)
    jobs, account, _ = convert(
        entry, '"id";state;sub;beg;fin;"the user"\r\na;FAILED;0;0;1;"x;""y"""\r\n"b;";FAILED;0;0;"2";z\r\n'
    )
    assert account == (2, 2, 0)
    assert jobs.select("job_id", "user", "runtime_s").rows() == [("a", 'x;"y"', 1), ("b;", "z", 2)]


def test_several_files_of_both_kinds_are_one_table(tmp_path):
    (tmp_path / "a.csv").write_text(join("a,FAILED,0,0,1", "x,ODD,0,0,1"))
    frame = pl.DataFrame({"fin": [3, 4], "id": ["b", "a"], "state": ["FAILED"] * 2, "sub": [0, 0], "beg": [1, 1]})
    frame.write_parquet(tmp_path / "b.parquet")
    jobs, account, quarantine = derive(SECONDS, [tmp_path / "a.csv", tmp_path / "b.parquet"], tmp_path / "raw")
    assert jobs.select("job_id", "runtime_s").rows() == [("a", 1), ("b", 2)]
    assert account == (4, 2, 2)
    assert quarantine.select("file", "line", "reason").rows() == [
        ("a.csv", 3, "unknown_value"),
        ("b.parquet", 2, "duplicate_key"),
    ]


def test_a_large_file_in_blocks(convert, small_blocks, monkeypatch):
    monkeypatch.setattr(table, "MAX_PENDING_ROWS", 3)
    rows = [f"j{n},{'ODD' if n % 3 == 0 else 'FAILED'},0,{n},{n + 1}" for n in range(100)]
    jobs, account, quarantine = convert(SECONDS, join(*rows))
    assert account == (100, 66, 34)
    assert jobs["start_s"].to_list() == [n for n in range(100) if n % 3]
    assert quarantine["line"].to_list() == [n + 2 for n in range(0, 100, 3)]
    assert [text.split(": ")[1] for text in quarantine["text"]] == rows[::3]


@pytest.mark.parametrize(
    ("entry", "header", "message"),
    [
        (
            edit(mapping={"gpus": {"column": "gpus_req"}}),
            f"{HEADER},gpu_req",
            "line 1: the header row has no column gpus_req (did you mean gpu_req?). Correct the mapping of this trace",
        ),
        (SECONDS, "id,state,sub", "has no columns beg, fin. Correct the mapping"),
        (SECONDS, HEADER.replace(",", ";"), "It is one field: ';' stands where ',' is expected."),
        (SECONDS, '"id",state,sub,beg,fin', "The header has quotes: perhaps quoted: true is missing."),
        (SECONDS, "id,state,sub,beg,fin,beg", "names beg more than once"),
        (SECONDS, "PAR1", "the bytes are Parquet, but the name says CSV. Rename it to end in .parquet."),
    ],
)
def test_a_header_that_differs_from_the_mapping_is_refused(convert, entry, header, message):
    with pytest.raises(StudyError) as error:
        convert(entry, join("a,FAILED,0,0,1", header=header))
    assert message in str(error.value)


# Parquet ------------------------------------------------------------------------------------------------


def test_parquet_has_the_rules_and_the_quarantine_of_csv(tmp_path):
    rows = [
        ("a", "FAILED", "0", "0", "1"),
        ("b", "ODD", "0", "0", "1"),
        ("c", "FAILED", "0", "5", "1"),
        ("d", "FAILED", "0", "x", "1"),
        ("", "FAILED", "0", "0", "1"),
        ("f", None, "0", "0", "1"),
        ("g", "RUNNING", "0", "0", None),
        ("h", "FAILED", "0", "0.5", "1"),
        ("i", "FAILED", "-1", "0", "1"),
        ("a", "FAILED", "0", "0", "1"),
    ]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(HEADER.split(","), pl.String), orient="row")
    frame.write_parquet(tmp_path / "rows.parquet")
    frame.write_csv(tmp_path / "rows.csv")
    csv_jobs, csv_account, csv_quarantine = derive(edit(quoted=True), [tmp_path / "rows.csv"], tmp_path / "raw1")
    jobs, account, quarantine = derive(SECONDS, [tmp_path / "rows.parquet"], tmp_path / "raw2")
    assert jobs.equals(csv_jobs)
    assert account == csv_account == (10, 5, 5)
    columns = ["reason", "column"]
    assert quarantine.select(pl.col("line") + 1, *columns).rows() == csv_quarantine.select("line", *columns).rows()
    assert quarantine["text"][0].endswith(" / PENDING: id=b, sub=0, beg=0, fin=1, state=ODD")
    assert quarantine["text"][1] is None, "the row is kept without its end"


def test_parquet_types(convert):
    time = datetime(2019, 7, 1, 12)
    frame = pl.DataFrame(
        {
            "id": [7],
            "state": pl.Series(["FAILED"], dtype=pl.Categorical),
            "beg": [time],
            "fin": pl.Series([time]).dt.replace_time_zone("Asia/Tokyo").dt.cast_time_unit("ns"),
            "sub": [time.date()],
            "g": [50],
            "m": [2],
            "c": pl.Series(["1.50"]).cast(pl.Decimal(10, 2)),
            "who": [True],
            "n": pl.Series([3], dtype=pl.UInt8),
            "hosts": pl.Series([None]),
            "model": [float("nan")],
        }
    )
    entry = edit(
        FULL_ENTRY,
        drop=["task", "account"],
        times={"format": "%Y", "zone": "America/Denver"},
        blank=["NaN"],
    )
    with pytest.raises(StudyError, match=r"times\.format"):
        table.schema_document(entry)
    entry["times"]["format"] = "%Y-%m-%d"  # not used: the columns are time stamps
    frame = frame.with_columns(fin=pl.col("fin") + pl.duration(days=2))
    jobs, account, _ = convert(entry, frame)
    assert account == (1, 1, 0)
    row = jobs.row(0, named=True)
    assert row["submit_s"] == epoch("2019-07-01T00:00:00", "America/Denver")
    assert row["start_s"] == epoch("2019-07-01T12:00:00", "America/Denver")
    assert row["end_s"] == epoch("2019-07-03T12:00:00", "Asia/Tokyo")
    names = ("job_id", "gpu_milli", "mem_mib", "cpu_milli", "user", "size", "nodes", "gpu_type")
    assert [row[name] for name in names] == ["7", 500, 2048, 1500, "true", 3, None, None]


def test_a_parquet_time_that_no_clock_showed_is_quarantined(convert):
    times = [datetime(2019, 3, 10, 2, 30), datetime(2019, 3, 10, 1, 30)]
    frame = pl.DataFrame({"id": ["a", "b"], "state": ["FAILED"] * 2, "beg": times, "fin": [datetime(2019, 3, 11)] * 2})
    jobs, _, quarantine = convert(DENVER, frame)
    assert jobs["job_id"].to_list() == ["b"]
    assert quarantine.select("line", "reason", "column", "text").rows() == [
        (1, "not_a_time", "beg", "id=a, beg=2019-03-10T02:30:00, fin=2019-03-11T00:00:00, state=FAILED")
    ]


@pytest.mark.parametrize("rows", [6, 7, 21])
def test_parquet_in_chunks(convert, monkeypatch, rows):
    monkeypatch.setattr(table, "CHUNK_ROWS", 7)
    frame = pl.DataFrame({"id": [f"j{n}" for n in range(rows)], "beg": range(rows), "fin": range(rows, 2 * rows)})
    frame = frame.with_columns(
        sub=pl.lit(0), state=pl.when(pl.col("beg") % 5 == 4).then(pl.lit("ODD")).otherwise(pl.lit("FAILED"))
    )
    jobs, account, quarantine = convert(SECONDS, frame)
    odd_lines = [n + 1 for n in range(rows) if n % 5 == 4]
    assert account == (rows, rows - len(odd_lines), len(odd_lines))
    assert quarantine["line"].to_list() == odd_lines
    assert jobs["job_id"].to_list() == [f"j{n}" for n in range(rows) if n % 5 != 4]


@pytest.mark.parametrize(
    ("column", "entry", "message"),
    [
        ({"beg": [[1]]}, SECONDS, "the column 'beg' (registry: mapping.start) holds List(Int64); expected numbers"),
        ({"id": [b"x"]}, SECONDS, "the column 'id' (registry: mapping.job_id) holds Binary; expected text or numbers"),
        ({"beg": [datetime(2019, 1, 1)]}, SECONDS, "With format: seconds the times are numbers; name a format"),
        ({"beg": [timedelta(1)]}, DENVER, "holds Duration"),
    ],
)
def test_parquet_types_that_do_not_fit_are_refused(convert, column, entry, message):
    frame = pl.DataFrame({"id": ["a"], "state": ["FAILED"], "sub": [0], "beg": [0], "fin": [1]} | column)
    with pytest.raises(StudyError) as error:
        convert(entry, frame)
    assert message in str(error.value)


def test_files_that_are_no_parquet(tmp_path):
    valid = tmp_path / "good.parquet"
    pl.DataFrame({"id": ["a"]}).write_parquet(valid)
    contents = {"cut.parquet": valid.read_bytes()[:-9], "page.parquet": b"<html></html>", "empty.parquet": b""}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(StudyError, match=rf"{name}: cannot be read as Parquet \(.+\)\. Fetch the file again"):
            derive(SECONDS, [tmp_path / name], tmp_path / "raw")
    with pytest.raises(StudyError, match=r"good\.parquet: the file has no columns sub, .*state"):
        derive(SECONDS, [valid], tmp_path / "raw")
    (tmp_path / "rows.parquet.gz").write_bytes(valid.read_bytes())
    with pytest.raises(StudyError, match="a compressed Parquet file"):
        derive(SECONDS, [tmp_path / "rows.parquet.gz"], tmp_path / "raw")


# Parquet with the checksums of its pages, which Polars does not write: three jobs (id, state, beg, fin) in base 85.
# Plain, and in pages of version 2, packed with Zstandard, with a dictionary.
PLAIN_PAGES = (
    b"P(e~L6#x|~6)F|`&bp2V92Eu?02Kxm1{?qY00IC200sd80001C0RR91VgUdE0Am#Z6;u^e73{s@#0DG{1{DAm1{DSz00002000060SN#A07F"
    b"krP)tQsMMMSw002foNlZmV2><{9Lr+amOhr^hL=^xPBo!nT{kMs=4jdH*6#x|m6$Tst00062000I70RR910ssI20{{R36#x|^6(kkxl9Iy+9"
    b"2Eu?02Kxm1{?qY00IC200sdR0000U0000e0000L1Q}d402l^yV`yb<VHF4f6$~W;7y@ZzB>+qu0000L3?%{>1#@&^bY&#~OdJ3J02Kly0vH2"
    b"gWoG~t0wn?%17>M%02T%r92ra|02~zz86^e)85ja-WEB7w1{PcvTqX!f92Ec+02KlNJQfBS1{o#*1^@s6CIB223>hT`02vqsb97;JWfcGx1{"
    b"Q_^7KQ;PWJw$q02Kfg0suS~Fc}6JCIAKi001Tc92Ei?B?bT)7z1KuXB7Yz1{PKpRwn8JNgNdb6#x|i06ZxM872S*0000c02~zp86^e)85jd*"
    b"X>Jt&76ukp7FH&}0!bVd02Kfg0suTI1{o#*1^@s67LEfJ1||p=jspNFAaG%Fadl;MEn{$SEn#wUZ+9SeWpZ<AZ*CwmHZCwOF&Ru8000~S02}"
    b"}S8~^|SK>+{&P(e~L"
)
PACKED_PAGES = (
    b"P(e~L6$TX|6(SYwo5RcsOce$d02Kxm02Krk01_Mk000I70RR91VF3UD0Ac|E003hZ1Qjk7Koy3Fl$s1Y6$BLk5&!@wwJ-"
    b"f37r6ic2><{9Lr+amOhr^hL<Rr=07gMcOhrT$1{Dew3Kf9#`O^kW6$TXm6$TX$6$BLk5*z>k00sd80|FHW6&w{D6_C8p{Rd1H1{DAm1{DAm1"
    b"Qh@h8~^|S1_1#80006200093000#R6&w{D6@i({ivdg(1{DAm1{DAm1Qh@h8~^|S1_2ZR0015U001Ze000#P8C*307zT4=Xk~3-"
    b"6$k(o3?%{>0%>F=08AVJ000#XB?1@)b97;JWhDSi8~^|S6#^v!7z1KuX8;ufB?1@&W@&B!76us{8B8Vs92E>1B?bT)7y@Zz6$};z7G4%!CJ0"
    b"F!6#x|g6#@V}76usx872S*0000c02~zz88rX~5E&Q+b97;JWfcq-"
    b"1{RzF7Onv%&H*N7DJ&HP6#x|i02Kfg5ETLdJQgq+1{o#*1^@s6CIB220vRO+02vqqVr6F)3>F3!SQc0&lmbZ{6#x|g6#@V}DFzuP00sa6044"
    b"w&6#^M01^^it17>M%6$};z7FZToChP)992Ec+02KlNJShelCIAKi000)M0~Q7*2o}5p04N}EVRCVGWppiLaBwYQa&m8XAa-"
    b"SPb7^mGATl;CFfK6}OdJ3J8~^|u000~S002w@002-yQZW"
)


@pytest.mark.parametrize("text", [PLAIN_PAGES, PACKED_PAGES], ids=["plain", "packed"])
def test_a_page_with_a_wrong_checksum_is_refused(tmp_path, text):
    content = base64.b85decode(text)
    path = tmp_path / "rows.parquet"
    path.write_bytes(content)
    entry = edit(drop=["submit"])
    jobs, _, _ = derive(entry, [path], tmp_path / "raw")
    assert jobs.select("job_id", "start_s", "end_s").rows() == [("a", 1, 20), ("b", 2, 30), ("c", 3, 40)]
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    refusals, names = 0, {"id", "state", "beg", "fin"}
    for index in range(4, footer, 3):
        broken = bytearray(content)
        broken[index] ^= 1
        path.write_bytes(broken)
        damaged = find_damaged_column(path, names)
        if damaged is None:  # in a page's header, without a checksum: Polars refuses it or ignores it
            with contextlib.suppress(StudyError):
                assert derive(entry, [path], tmp_path / "raw")[0].equals(jobs)
            continue
        refusals += 1
        if refusals % 9 == 0:
            message = f"rows.parquet: the column '{damaged}' does not match its checksum: the file is damaged"
            with pytest.raises(StudyError, match=message):
                derive(entry, [path], tmp_path / "raw")
    # Damage is found in all pages and in about half of their headers.
    assert refusals > 0.6 * (footer - 4) / 3
    assert find_damaged_column(path, {"another"}) is None


# Any rows -----------------------------------------------------------------------------------------------


# Without \x1f, which has a test of its own below.
FIELD = st.one_of(
    st.sampled_from(
        ["", "0", "1", "7.0", "7.5", "-1", "x", "NaN", "inf", "1e99", "NA", " ", '"', '"a,b"', "a\x00", "ü"]
    ),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r\x1f"), max_size=6),
)
SOUND = st.tuples(
    st.integers(0, 40).map(lambda n: f"j{n}"),
    st.sampled_from(["COMPLETED", "FAILED", "CANCELLED by 1", "RUNNING"]),
    st.just("0"),
    st.integers(0, 9).map(str),
    st.integers(9, 99).map(str),
)
BREAKS_RULE = st.tuples(FIELD, FIELD | st.just("FAILED"), FIELD, FIELD, FIELD)


def test_a_line_break_inside_a_quoted_cell_is_read(convert):
    text = join(
        'a,"FAILED by\n\nx, y ""z""",0,0,1',
        'b",FAILED,0,0,2',
        "c,FAILED,0,0,3",
        'd,"FAILED\r\nx",0,0,4',
        'e,"FAILED,0,0,5',
    )
    jobs, account, quarantine = convert(QUOTED_ENTRY, text)
    assert jobs.select("job_id", "runtime_s").rows() == [("a", 1), ('b"', 2), ("c", 3), ("d", 4)]
    assert account == (5, 4, 1)
    assert quarantine.select("line", "reason").rows() == [(9, "wrong_column_count")]


def test_a_row_that_two_blocks_share_is_joined(monkeypatch, convert):
    monkeypatch.setattr(raw_files, "BLOCK_BYTES", 64)
    rows = (f'j{n},"FAILED\n{"x" * (n % 90)}\n",0,0,{n}' for n in range(1, 200))
    jobs, _, _ = convert(QUOTED_ENTRY, join(*rows))
    assert jobs["runtime_s"].to_list() == [*range(1, 200)]


QUOTED_ENTRY = edit(mapping={"status": {"column": "state", "first_word": True}}, quoted=True, blank=["NA"])
any_rows = settings(suppress_health_check=list(HealthCheck))


@any_rows
@given(st.lists(SOUND | BREAKS_RULE, min_size=1, max_size=20), st.lists(st.text('ab,"\t ', max_size=9), max_size=4))
def test_every_row_of_a_csv_is_accepted_or_quarantined(tmp_path, rows, raw):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEADER.split(","), *rows])
    content = text.getvalue() + "".join(f"{line}\n" for line in raw)
    (tmp_path / "rows.csv").write_bytes(content.encode())
    check_rows(tmp_path / "rows.csv", sum(bool(line.strip()) for line in content.encode().split(b"\n")) - 1)


@any_rows
@given(st.lists(SOUND | BREAKS_RULE, min_size=1, max_size=20))
def test_every_row_of_a_parquet_is_accepted_or_quarantined(tmp_path, rows):
    frame = pl.DataFrame(rows, schema=dict.fromkeys(HEADER.split(","), pl.String), orient="row")
    frame.write_parquet(tmp_path / "rows.parquet")
    check_rows(tmp_path / "rows.parquet", len(rows))


def check_rows(path, expected):
    """Check that each row is accepted or quarantined and only sound rows are accepted; a table may have none."""
    try:
        jobs, (total, accepted, quarantined), quarantine = derive(QUOTED_ENTRY, [path], path.parent / "raw")
    except StudyError as error:
        assert "no row is left" in str(error)
        return
    assert total == expected == accepted + quarantined
    assert (jobs.height, quarantine.height) == (accepted, quarantined)
    raw = pl.read_parquet(path.parent / "raw/rows.parquet")
    assert raw["line"].is_sorted()
    lines = raw["line"].to_list() + quarantine["line"].to_list()
    assert len(set(lines)) == len(lines)
    assert jobs["job_id"].null_count() == jobs["outcome"].null_count() == 0
    assert jobs["job_id"].is_unique().all()
    assert (jobs["runtime_s"].drop_nulls() >= 0).all()
    account = pl.DataFrame({"table": ["rows"], "rows_read": [total]})
    assert anomalies(quarantine, account)["rows"].sum() == quarantined


def test_a_unit_separator_in_a_table_with_quotes(convert):
    _, account, _ = convert(edit(quoted=True), join('"a",FAILED,0,0,1', "b\x1f,FAILED,0,0,1"))
    assert account == (2, 2, 0)


# The configuration --------------------------------------------------------------------------------------


TABLES = {"table": ["rows"], "openb": ["pods"], "sacct": ["record"]}


def explain(entry):
    with pytest.raises(ConfigError) as error:
        resolve([("my.yaml", {"study": ["mine"], "registry": {"mine": entry}})], {}, TABLES)
    return str(error.value).split("\n")


def drop_keys(*keys):
    return {key: value for key, value in SECONDS.items() if key not in keys}


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (edit(mapping={"runtime": "r"}), "mapping: has both end and runtime; a run would have two end times."),
        (edit(drop=["end"]), "mapping: has neither end nor runtime; map one of them, for example end: end_time."),
        (edit(mapping={"runtime": "r"}, drop=["start", "end"]), "mapping.runtime: needs a start, from which it counts"),
        (
            edit(mapping={"size": "n", "nodes": "n"}),
            "mapping.nodes: the column 'n' is mapped twice, also to size; keep",
        ),
        (edit(mapping={"user": "line"}), "mapping.user: a column named line cannot be mapped"),
        (
            edit(times={"format": "epoch", "zone": "America/Denvr"}),
            "times.zone: there is no time zone 'America/Denvr'; did you mean America/Denver? Expected a name",
        ),
        (
            edit(outcomes={"failure": ["F"], "success": ["F"]}),
            "outcomes.success: the word 'F' is also listed under failure;",
        ),
        (edit(outcomes={"failure": ["F "]}), "outcomes.failure: the word 'F ' has spaces around it; a status is read"),
        (
            edit(mapping={"status": {"column": "s", "first_word": True}}, outcomes={"failure": ["NODE FAIL"]}),
            "outcomes.failure: 'NODE FAIL' is more than one word, but first_word compares only the first word.",
        ),
    ],
)
def test_each_kind_of_problem_has_its_message(entry, line):
    assert any(message.startswith(f"my.yaml: registry.mine.{line}") for message in explain(entry)), explain(entry)


def test_times_need_no_format(convert):
    """They are ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since 1970, also in one column."""
    start_s = epoch("2024-03-01T10:00:00")
    texts = ["2024-03-01T10:00:00Z", "2024-03-01 10:00", "2024-03-01T11:00:00.25+01:00", "2024-03-01 11:00:00+0100"]
    texts += ["2024-03-01 10:00:00.5 +0000 UTC", f" {start_s} "]
    texts += [f"{start_s}.75", f"{start_s}250", f"{start_s}250000", f"{start_s}250000000"]
    wrong_texts = ["12", "20240301", "01/03/2024 10:00", "2024-13-01", "nan", "inf", "10:00"]
    # Placeholders of Go, databases, Unix, Slurm and people are blank and counted.
    placeholders = [
        "0001-01-01T00:00:00Z",
        "0000-00-00 00:00:00",
        "1970-01-01",
        "0",
        "-1",
        "-62135596800",
        "9999-12-31",
    ]
    rows = [f"j{n},FAILED,,{text},{start_s + 60}" for n, text in enumerate([*texts, *placeholders, *wrong_texts])]
    jobs, account, quarantine = convert(drop_keys("times"), join(*rows))
    assert account == (len(rows), len(texts + placeholders), len(wrong_texts))
    assert jobs["start_s"].to_list() == [start_s] * len(texts) + [None] * len(placeholders)
    reasons = ["year_blanked"] * len(placeholders) + ["not_a_time"] * len(wrong_texts)
    assert quarantine["reason"].to_list() == reasons
    jobs, _, _ = convert(drop_keys("times") | {"times": {"zone": "America/Denver"}}, join("a,FAILED,,2024-03-01,"))
    assert jobs["start_s"].to_list() == [epoch("2024-03-01", "America/Denver")]
    # 0 means no time only if the entry says so.
    jobs, _, _ = convert(edit(times={"zero_is_blank": True}), join(f"a,RUNNING,0,{start_s},0"))
    assert jobs.select("submit_s", "start_s", "end_s").row(0) == (None, start_s, None)


def test_one_column_is_submission_and_start(convert):
    jobs, _, _ = convert(
        edit(mapping={"submit": "beg"}), join("a,FAILED,5,9", "b,PENDING,7,", header="id,state,beg,fin")
    )
    assert jobs.select("submit_s", "start_s", "end_s", "runtime_s").rows() == [(5, 5, 9, 4), (7, None, None, None)]


def test_without_a_start_jobs_have_outcomes_and_ends_but_no_run_time(convert):
    jobs, account, _ = convert(edit(drop=["start"]), join("a,FAILED,5,9", "b,RUNNING,7,", header="id,state,sub,fin"))
    assert account == (2, 2, 0)
    assert jobs.select("outcome", "submit_s", "start_s", "end_s", "runtime_s", "queue_s").rows() == [
        ("failure", 5, None, 9, None, None),
        ("running", 7, None, None, None, None),
    ]


@pytest.mark.parametrize("key", ["mapping", "times"])
def test_the_keys_of_a_table_are_for_tables_only(key):
    formats = {"mapping": "table or outages", "times": "sacct or table or outages"}
    (message,) = explain({"format": "openb", "folder": "x", key: SECONDS[key]})
    assert message == f"my.yaml: registry.mine.{key}: works with the format {formats[key]} only; here it is openb."


GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@any_rows
@given(
    st.dictionaries(st.sampled_from(["mapping", "times", "outcomes", "blank"]), GARBAGE),
    st.sampled_from(list(table.COLUMNS)),
    GARBAGE,
)
def test_any_content_of_an_entry_is_explained_without_a_traceback(entry, key, part):
    for changed in (entry, edit(mapping={key: part}, **{k: v for k, v in entry.items() if k != "mapping"})):
        try:
            resolve(
                [("my.yaml", {"study": ["mine"], "registry": {"mine": {"format": "table", "folder": "x"} | changed}})],
                {},
            )
        except ConfigError as error:
            assert all(line.startswith("my.yaml: registry.mine") for line in str(error).split("\n"))


def test_memory_in_any_unit_has_one_limit(convert):
    """A billion MiB are 2**20 GB."""
    entry = edit(mapping={"memory": {"column": "m", "unit": "GB"}})
    text = join("j1,COMPLETED,1,2,3,1048576", "j2,COMPLETED,1,2,3,1048577", header=f"{HEADER},m")
    jobs, account, _ = convert(entry, text)
    assert jobs["mem_mib"].to_list() == [10**9] and account == (2, 1, 1)


def test_the_peak_memory_is_an_extra_in_mib(convert):
    entry = edit(mapping={"memory_peak": {"column": "rss", "unit": "GiB"}, "reason": "why"})
    text = join("j1,COMPLETED,1,2,3,2.5,", "j2,FAILED,1,2,3,,why", header=f"{HEADER},rss,why")
    jobs, account, _ = convert(entry, text)
    assert account == (2, 2, 0)
    assert jobs["mem_peak_mib"].to_list() == [2560, None] and jobs["reason"].to_list() == [None, "why"]
    assert jobs["mem_mib"].null_count() == 2
