"""Health events and losses, which users add to a trace, are read like any raw table."""

import gzip
import math

import pytest
from memory_tables import ingested
from ttf.engine.errors import StudyError
from ttf.raw.extra_table_reader import health_events, losses
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.registry_options import add_option_parts, find_option_tables
from ttf.study.recognition.first_lines import find_wrong_headers

EVENTS, LOSSES = "node,time,code,severity\n", "job,epoch,loss,time\n"


@pytest.fixture
def ingest_text(tmp_path):
    """Return a function: text of a file -> (rows of the table, row account, quarantine)."""

    def ingest_text(text, table="health_event", name="given[1].csv", max_share=0.0):
        file = tmp_path / name
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        account, quarantine = ingested(table, file, tmp_path, max_share)
        table_frame = {"health_event": health_events, "loss": losses}[table](tmp_path)
        return table_frame.rows(), account.row(0), quarantine.select("line", "reason", "column", "text").rows()

    return ingest_text


def test_health_events_are_read(ingest_text):
    rows, account, quarantine = ingest_text(
        "time,node,severity,code\r\n2025-03-01T08:00:00Z,n1,high,XID79\r\n2025-03-01T08:00:00,n1,,A\r\n"
        '2025-03-01T09:00:00+01:00,n2,low,"B, of ""two"""\r\n\r\n1740816000,n3,low,C\r\n'
    )
    assert rows == [
        ("n1", 1740816000, "XID79", "high"),
        ("n1", 1740816000, "A", None),
        ("n2", 1740816000, 'B, of "two"', "low"),
        ("n3", 1740816000, "C", "low"),
    ]
    assert (account, quarantine) == (("health_event", 4, 4, 0), [])


def test_losses_are_read(ingest_text):
    text = "loss,job,time,epoch\n1.5,a,1000,1\nnan,a,1970-01-01T01:00:00+01:00,2\n-inf,b,1970-01-01T00:00:05Z,1\n"
    rows, _, _ = ingest_text(text, "loss")
    assert rows[0] == ("a", 1, 1.5, 1000)
    assert math.isnan(rows[1][2]) and rows[1][3] == 0
    assert rows[2] == ("b", 1, -math.inf, 5)
    assert ingest_text(LOSSES, "loss")[0] == []


@pytest.mark.parametrize(
    ("table", "header", "row", "reason", "column"),
    [
        ("health_event", EVENTS, "n1,noon,a,", "not_a_time", "time"),
        ("health_event", EVENTS, "n1,1,,", "missing_value", "code"),
        ("loss", LOSSES, "a,1.5,1,1", "not_a_number", "epoch"),
        ("loss", LOSSES, "a,1,low,1", "not_a_number", "loss"),
    ],
)
def test_a_wrong_line_is_quarantined_or_refused_with_its_number(ingest_text, table, header, row, reason, column):
    good = "n1,1,a,\n" if table == "health_event" else "a,1,1,1\n"
    text = header + good + row + "\n" + good * 98
    rows, account, quarantine = ingest_text(text, table, max_share=0.01)
    assert (len(rows), account) == (99, (table, 100, 99, 1))
    assert quarantine == [(3, reason, column, row)]
    with pytest.raises(StudyError, match=rf"(?s)given\[1\]\.csv: 1 of 100 rows .*{reason}: .*first at line 3: "):
        ingest_text(text, table)


@pytest.mark.parametrize("table", ["health_event", "loss"])
def test_an_invalid_file_gives_one_message(ingest_text, table):
    header = EVENTS if table == "health_event" else LOSSES
    names = header.strip().split(",")
    for text, message in (
        ("", r"the file is empty"),
        (header.replace(",time", ""), r"line 1: the header row has no column time\. Rename"),
        (header.replace("\n", "\r") + "a,1,1,1\ra,1,1,1\r", r"line 1: its lines end in CR"),
        (header.replace(names[0], '"' + "x" * 200_000 + '"'), r"line 1: the header row has no columns? " + names[0]),
    ):
        with pytest.raises(StudyError, match=rf"given\[1\]\.csv: {message}"):
            ingest_text(text, table)


def test_compressed_files_are_read_and_truncated_ones_refused(ingest_text):
    text = gzip.compress((EVENTS + "n1,1,a,\n" * 999).encode())
    assert len(ingest_text(text, name="e.csv.gz")[0]) == 999
    with pytest.raises(StudyError, match=r"e\.csv\.gz: the compressed file is damaged or cut short"):
        ingest_text(text[:-9], name="e.csv.gz")


def test_a_file_name_is_not_a_glob(ingest_text, tmp_path):
    (tmp_path / "given1.csv").write_text(EVENTS + "other,1,a,\n")
    assert ingest_text(EVENTS + "n1,1,a,\n")[0] == [("n1", 1, "a", None)]


def test_headers_are_checked_before_the_first_job(tmp_path):
    (tmp_path / "e.csv").write_text("node,when,code,severity\n")
    format = {"tables": {}, "schema": {"tables": {}}}
    (message,) = find_wrong_headers("mine", {}, {"health_event": [str(tmp_path / "e.csv")]}, format)
    assert message.startswith("registry.mine: ") and "has no column time" in message


def test_each_extra_table_is_a_part_of_a_trace_in_parts(tmp_path):
    file = tmp_path / "e.csv"
    file.write_text(EVENTS)
    entry = {"format": "sacct", "health_events": str(file)}
    tables = find_option_tables("t", entry, {"attempts": True, "gives": "jobs"})
    assert tables == {"health_event": [str(file)]}
    assert add_option_parts("t", {}, tables) == {}
    parts = {"a.txt": {"record": "a.txt"}}
    assert add_option_parts("t", parts, tables) == parts | {"e.csv": {"health_event": str(file)}}
    with pytest.raises(ConfigError, match=r"^registry\.t\.health_events: two files are called e\.csv"):
        add_option_parts("t", {"e.csv": {"record": "e.csv"}}, tables)
