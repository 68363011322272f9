"""Philly: a job log that is one JSON array, telemetry tables that are nearly CSV, and each of their quirks."""

import gzip
import json
from functools import partial

import polars as pl
import pytest
from format_tables import derive_table, ingest_tables, raw_schemas
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.errors import StudyError
from ttf.formats.philly import derive as philly
from ttf.formats.philly import read as philly_raw
from ttf.formats.philly.gpu_use import gpu_use
from ttf.formats.philly.read import READERS
from ttf.raw import raw_files, raw_json
from ttf.raw.ingest import REASONS, anomalies
from ttf.raw.raw_tables import QUARANTINED_SCHEMA
from ttf.records.durations import durations_of_jobs
from ttf.records.infra import infra_durations
from ttf.records.jobs import JOB_COLUMNS, NODE_COLUMNS, PLACEMENT_COLUMNS

SCHEMAS = raw_schemas("philly")
derive = partial(derive_table, "philly")
FLAGS = [
    *("no_attempts", "missing_start", "missing_end", "negative_queue", "negative_run", "dst_ambiguous"),
    *("zero_gpu", "out_of_window", "zone_contradicted"),
]
GPU_HEADER = "time,machineId," + ",".join(f"gpu{gpu}_util" for gpu in range(8)) + "\n"
# 2017-10-07 01:00:00 PDT
T = 1_507_363_200


def clock(seconds):
    """Return the log's wall-clock text `seconds` after 2017-10-07 01:00:00, within that day."""
    return f"2017-10-07 {1 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def part(ip="m1", *gpus):
    return {"ip": ip, "gpus": [f"gpu{gpu}" for gpu in gpus]}


def attempt(start, end, *detail):
    times = {"start_time": start, "end_time": end}
    times = {name: clock(time) if isinstance(time, int) else time for name, time in times.items()}
    return times | {"detail": list(detail) if detail else [part("m1", 0)]}


def job(*attempts, **fields):
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_14199",
        "attempts": list(attempts),
        "submitted_time": clock(0),
        "user": "ce2f4c",
    } | fields


@pytest.fixture
def raw(tmp_path):
    """Ingest tables (lists of records, text or bytes) as the workflow does; raw.quarantine holds the rejected rows."""

    def run(log=None, max_share=1.0, **tables):
        if log is not None:
            if isinstance(log, list):
                log = [
                    record | {"jobid": f"application_1506638472019_{number}"}
                    if isinstance(record, dict) and record.get("jobid") == job()["jobid"]
                    else record
                    for number, record in enumerate(log)
                ]
                log = json.dumps(log)
            tables = {"job_log": log} | tables
        scans, run.account, run.quarantine = ingest_tables("philly", tmp_path / "raw", max_share, READERS, **tables)
        for _, rows_read, accepted, quarantined in run.account.iter_rows():
            assert rows_read == accepted + quarantined
        return scans

    return run


def reasons(raw):
    return raw.quarantine.select("line", "reason", "column").rows()


# The job log ------------------------------------------------------------------------------------------------


def test_columns_of_the_job_record(raw):
    tables = raw(
        [job(attempt(30, 104, part("m47", *range(8))), attempt(111, 1000, part("m412", *range(8)), part("m2", 3)))]
    )
    jobs = derive("jobs", tables)
    extras = ["wall_s", *FLAGS]
    assert jobs.schema == pl.Schema(
        JOB_COLUMNS | {"file": pl.Int32, "wall_s": pl.Int64} | dict.fromkeys(FLAGS, pl.Boolean)
    )
    assert not jobs.select(pl.any_horizontal(FLAGS)).item()
    assert {name: value for name, value in jobs.drop(FLAGS).row(0, named=True).items() if value is not None} == {
        "job_id": "application_1506638472019_0",
        "user": "ce2f4c",
        "account": "ee9e8c",
        "submit_s": T,
        "start_s": T + 30,
        "end_s": T + 1000,
        "queue_s": 30,
        "runtime_s": 74 + 889,
        "outcome": "success",
        "status_raw": "Pass",
        "gpu_milli": 8000,
        "size": 1,
        "nodes": 1,
        "attempts": 2,
        "trace_end_s": T + 1000,
        "file": 0,
        "wall_s": 970,
    }
    assert jobs.columns[-len(extras) :] == extras


def test_one_array_on_one_line_or_many(raw, monkeypatch):
    """The array has no line per record. Its one line may exceed the line limit of a table."""
    monkeypatch.setattr(raw_files, "MAX_LINE_BYTES", 100)
    log = [job(attempt(1, 5))] * 3
    expected = derive("jobs", raw(log))
    named = [record | {"jobid": f"application_1506638472019_{n}"} for n, record in enumerate(log)]
    indented = json.dumps(named, indent=4, separators=(", ", ": "))
    assert derive("jobs", raw(indented)).equals(expected)


def test_packed_with_mark_and_blanks_around(raw, tmp_path):
    path = tmp_path / "cluster_job_log.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf \n" + json.dumps([job(attempt(1, 5))]).encode() + b"\n\n"))
    accepted_rows, quarantined_rows = next(READERS["job_log"].rows(path, SCHEMAS["job_log"]))
    assert (accepted_rows.height, quarantined_rows.height) == (1, 0)


def test_servers_of_philly_with_their_gpus(raw):
    tables = raw(
        [
            job(
                attempt(10, 40, part("m9", 0, 1), part("m2", 3)),
                attempt(50, 90, part("m2", 0), part("m2", 1)),
                attempt(None, None, part("m3", 0)),
            )
        ]
    )
    placements = derive("placements", tables)
    assert placements.schema == pl.Schema(PLACEMENT_COLUMNS)
    names = ["attempt", "placement", "node", "start_s", "runtime_s", "gpu_milli", "outcome", "nodes", "own_outcome"]
    assert placements.select(names).rows() == [
        (0, 0, "m9", T + 10, 30, 2000, None, 2, False),
        (0, 1, "m2", T + 10, 30, 1000, None, 2, False),
        (1, 0, "m2", T + 50, 40, 2000, "success", 1, True),
    ]
    attempt_rows = derive("attempts", tables)[placements["attempt_id"]]
    assert attempt_rows.select("job_id", "attempt").equals(placements.select("job_id", "attempt"))


def test_null_the_empty_text_the_word_none_and_a_missing_field_are_blank(raw):
    blanks = (None, "", "None")
    jobs = derive("jobs", raw([job(attempt(1, 5), attempt(7, end), user=end, vc=end) for end in blanks]))
    assert jobs.select("user", "account", "runtime_s", "missing_end").rows() == [(None, None, None, True)] * 3
    jobs = derive("jobs", raw([job(attempt(start, 9)) for start in blanks]))
    assert jobs.select("start_s", "missing_start").rows() == [(None, True)] * 3
    record = job(attempt(1, 2))
    del record["user"], record["attempts"][0]["end_time"]
    assert derive("jobs", raw([record])).select("user", "missing_end", "start_s").row(0) == (None, True, T + 1)


def test_times_in_the_repeated_hour_are_flagged(raw):
    """On 2017-11-05 the hour 01:00-01:59 repeats. Its times count as the first passing, in jobs and attempts."""
    tables = raw(
        [
            job(attempt("2017-11-05 00:59:59", "2017-11-05 02:00:00"), submitted_time="2017-11-05 00:00:00"),
            job(attempt("2017-11-05 01:00:00", "2017-11-05 03:00:00"), submitted_time="2017-11-05 00:00:00"),
            job(attempt("2017-11-05 00:30:00", "2017-11-05 01:59:59"), submitted_time="2017-11-05 00:00:00"),
            job(submitted_time="2017-11-05 01:30:00"),
        ]
    )
    jobs = derive("jobs", tables)
    assert jobs["dst_ambiguous"].to_list() == [False, True, True, True]
    assert jobs["runtime_s"].to_list() == [2 * 3600 + 1, 3 * 3600, 89 * 60 + 59, None]
    assert derive("attempts", tables)["dst_ambiguous"].to_list() == [False, True, True]


def test_a_job_without_attempts_keeps_its_outcome_and_has_no_run_time(raw):
    tables = raw([job(status="Killed"), job(attempts=None), job(attempt(0, 60))])
    jobs = derive("jobs", tables)
    assert jobs.select("no_attempts", "outcome", "start_s", "runtime_s", "gpu_milli", "attempts").rows() == [
        (True, "cancelled", None, None, None, 0),
        (True, "success", None, None, None, 0),
        (False, "success", T, 60, 1000, 1),
    ]
    assert not jobs["zero_gpu"].any()
    assert derive("attempts", tables).height == 1
    never_tried = raw([job(), job()])
    assert derive("attempts", never_tried).schema == pl.Schema(ATTEMPT_COLUMNS)
    assert derive("nodes", never_tried).is_empty()


ATTEMPT_COLUMNS = dict.fromkeys(("job_id", "attempt", "queued_from_s", "queue_s", "start_s", "end_s"), pl.Int64)
ATTEMPT_COLUMNS |= {"job_id": pl.String, "runtime_s": pl.Int64, "outcome": pl.String, "gpu_milli": pl.Int64}
ATTEMPT_COLUMNS |= {"nodes": pl.Int64, "node_list": pl.String}
ATTEMPT_COLUMNS |= dict.fromkeys(("negative_queue", "negative_run", "dst_ambiguous"), pl.Boolean) | {"job": pl.UInt32}


def test_a_last_attempt_without_an_end_is_censored_at_the_trace_end(raw):
    """The outcome stays; the run time is blank and bounded by the trace's end."""
    jobs = derive_table(
        "philly", "jobs", raw([job(attempt(10, 20), attempt(30, None), status="Failed"), job(attempt(0, 500))])
    )
    assert jobs.select("outcome", "start_s", "end_s", "runtime_s", "wall_s", "missing_end", "attempts").row(0) == (
        *("failure", T + 10, None, None, None, True, 2),
    )
    assert durations_of_jobs(jobs).select("duration_s", "event", "duration_max_s").rows() == [
        (None, "failure", 490),
        (500, "success", None),
    ]


def test_an_earlier_attempt_without_an_end_adds_no_run_time(raw):
    tables = raw([job(attempt(10, None), attempt(30, 40))])
    jobs = derive("jobs", tables)
    times = jobs.select("start_s", "end_s", "runtime_s", "wall_s", "missing_end").row(0)
    assert times == (T + 10, T + 40, 10, 30, True)
    assert derive("attempts", tables).select("queued_from_s", "queue_s").rows() == [(T, 10), (None, None)]


def test_an_attempt_without_a_start(raw):
    """It is not counted as an attempt; if it is the first, its GPUs are still the job's request."""
    tables = raw([job(attempt(None, None, part("m1", 0, 1)), attempt(30, 40)), job(attempt(5, 9), attempt(None, None))])
    jobs = derive("jobs", tables)
    assert jobs.select("start_s", "end_s", "runtime_s", "attempts", "gpu_milli", "missing_start").rows() == [
        (T + 30, T + 40, 10, 1, 2000, True),
        (T + 5, T + 9, 4, 1, 1000, True),
    ]
    assert derive("attempts", tables)["outcome"].to_list() == [None, "success", "success", None]


def test_an_end_before_the_start_is_flagged_and_blank(raw):
    tables = raw([job(attempt(10, 20), attempt(50, 40)), job(attempt(50, 40), attempt(60, 70))])
    jobs = derive("jobs", tables)
    assert jobs.select("end_s", "runtime_s", "negative_run").rows() == [(None, None, True), (T + 70, 10, True)]
    assert derive("attempts", tables).select("runtime_s", "negative_run").rows() == [
        *[(10, False), (None, True), (None, True), (10, False)],
    ]


def test_a_start_before_the_submission_is_flagged_and_blank(raw):
    tables = raw([job(attempt(5, 9), submitted_time=clock(7)), job(attempt(5, 50), attempt(40, 60))])
    assert derive("jobs", tables).select("queue_s", "negative_queue").rows() == [(None, True), (5, False)]
    attempts = derive("attempts", tables)
    assert attempts.select("queue_s", "negative_queue").rows() == [(None, True), (5, False), (None, True)]


def test_gpus_are_those_of_the_first_attempt(raw):
    tables = raw([job(attempt(1, 2, part("m1", 0, 1), part("m2", 0)), attempt(3, 4, part("m3", *range(8))))])
    assert derive("jobs", tables).select("gpu_milli", "nodes", "size").row(0) == (3000, 2, 1)
    attempts = derive("attempts", tables)
    assert attempts.select("gpu_milli", "nodes", "node_list").rows() == [(3000, 2, "m1,m2"), (8000, 1, "m3")]


def test_zero_gpus(raw):
    times = {"start_time": clock(1), "end_time": clock(2)}
    details = ([part("m1")], [], None, [{"ip": "m1", "gpus": None}])
    jobs = derive("jobs", raw([job(times | {"detail": detail}) for detail in details]))
    assert jobs.select("gpu_milli", "zero_gpu", "nodes").rows() == [(0, True, nodes) for nodes in (1, 0, 0, 1)]


def test_attempts_in_sequence(raw):
    tables = raw([job(attempt(10, 70), attempt(250, 260, part("m2", 1)), status="Failed"), job(attempt(1, 2))])
    attempts = derive("attempts", tables)
    assert attempts.schema == pl.Schema(ATTEMPT_COLUMNS)
    columns = ("job", "attempt", "queued_from_s", "queue_s", "start_s", "end_s", "runtime_s", "outcome", "node_list")
    assert attempts.select(columns).rows() == [
        (0, 0, T, 10, T + 10, T + 70, 60, None, "m1"),
        (0, 1, T + 70, 180, T + 250, T + 260, 10, "failure", "m2"),
        (1, 0, T, 1, T + 1, T + 2, 1, "success", "m1"),
    ]


def test_submitted_on_a_day_without_telemetry(raw):
    days = ["2017-10-02 23:59:59", "2017-10-03 00:00:00", "2017-12-15 23:59:59", "2017-12-16 00:00:00"]
    jobs = derive("jobs", raw([job(submitted_time=day) for day in days]))
    assert jobs["out_of_window"].to_list() == [True, False, False, True]


def test_zone_by_the_start_of_the_resource_manager(raw):
    """It started at 2017-09-28 22:41:12 UTC, 15:41:12 PDT, so a log from 15:42 on is Pacific and cannot be UTC."""
    times = ["2017-09-28 15:42:12", "2017-09-29 01:00:00", "2017-09-28 15:41:11", "2017-09-28 15:41:12"]
    jobs = derive("jobs", raw([job(submitted_time=time) for time in times]))
    assert jobs["zone_contradicted"].to_list() == [False, False, True, False]


# Records that break a rule ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "reason", "column"),
    [
        ([job()], "wrong_column_count", None),
        (job(status=None), "missing_value", "status"),
        (job(status="Running"), "unknown_value", "status"),
        (job(user=True), "wrong_type", "user"),
        ({name: job()[name] for name in job() if name != "submitted_time"}, "missing_value", "submitted_time"),
        (job(submitted_time="yesterday"), "not_a_time", "submitted_time"),
        (job(submitted_time="2018-03-11 02:30:00"), "not_a_time", "submitted_time"),  # an hour that was skipped
        (job(attempts={}), "wrong_type", "attempts"),
        (job(attempt("2017-13-01 00:00:00", 5)), "not_a_time", "attempts[].start_time"),
        (job(attempt(1, 2) | {"detail": part("m1", 0)}), "wrong_type", "attempts[].detail"),
        (job(attempt(1, 2, part("", 0))), "missing_value", "attempts[].detail[].ip"),
        (job(attempt(1, 2, part("m1", "x"))), "unknown_value", "attempts[].detail[].gpus"),
        (job(user="\ud800"), "not_utf8", None),
    ],
)
def test_a_record_that_breaks_a_rule_is_quarantined(raw, record, reason, column):
    tables = raw([job(attempt(1, 2)), record, job(attempt(1, 2))])
    assert reasons(raw) == [(2, reason, column)]
    assert raw.quarantine["text"][0]
    assert derive("jobs", tables).height == 2
    assert anomalies(raw.quarantine, raw.account)["rows"].to_list() == [1]


def test_unknown_fields_are_ignored(raw):
    unknown_fields = {"why": [1, {"x": None}], "how": 10**400}
    jobs = derive("jobs", raw([job(attempt(1, 2) | unknown_fields) | unknown_fields]))
    assert jobs["runtime_s"].to_list() == [1]


def test_a_repeated_job_id_keeps_the_first(raw):
    jobs = derive("jobs", raw([job(jobid="a"), job(jobid="b"), job(jobid="a", status="Failed")]))
    assert jobs["outcome"].to_list() == ["success", "success"]
    assert reasons(raw) == [(3, "duplicate_key", "job_id")]


def test_odd_text_is_unchanged(raw):
    texts = ['quote " and \\ backslash', "[{]}", "line\nbreak", "ünïcödé 🎉", "\0", "-0700,"]
    tables = raw([job(attempt(1, 2, part(text, 0)), user=text) for text in texts])
    assert raw.quarantine.is_empty()
    assert derive("jobs", tables)["user"].to_list() == texts
    assert derive("attempts", tables)["node_list"].to_list() == texts


def test_a_record_with_bytes_that_are_not_utf8_is_quarantined(raw):
    tables = raw(json.dumps([job(user="XX"), job(jobid="b")]).encode().replace(b"XX", b"\xff\xfe"))
    assert reasons(raw) == [(1, "not_utf8", None)]
    assert "\ufffd" in raw.quarantine["text"][0]
    assert derive("jobs", tables).height == 1


def test_the_text_of_a_quarantined_record_is_cut(raw):
    raw([job(status="Lost", user="u" * 10**5), job(user=["u" * 10**5]), job()])
    assert raw.quarantine["text"].str.len_chars().to_list() == [500, 500]


# Files that are no job log ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"status": "Pass"}\n{"status": "Pass"}\n', "expected one JSON array"),
        ('[{},\n{"status": "Pa', "line 2: record 2 of the array is cut short"),
        ("[{},]", "record 2 of the array is no valid JSON"),
        ("[{}]\n[{}]", "line 2: the array ends before this line"),
        ('[{"a":' + '{"a":' * 10**5 + "1" + "}" * 10**5 + "}]", "nested too deeply"),
        ("<!DOCTYPE html><html>", "HTML"),
        ("", "empty"),
        ("[ ]", "no rows"),
    ],
)
def test_a_file_that_is_no_array_or_is_cut_short(raw, text, message):
    with pytest.raises(StudyError, match=message) as caught:
        raw(text)
    assert "job_log.csv" in str(caught.value)


def test_a_log_cut_anywhere(raw):
    text = json.dumps([job(), job(user="ü")])
    for cut in range(1, len(text), 5):
        with pytest.raises(StudyError):
            raw(text[:cut])


def test_a_log_far_too_long(raw, monkeypatch):
    monkeypatch.setattr(raw_json, "MAX_BYTES", 1000)
    with pytest.raises(StudyError, match="not the table expected"):
        raw([job()] * 10)


# Both ways to read a log ------------------------------------------------------------------------------------

scalar = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
any_json = st.recursive(scalar, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner))
times = st.sampled_from([clock(0), clock(90), "2017-11-05 01:30:00", None, "", "None"])
machines = st.sampled_from(["m1", "m2", ""]) | st.text(max_size=3)
gpus = st.lists(st.sampled_from(["gpu0", "gpu7", "gpu12", "gpu", "cpu0"]), max_size=3)


def fields(**kinds):
    """Generate the mapping; sometimes one field has any value, is missing, or an extra field is added."""
    valid = st.fixed_dictionaries(kinds)
    wrong = st.tuples(valid, st.sampled_from(list(kinds)), any_json).map(lambda t: t[0] | {t[1]: t[2]})
    shorter = st.tuples(valid, st.sampled_from(list(kinds))).map(lambda t: {k: v for k, v in t[0].items() if k != t[1]})
    longer = st.tuples(valid, any_json).map(lambda t: t[0] | {"more": t[1]})
    return st.one_of(valid, valid, valid, valid, wrong, shorter, longer)


records = fields(
    status=st.sampled_from(["Pass", "Killed", "Failed", "Running"]),
    vc=st.text(max_size=3),
    jobid=st.integers(0, 10**9).map(str),
    attempts=st.none()
    | st.lists(
        fields(
            start_time=times, end_time=times, detail=st.none() | st.lists(fields(ip=machines, gpus=gpus), max_size=2)
        ),
        max_size=3,
    ),
    submitted_time=times,
    user=st.none() | st.text(max_size=3),
)


@given(log=st.lists(records | records | records | any_json, min_size=1, max_size=5), in_ascii=st.booleans())
def test_any_records(tmp_path_factory, log, in_ascii):
    """Rows read = accepted + quarantined; a record's result depends neither on the reader nor on other records."""
    folder = tmp_path_factory.getbasetemp() / "any_records"
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    path = folder / "cluster_job_log"

    def read(records):
        text = json.dumps(records, ensure_ascii=in_ascii).encode("utf-8", errors="surrogatepass")
        path.write_bytes(text)
        try:
            return [next(READERS["job_log"].rows(path, SCHEMAS["job_log"]))]
        except StudyError as error:  # NaN and Infinity are no JSON
            assert any(word in text for word in (b"NaN", b"Infinity"))
            assert "no valid JSON" in str(error)
            return []

    for accepted, quarantined in read(log):
        assert quarantined.schema == pl.Schema(QUARANTINED_SCHEMA)
        assert dict(accepted.schema) == SCHEMAS["job_log"].dtypes
        assert sorted(accepted["line"].to_list() + quarantined["line"].to_list()) == list(range(1, len(log) + 1))
        assert set(quarantined["reason"]) <= set(REASONS)
        assert quarantined["text"].null_count() == 0
        for number, record in enumerate(log, start=1):
            [(expected, expected_quarantined)] = read([record])
            is_record = pl.col("line") == number
            assert accepted.filter(is_record).drop("line").equals(expected.drop("line"))
            assert quarantined.filter(is_record).drop("line", "text").equals(expected_quarantined.drop("line", "text"))
        if accepted.height:
            raw = {"job_log": accepted.lazy().with_columns(file=pl.lit(0, pl.Int32))}
            assert derive("jobs", raw).height == accepted.height
            derive("attempts", raw), derive("nodes", raw)


def test_a_valid_log_is_read_by_the_fast_reader():
    records = [job(attempt(1, None), attempt("None", 5)), job(attempts=None, user=None), job(attempt(1, 2, part("m1")))]
    assert philly_raw._read_fast(json.dumps(records).encode()).height == 3


@given(text=st.binary(max_size=60) | st.text(alphabet='[]{}",:\\u0nulmatps ', max_size=60).map(str.encode))
def test_any_bytes_are_rows_or_one_error(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any_log"
    path.write_bytes(text)
    try:
        accepted, quarantined = next(READERS["job_log"].rows(path, SCHEMAS["job_log"]))
    except StudyError as error:
        assert str(path) in str(error)
        return
    assert accepted.height + quarantined.height == len(json.loads(text))


# Telemetry --------------------------------------------------------------------------------------------------


def gpu_rows(*rows):
    return GPU_HEADER + "".join(f"{row}\n" for row in rows)


def test_gpu_telemetry_rows_may_end_in_a_comma_that_the_header_has_or_lacks(raw):
    tables = raw(gpu_util=gpu_rows("2017-10-03 00:08:00 PDT,m29,60.8,99.366666667,100.0,63.333333333,1,0.0005,0,0.0,"))
    assert tables["gpu_util"].collect().rows() == [
        (0, 2, 1_507_014_480, "m29", 60_800, 99_367, 100_000, 63_333, 1000, 1, 0, 0)
    ]
    row = "2017-10-03 00:08:00 PDT,m1,1,2,3,4,5,6,7,8"
    for text in (gpu_rows(row), GPU_HEADER.replace("\n", ",\n") + row + ",\n"):
        assert raw(gpu_util=text)["gpu_util"].collect()["gpu7_mpct"].to_list() == [8000]


def test_a_row_shifted_by_a_field_is_quarantined(raw):
    row = "2017-10-03 00:08:00 PDT,m1,1,2,3,4,5,6,7,8,"
    raw(gpu_util=gpu_rows(row, row + "9", row + ",", row.removesuffix(","), row, row))
    assert [(line, reason) for line, reason, _ in reasons(raw)] == [
        (3, "unknown_value"),
        (4, "wrong_column_count"),
        (5, "wrong_column_count"),
    ]


def test_na_is_offline_and_empty_is_no_gpu(raw):
    tables = raw(gpu_util=gpu_rows("2017-10-03 00:08:00 PDT,m1,NA,0.0,NA,5,,,,,"))
    assert tables["gpu_util"].collect().row(0)[4:] == (None, 0, None, 5000, None, None, None, None)


def test_pdt_and_pst_distinguish_the_repeated_hour(raw):
    times = ["2017-11-05 00:59:00 PDT", "2017-11-05 01:00:00 PDT", "2017-11-05 01:00:00 PST", "2017-11-05 02:00:00 PST"]
    tables = raw(cpu_util="time,machineId,cpu_util\n" + "".join(f"{time},m29,31.845\n" for time in times))
    assert tables["cpu_util"].collect()["time_s"].to_list() == [1_509_868_740 + extra for extra in (0, 60, 3660, 7260)]
    assert tables["cpu_util"].collect()["cpu_mpct"].to_list() == [31_845] * 4


def test_a_time_without_its_zone_is_quarantined(raw):
    texts = ["2017-10-03 00:08:00,m1,1", "2017-10-03 00:08:00 CET,m1,1", "2017-10-32 00:08:00 PDT,m1,1"]
    raw(cpu_util="time,machine_id,cpu_util\n2017-10-03 00:08:00 PDT,m1,1\n" + "\n".join(texts))
    assert reasons(raw) == [(line, "not_a_time", "time") for line in (3, 4, 5)]
    assert raw.quarantine["text"].to_list() == texts


def test_a_share_above_100_percent_is_quarantined(raw):
    row = "2017-10-03 00:0{}:00 PDT,m1,{},0,0,0,0,0,0,0,"
    raw(gpu_util=gpu_rows(row.format(8, 100), row.format(9, 101)))
    assert reasons(raw) == [(3, "out_of_range", "gpu0_util")]


def test_memory_in_kb_with_0_for_not_measured(raw):
    rows = ["2017-10-03 00:06:00 PDT,m29,528272672.0,2030730.6667", "2017-10-03 00:07:00 PDT,m29,0.0,0.0"]
    rows.append("2017-10-03 00:08:00 PDT,m29,NA,NA")
    tables = raw(mem_util="time,machine_id,mem_total,mem_free\n" + "\n".join(rows) + "\n")
    assert tables["mem_util"].select("mem_total_kb", "mem_free_kb").collect().rows() == [
        *[(528_272_672, 2_030_731), (None, 0), (None, None)],
    ]


def test_machine_list_has_blanks_after_its_commas(raw):
    tables = raw(machine_list="machineId, number of GPUs, single GPU mem\nm31,8, 24GB\nm2, 2, 12GB\n")
    assert tables["machine_list"].collect().rows() == [(0, 2, "m31", 8, "24GB"), (0, 3, "m2", 2, "12GB")]


@given(
    lines=st.lists(
        st.sampled_from(
            ["2017-10-03 00:08:00 PDT,m1,1,2,3,4,5,6,7,8,", "2017-12-03 00:08:00 PST,m2,NA,,,,,,,,", "", "x"]
        )
        | st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)
        | st.lists(
            st.sampled_from(["", "NA", "1", "-1", "1e9", "nan", "2017-10-03 00:08:00 PDT", "m1"]), max_size=12
        ).map(",".join),
        max_size=10,
    ),
    table=st.sampled_from(["gpu_util", "cpu_util", "mem_util", "machine_list"]),
    block_bytes=st.integers(1, 300),
)
def test_any_lines(tmp_path_factory, lines, table, block_bytes):
    path = tmp_path_factory.getbasetemp() / "any_lines"
    header = ",".join(column.name for column in SCHEMAS[table].columns)
    path.write_bytes("\n".join([header, *lines, ""]).encode())
    with pytest.MonkeyPatch.context() as context:
        context.setattr(raw_files, "BLOCK_BYTES", block_bytes)
        blocks = list(READERS[table].rows(path, SCHEMAS[table]))
    file_lines = path.read_bytes().replace(b"\r\n", b"\n").split(b"\n")
    expected = [number for number, line in enumerate(file_lines[1:], start=2) if line.strip()]
    numbers = [line for rows, rejected in blocks for line in rows["line"].to_list() + rejected["line"].to_list()]
    assert sorted(numbers) == expected


# Nodes ------------------------------------------------------------------------------------------------------


def test_gpu_counts_come_from_telemetry_and_log_not_from_the_machine_list(raw):
    tables = raw(
        [job(attempt(1, 2, part("m51", 7))), job(attempt(1, 2, part("m600"), part("m3", 1)))],
        machine_list="machineId, number of GPUs, single GPU mem\n"
        + "".join(f"m{number},{gpus}, 12GB\n" for number, gpus in ((51, 2), (3, 8), (10, 2), (4, 8), (9, 8))),
        gpu_util=gpu_rows(
            "2017-10-03 00:08:00 PDT,m3,1,2,3,0,,,,,",
            "2017-10-03 00:08:00 PDT,m51,1,2,,,,,,,",
            "2017-10-03 00:08:00 PDT,m4,,,,,,,,,",
            "2017-10-03 00:09:00 PDT,m9,NA,NA,NA,0,NA,NA,NA,NA,",
        ),
        mem_util="time,machine_id,mem_total,mem_free\n2017-10-03 00:08:00 PDT,m3,528272672.0,1\n",
        cpu_util="time,machine_id,cpu_util\n2017-10-03 00:08:00 PDT,m700,1\n",
    )
    nodes = derive("nodes", tables)
    assert nodes.schema == pl.Schema(NODE_COLUMNS | {"listed_gpu_count": pl.Int64})
    assert nodes.select("node", "gpu_count", "mem_mib", "listed_gpu_count").rows() == [
        ("m3", 4, 515_891, 8),
        ("m4", 0, None, 8),  # telemetry without a GPU
        ("m9", 4, None, 8),
        ("m10", None, None, 2),  # neither in telemetry nor in the log
        ("m51", 8, None, 2),
        ("m600", 0, None, None),  # in the log without a GPU
        ("m700", None, None, None),
    ]
    assert derive("nodes", {"job_log": tables["job_log"]})["node"].to_list() == ["m3", "m51", "m600"]


# Use --------------------------------------------------------------------------------------------------------


def telemetry_rows(machine, first_minute, values):
    """Build one machine's telemetry rows, one a minute from minute `first` after 01:00; a value joins all its GPUs."""
    return [f"{clock(60 * (first_minute + offset))} PDT,{machine},{value}" for offset, value in enumerate(values)]


def gpu_values(*values):
    return ",".join([*map(str, values), *[""] * (8 - len(values))]) + ","


def test_use_is_the_mean_over_the_gpus_and_minutes_held(raw):
    tables = raw(
        [
            # Readings count from the minute of the start to before the end, so not the third.
            job(attempt(59, 120, part("m1", 0, 1))),
            job(attempt(0, 61, part("m1", 1), part("m2", 0))),
            job(attempt(0, 60, part("m2", 1))),  # NA is skipped
            job(attempt(0, 60, part("m2", 1)), attempt(60, 120, part("m1", 0))),  # the second attempt has a reading
            job(attempt(0, None, part("m1", 0))),  # no end
            job(attempt(0, 60, part("m3", 0))),  # no telemetry
            job(attempt(0, 60, part("m1"))),  # no GPU
            job(attempt(0, 60, part("m3", 7))),  # rounded once, halves up
        ],
        gpu_util=gpu_rows(
            *telemetry_rows("m1", 0, [gpu_values(10, 20), gpu_values(30, 40.0005), gpu_values(90, 90)]),
            *telemetry_rows("m2", 0, [gpu_values(50, "NA"), gpu_values(70, 0)]),
            *telemetry_rows("m3", 0, [",,,,,,,0.05,"]),
        ),
    )
    jobs = derive("jobs", tables)
    assert jobs.select("gpu_used_milli", "gpu_readings").rows() == [
        (500, 4),  # (10 + 20 + 30 + 40.0005) / 4 % of 2 GPUs
        (900, 4),  # (20 + 40 + 50 + 70) / 4 % of 2 GPUs
        (None, 0),
        (300, 1),
        (None, 0),
        (None, 0),
        (None, 0),
        (1, 1),
    ]


def test_use_over_the_repeated_hour(raw):
    """The telemetry distinguishes both passings; a run across them has the minutes of both."""
    rows = [f"2017-11-05 01:{minute:02}:00 {zone},m1,{gpu_values(value)}" for zone, value in (("PDT", 10), ("PST", 50))
            for minute in range(60)]  # fmt: skip
    log = [job(attempt("2017-11-05 00:30:00", "2017-11-05 02:30:00"), submitted_time="2017-11-05 00:00:00")]
    jobs = derive("jobs", raw(log, gpu_util=gpu_rows(*rows)))
    assert jobs.select("gpu_used_milli", "gpu_readings").row(0) == (300, 120)


gpu_allocations = st.tuples(
    st.integers(0, 3), st.sampled_from(["m1", "m2", "m9"]), st.integers(0, 9), st.integers(0, 600), st.integers(0, 300)
)
reading = st.tuples(
    st.integers(0, 10), st.sampled_from(["m1", "m2", "m3"]), *[st.none() | st.integers(0, 100_000) for _ in range(8)]
)


@given(allocs=st.lists(gpu_allocations, max_size=6), rows=st.lists(reading, max_size=12), chunk=st.integers(1, 5))
def test_gpu_use_matches_plain_sums_for_any_order_and_chunk_size(allocs, rows, chunk):
    allocs = [(owner, machine, gpu, start, start + length) for owner, machine, gpu, start, length in allocs]
    expected = {}
    for owner, machine, gpu, start, end in allocs:
        for minute, reading_machine, *values in rows:
            counts = start // 60 * 60 <= minute * 60 < end and reading_machine == machine and start < end and gpu < 8
            if counts and values[gpu] is not None:
                readings, total = expected.get(owner, (0, 0))
                expected[owner] = readings + 1, total + values[gpu]
    names = {"owner": pl.Int64, "machine": pl.String, "gpu": pl.Int64, "start_s": pl.Int64, "end_s": pl.Int64}
    columns = {"time_s": pl.Int64, "machine": pl.String} | {f"gpu{gpu}_mpct": pl.Int64 for gpu in range(8)}
    telemetry = [(minute * 60, *values) for minute, *values in rows]
    use = gpu_use(
        pl.DataFrame(allocs, schema=names, orient="row"), pl.LazyFrame(telemetry, schema=columns, orient="row"), chunk
    )
    assert use.rows() == [(owner, *expected[owner]) for owner in sorted(expected)]


def test_gpu_allocations_carry_the_outcome_of_their_job(raw):
    tables = raw(
        [
            job(attempt(0, 60, part("m1", 0)), attempt(60, 120, part("m1", 0), part("m2", 1)), status="Killed"),
            job(attempt(0, None, part("m1", 0)), attempt(60, 60, part("m1", 0))),  # no GPU allocated
            job(),
        ]
    )
    allocations = philly.held_gpus(tables, {})
    assert allocations.select("owner", "attempt", "machine", "gpu", "outcome", "gpus", "servers").rows() == [
        (0, 0, "m1", 0, "cancelled", 1, 1),
        (0, 1, "m1", 0, "cancelled", 1, 2),
        (0, 1, "m2", 1, "cancelled", 1, 2),
    ]
    assert allocations["start_s"].to_list() == [T, T + 60, T + 60]


def test_infra_durations_censor_an_attempt_that_was_retried(raw):
    attempts_of_first = [attempt(10, 60, part("m1", 0), part("m2", 0)), attempt(100, 200), attempt(None, None)]
    tables = raw([job(*attempts_of_first, status="Failed"), job(attempt(5, None), status="Failed"), job(attempt(0, 9))])
    jobs = derive("jobs", tables).with_columns(trace=pl.lit("t"))
    attempts = derive("attempts", tables)
    durations = infra_durations(jobs, attempts, {})
    # The attempt without an end failed at an unknown time.
    assert durations.select("duration_id", "duration_s", "event", "state", "nodes", "duration_max_s").rows() == [
        (0, 50, None, None, 2, None),
        (1, 100, "infra_failure", "Failed", 1, None),
        (0, None, "infra_failure", "Failed", 1, 195),
        (0, 9, None, "Pass", 1, None),
    ]
    assert (durations["submit_s"] - T).to_list() == [0, 60, 0, 0]
    health_events = pl.DataFrame({"node": ["m2"], "time_s": [T + 60], "code": ["XID79"], "severity": [None]})
    attributed = infra_durations(jobs, attempts, {}, health_events.cast({"severity": pl.String}))
    assert attributed["cause"].to_list() == ["XID79", None, None, None]


@given(log=st.lists(records, min_size=1, max_size=6), size=st.integers(1, 400))
def test_a_log_read_in_pieces_is_the_log(log, size, tmp_path_factory):
    """Jobs, quarantined records and line numbers do not depend on the piece size."""
    try:
        text = json.dumps(log, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, UnicodeEncodeError):
        return
    path = tmp_path_factory.mktemp("pieces") / "cluster_job_log"
    path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        results = []
        for piece_bytes in (1 << 30, size):
            patch.setattr(philly_raw, "PIECE_BYTES", piece_bytes)
            pairs = list(READERS["job_log"].rows(path, SCHEMAS["job_log"]))
            results.append([pl.concat(frames) for frames in zip(*pairs, strict=True)])
    assert results[0][0].equals(results[1][0])
    assert results[0][1].equals(results[1][1])


def test_a_log_has_as_many_pieces_as_it_is_long(monkeypatch):
    log = [job(attempt(1, 2, part("m1", 0)), jobid=f"application_1506638472019_{n}") for n in range(50)]
    text = json.dumps(log).encode()
    monkeypatch.setattr(philly_raw, "PIECE_BYTES", len(text) // 10)
    pieces = list(philly_raw._split_array(text))
    assert 8 <= len(pieces) <= 10
    assert sum(len(json.loads(piece)) for piece in pieces) == 50
    assert list(philly_raw._split_array(text[: len(text) // 20])) == [text[: len(text) // 20]]
