"""Ingest: rows read = rows accepted + rows quarantined for any table; too many quarantined rows are an error."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from format_tables import FILES
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.errors import StudyError
from ttf.raw import ingest as ingest_module
from ttf.raw import raw_files
from ttf.raw.implausible_cells import IS_BLANKED
from ttf.raw.ingest import REASONS, anomalies, ingest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def job(n, status="Terminated", start="10.0", end="20.0"):
    return f"j{n},i{n},u1,{status},{start},{end}\n"


def task(n, name="worker", status="Terminated", start="10.0", end="20.0"):
    return f"j{n},{name},1.0,{status},{start},{end},600.0,29.296875,50.0,T4\n"


def instance(n, name="worker", start="11.0", end="20.0"):
    return f"j{n},{name},x,w,i{n},Terminated,{start},{end},m1\n"


def accepted(tmp_path, table):
    return pl.read_parquet(tmp_path / "raw" / f"{table}.parquet")


def quarantined(quarantine):
    return quarantine.select("table", "line", "reason", "column", "text").rows()


def error_message(run, *arguments, **tables):
    with pytest.raises(StudyError) as error:
        run(*arguments, **tables)
    return str(error.value)


def test_the_account(ingested, tmp_path):
    account, quarantine = ingested(
        "pai2020",
        job=job(1) + "broken\n\n" + job(2),
        task=task(1) + task(2) + task(2, "ps"),
        instance=instance(1) + instance(2, end="5.0"),
    )
    assert account.rows() == [("job", 3, 2, 1), ("task", 3, 3, 0), ("instance", 2, 2, 0)]
    assert account.columns == ["table", "rows_read", "rows_accepted", "rows_quarantined"]
    assert quarantined(quarantine) == [
        ("job", 2, "wrong_column_count", None, "broken"),
        ("instance", 2, "before_previous_blanked", "end_time", None),
    ]
    assert accepted(tmp_path, "task")["line"].to_list() == [1, 2, 3]


def test_duplicate_keys_keep_the_first(ingested, tmp_path, small_blocks):
    rows = [job(1), job(2), job(1, "Failed"), "", job(1, "Running", end="")]
    account, quarantine = ingested("pai2020", job="\ufeff" + "".join(row.strip() + "\r\n" for row in rows))
    assert account.rows() == [("job", 4, 2, 2)]
    assert quarantined(quarantine) == [
        ("job", 3, "duplicate_key", "job_name", rows[2].strip()),
        ("job", 5, "duplicate_key", "job_name", rows[4].strip()),
    ]
    assert accepted(tmp_path, "job").select("line", "job_name", "status").rows() == [
        (1, "j1", "Terminated"),
        (2, "j2", "Terminated"),
    ]


def test_instances_without_a_task(ingested, tmp_path, small_blocks):
    account, quarantine = ingested(
        "pai2020",
        job=job(1) + job(2),
        task=task(1) + task(2, status="?") + task(3),  # a task without an instance is valid
        instance=instance(9) + instance(1) + instance(1, "ps") + instance(2) + instance(1),
    )
    assert account.rows()[2] == ("instance", 5, 2, 3)
    assert [row[:4] for row in quarantined(quarantine) if row[0] == "instance"] == [
        ("instance", line, "orphan", "job_name, task_name") for line in (1, 3, 4)
    ]
    assert accepted(tmp_path, "instance")["line"].to_list() == [2, 5]


def test_different_keys_with_equal_hashes_are_distinguished(ingested, monkeypatch):
    monkeypatch.setattr(ingest_module, "hash_columns", lambda *_: pl.lit(0, pl.UInt64))
    _, quarantine = ingested("pai2020", job=job(1) + job(2) + job(1) + job(3))
    assert [row[1:4] for row in quarantined(quarantine)] == [(3, "duplicate_key", "job_name")]


def test_keys_are_checked_in_parts_if_memory_cannot_hold_them_all(ingested, monkeypatch):
    tables = {
        "job": "".join(job(n) for n in [*range(30), 4, 17]),
        "task": "".join(task(n) for n in [*range(20), 11]),
        "instance": "".join(instance(n) for n in range(25)),
    }
    at_once = ingested("pai2020", **tables)
    monkeypatch.setattr(ingest_module, "MAX_KEYS", 3)
    in_parts = ingested("pai2020", **tables)
    assert at_once[0].rows() == [("job", 32, 30, 2), ("task", 21, 20, 1), ("instance", 25, 20, 5)]
    assert [whole.equals(parts) for whole, parts in zip(at_once, in_parts, strict=True)] == [True, True]


def test_max_share_limits_the_quarantined_rows(ingested):
    rows = "".join(job(n) for n in range(99))
    account, _ = ingested("pai2020", 0.01, job=rows + "broken\n")
    assert account.row(0) == ("job", 100, 99, 1)
    assert "1 of 100 rows" in error_message(ingested, "pai2020", 0.0099, job=rows + "broken\n")


def test_too_many_quarantined_rows_list_every_reason(ingested, tmp_path):
    text = "".join(job(n) for n in range(20)) + job(1) + job(90, "Done") + "a\n" + job(91, "Gone") + job(2) + "b,c\n"
    message = error_message(ingested, "pai2020", 0.01, job=text)
    assert message.startswith(
        f"{tmp_path / 'job.csv'}: 6 of 26 rows (23.08%) break a rule; quarantine.max_share = 0.01"
    )
    for reason, lines in (("duplicate_key", "21, 25"), ("unknown_value", "22, 24"), ("wrong_column_count", "23, 26")):
        assert re.search(rf"  {reason}: 2 rows: .*; first at line {lines}: ", message)


def test_raw_text_in_a_message_cannot_drive_the_terminal(ingested):
    message = error_message(ingested, "pai2020", 0.01, job=job(1) + "\x1b[2J\0\u202eevil\r!" + "x" * 500 + "\n")
    assert r"\x1b[2J\x00\u202eevil\r!xxx" in message
    assert len(max(message.splitlines(), key=len)) < 400


@pytest.mark.parametrize("text", ["\n", " \r\n\n", "\ufeff\n"])
def test_no_rows(ingested, text):
    assert "has no rows" in error_message(ingested, "pai2020", job=text)


@pytest.mark.parametrize("content", ["", "<html>\n", b"\xff\xfea\0", b"\x1f\x8b\x08\0"])
def test_a_file_that_is_no_table_is_an_error_naming_the_file(ingested, tmp_path, content):
    message = error_message(ingested, "pai2020", job=content)
    assert message.startswith(f"{tmp_path / 'job.csv'}: ")
    assert "Error" not in message


def test_an_error_in_the_middle_of_a_file_is_raised(ingested, tmp_path, schemas, small_blocks):
    path = tmp_path / "job.csv.gz"
    path.write_bytes(gzip.compress("".join(job(n) for n in range(400)).encode())[:-3])
    with pytest.raises(StudyError, match="damaged or cut short"):
        ingest({"job": [path]}, schemas["pai2020"], tmp_path, 0.01)


def test_a_file_that_is_not_the_table_is_not_read_to_its_end(ingested, monkeypatch, small_blocks):
    monkeypatch.setattr(ingest_module, "STOP_ROWS", 50)
    message = error_message(ingested, "pai2020", 0.01, job="broken\n" * 1000)
    assert "rows (100.00%) break a rule" in message
    assert "of 1,000 rows" not in message
    # Reading continues if the configuration allows the rows or later rows can lower the share.
    ingested("pai2020", 1.0, job="broken\n" * 60 + job(1))
    ingested("pai2020", 0.3, job="".join(job(n) + job(n + 1000) for n in range(100)) + "broken\n" * 60)


def test_anomalies(ingested):
    text = "".join(job(n) for n in range(8)) + "".join(job(n, "Done") for n in range(6)) + "short\n" + job(0)
    account, quarantine = ingested("pai2020", job=text)
    lines, duplicate = "9, 10, 11, 12, 13", "an earlier row has the same job_name; the first one is kept"
    assert anomalies(quarantine, account).drop("suggestion").rows() == [
        ("job", "status", "unknown_value", "error", 6, 0.375, lines, "status holds a word the format does not know"),
        ("job", None, "wrong_column_count", "error", 1, 0.0625, "15", REASONS["wrong_column_count"]),
        ("job", "job_name", "duplicate_key", "error", 1, 0.0625, "16", duplicate),
    ]


def test_any_number_of_threads_gives_the_same_bytes(tmp_path):
    """Polars reads blocks while it writes; a single thread must not deadlock."""
    for name, row in (("job", job), ("task", task), ("instance", instance)):
        (tmp_path / f"{name}.csv").write_text("".join(row(n % 700) for n in range(2000)))
    program = (
        "import sys, yaml\nfrom pathlib import Path\nfrom ttf.raw import raw_files\nfrom ttf.raw.ingest import ingest\n"
        "from ttf.raw.raw_tables import table_schemas\n"
        "raw_files.BLOCK_BYTES = 1000\n"
        f"schemas = table_schemas(yaml.safe_load(Path({str(FILES['pai2020'])!r}).read_text())['schema'])\n"
        "files = {name: Path(name + '.csv') for name in ('job', 'task', 'instance')}\n"
        "Path('raw').mkdir()\n"
        "account, quarantine = ingest({t: [f] for t, f in files.items()}, schemas, Path('raw'), 0.9)\n"
        "import hashlib\n"
        "print(account.rows(), quarantine.height, quarantine.hash_rows().sum())\n"
        "print([hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(Path('raw').iterdir())])\n"
    )
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
    outputs = set()
    for count in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment | {"POLARS_MAX_THREADS": count},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert run.returncode == 0, run.stderr
        outputs.add(run.stdout)
        for file in (tmp_path / "raw").iterdir():
            file.unlink()
        (tmp_path / "raw").rmdir()
    assert len(outputs) == 1
    assert "('job', 2000, 700, 1300), ('task', 2000, 700, 1300), ('instance', 2000, 2000, 0)" in outputs.pop()


number = st.integers(0, 4)
name = st.sampled_from(["worker", "ps", "", "a,b"])
time = st.sampled_from(["", "0.0", "10.0", "20.0", "-1", "x", "nan", "1e400"])
status = st.sampled_from(["Terminated", "Failed", "Running", "Waiting", "Lost"])
junk = st.binary(max_size=8).map(lambda text: text.replace(b"\n", b"").replace(b"<", b"") + b"\n")
jobs = st.builds(job, number, status, time, time).map(str.encode)
tasks = st.builds(task, number, name, status, time, time).map(str.encode)
instances = st.builds(instance, number, name, time, time).map(str.encode)


@given(
    st.lists(jobs | junk, max_size=8),
    st.lists(tasks | junk, max_size=8),
    st.lists(instances | junk, max_size=8),
    st.integers(1, 200),
)
def test_rows_are_accepted_or_quarantined(schemas, tmp_path_factory, job_rows, task_rows, instance_rows, block_bytes):
    folder = Path(tmp_path_factory.getbasetemp()) / "mix"
    folder.mkdir(exist_ok=True)
    tables = {"job": [job(0).encode(), *job_rows], "task": [task(0).encode(), *task_rows]}
    tables["instance"] = [instance(0).encode(), *instance_rows]
    for table, rows in tables.items():
        (folder / f"{table}.csv").write_bytes(b"".join(rows))
    with pytest.MonkeyPatch().context() as patch:
        patch.setattr(raw_files, "BLOCK_BYTES", block_bytes)
        files = {table: folder / f"{table}.csv" for table in tables}
        account, quarantine = ingest({table: [file] for table, file in files.items()}, schemas["pai2020"], folder, 1.0)

    for table, rows_read, rows_accepted, rows_quarantined in account.iter_rows():
        lines = (folder / f"{table}.csv").read_bytes().replace(b"\r\n", b"\n").split(b"\n")
        rows = {number: line for number, line in enumerate(lines, start=1) if line.strip()}
        frame = pl.read_parquet(folder / f"{table}.parquet")
        table_quarantine = quarantine.filter(pl.col("table") == table, ~IS_BLANKED)
        assert rows_read == rows_accepted + rows_quarantined == len(rows)
        assert (rows_accepted, rows_quarantined) == (frame.height, table_quarantine.height)
        assert sorted([*frame["line"], *table_quarantine["line"]]) == list(rows)
        assert frame["line"].is_sorted()
        assert dict(table_quarantine.select("line", "text").rows()) == {
            line: rows[line].decode(errors="replace") for line in table_quarantine["line"]
        }
        if "start_s" in frame.columns:
            assert frame.filter(pl.col("end_s") < pl.col("start_s")).is_empty()
        if key := schemas["pai2020"][table].key:
            assert not frame.select(key).is_duplicated().any()
    owners = pl.read_parquet(folder / "task.parquet")
    placements = pl.read_parquet(folder / "instance.parquet")
    assert placements.join(owners, on=["job_name", "task_name"], how="anti").is_empty()
