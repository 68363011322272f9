"""The format node_logs: periods between errors, an account of every line, and a folder of logs as a trace."""

import json
from pathlib import Path

import polars as pl
import pytest
from format_tables import FORMATS, raw_schemas, scan_tables
from ttf.analyses.time_to_failure.fit_mttf.compute import summarise_durations
from ttf.engine.errors import StudyError
from ttf.formats.node_logs.derive import durations
from ttf.formats.node_logs.read import build_readers
from ttf.formats.protocol import Source
from ttf.raw.ingest import ingest
from ttf.records.node_errors import find_error_durations
from ttf.records.record_contracts import NODE_ERRORS, NODE_LOG_WATCH
from ttf.study.configuration.config import DEFAULTS
from ttf.study.configuration.log_rules import load_log_rules
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml, parse_yaml
from ttf.study.recognition.recognise import find_keyed_files, format_configuration, recognise
from ttf.study.study import Study

ROOT = Path(__file__).resolve().parents[2]
LINE = "2025-03-01T08:00:00+0000 n1 kernel: NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n"
HEADER = "JobIDRaw|State|Start|End\n1|FAILED|1740816000|1740816100\n"
LIMITS = {"merge_s": 5, "gap_s": 604_800, "boot_s": 300}
RULES = load_log_rules(ROOT / "config" / "node_log_rules.yaml")
CAUSES = FORMATS["node_logs"]["causes"]
SCHEMA = raw_schemas("node_logs")["logs"]
DAY, START = 86_400, 1_740_787_200  # 2025-03-01 00:00 UTC
XID_79 = "NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus."
XID_13 = "NVRM: Xid (PCI:0000:05:00): 13, Graphics Exception"
MCE = "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: be00000000800400"


def write_log(path, node, messages):
    """Write lines as journalctl -o short-iso does: (second since START, message)."""
    times = pl.Series([START + second for second, _ in messages]).cast(pl.Int64)
    texts = pl.from_epoch(times).dt.to_string("%Y-%m-%dT%H:%M:%S+0000")
    path.write_text(
        "".join(f"{text} {node} kernel: {message}\n" for text, (_, message) in zip(texts, messages, strict=True))
    )


def daily(days, first=0):
    """Return a line every day, which tells no error."""
    return [(day * DAY, "usb 1-1: new device") for day in range(first, days + 1)]


@pytest.fixture
def run(tmp_path):
    """Return a function that ingests the logs of a folder; it returns raw, account and quarantine."""

    def read(*names, max_share=1.0):
        (tmp_path / "raw").mkdir(exist_ok=True)
        readers = build_readers({"node_logs": LIMITS | {"rules": RULES, "times": {"zone": "UTC"}}})
        files = {"logs": [tmp_path / name for name in names]}
        account, quarantine = ingest(files, raw_schemas("node_logs"), tmp_path / "raw", max_share, readers)
        return scan_tables(tmp_path / "raw", "logs"), account.row(0)[1:], quarantine

    return read


def derive(raw, **meaning):
    return durations(Source(raw, {"node_logs": LIMITS} | meaning))


def make_errors(rows):
    """Return NODE_ERRORS of rows of node, component, time_s, last_s and changes."""
    defaults = {"gpu": None, "code": "X", "severity": "error", "application": False, "lines": 1, "at_boot": False}
    names = ("node", "component", "time_s", "last_s")
    return pl.DataFrame(
        [defaults | dict(zip(names, row, strict=False)) | (row[4] if len(row) > 4 else {}) for row in rows],
        schema=NODE_ERRORS.schema,
    )


def make_watch(*spans):
    rows = [(*span, None) for span in spans]
    return pl.DataFrame(rows, schema=NODE_LOG_WATCH.schema, orient="row")


# Durations ----------------------------------------------------------------------------------------------


def test_a_gap_censors_and_an_error_ends():
    errors = make_errors([("n1", "GPU memory", 40, 60), ("n1", "PCIe", 64, 64), ("n1", "Network", 250, 250)])
    watch = make_watch(("n1", 0, 100), ("n1", 200, 300), ("n2", 10, 110))
    periods = find_error_durations(errors, watch, 5, CAUSES)
    columns = ("node", "start_s", "duration_s", "event", "gpu_memory", "pcie", "network")
    assert periods.select(columns).rows() == [
        ("n1", 0, 40, "failure", True, True, False),
        ("n1", 64, 36, None, False, False, False),
        ("n1", 200, 50, "failure", False, False, True),
        ("n1", 250, 50, None, False, False, False),
        ("n2", 10, 100, None, False, False, False),
    ]


@pytest.mark.parametrize(
    "change", [{"application": True}, {"component": "Application"}, {"severity": "warning"}, {"at_boot": True}]
)
def test_errors_that_are_not_of_hardware_in_service_end_nothing(change):
    errors = make_errors([("n1", "GPU", 40, 40, change)])
    periods = find_error_durations(errors, make_watch(("n1", 0, 100)), 5, CAUSES)
    assert periods.select("duration_s", "event").rows() == [(100, None)]


# From files ---------------------------------------------------------------------------------------------


def test_logs_become_durations(tmp_path, run):
    boot = (4 * DAY, "Linux version 5.15.0-94-generic (buildd@lcy02) #104-Ubuntu SMP")
    lines = [*daily(6), (2 * DAY + 9, XID_79), (2 * DAY + 11, XID_79), (3 * DAY + 5, XID_13), boot]
    write_log(tmp_path / "gpu01.log", "gpu01", sorted([*lines, (4 * DAY + 60, MCE)]))
    write_log(tmp_path / "cpu1.log", "cpu1", daily(20, first=17) + daily(60, first=50))
    raw, account, quarantine = run("gpu01.log", "cpu1.log")
    assert account == (27, 27, 0)
    assert not quarantine.height
    columns = ("unit_id", "duration_id", "duration_s", "event", "start_s", "name_prefix", "nodes", "cluster_by")
    assert derive(raw).select(columns).rows() == [
        ("cpu1", 0, 3 * DAY, None, START + 17 * DAY, "cpu", 1, "node"),
        ("cpu1", 1, 10 * DAY, None, START + 50 * DAY, "cpu", 1, "node"),
        ("gpu01", 0, 2 * DAY + 9, "failure", START, "gpu", 1, "node"),
        ("gpu01", 1, 4 * DAY - 11, None, START + 2 * DAY + 11, "gpu", 1, "node"),
    ]
    assert derive(raw)["pcie"].sum() == 1


def test_files_that_share_lines_tell_an_error_once(tmp_path, run):
    write_log(tmp_path / "a.log", "n1", sorted([*daily(4), (DAY + 1, XID_79)]))
    (tmp_path / "b.log").write_text((tmp_path / "a.log").read_text())
    assert derive(run("a.log", "b.log")[0])["event"].count() == 1
    assert derive(run("a.log", "b.log")[0]).equals(derive(run("b.log", "a.log")[0]))


def test_every_line_is_accepted_or_quarantined(tmp_path, run):
    lines = [
        "-- Journal begins at Sat 2025-03-01 --",
        f"2025-03-01T08:00:00+0000 n1 kernel: {XID_79}",
        "2025-03-01T09:00:00+0000 n1 kernel: usb 1-1: new",
        "2025-13-41T09:00:00+0000 n1 kernel: the clock is broken",
        "",
        "no line of a log <b>x</b>",
        f"2025-03-02T08:00:00+0000 n2 kernel: {XID_79}",
    ]
    (tmp_path / "kern.log").write_text("\n".join(lines))
    (tmp_path / "events.csv").write_text(
        "node,time,code\nn1,1740816900,XID79\n,1740816900,XID79\nn3,later,XID79\n"
        "n4,1970-01-01T00:00:09Z,XID79\nn4,9999-12-31T23:59:59Z,XID79\n"
    )
    (tmp_path / "empty.log").write_text("")
    (tmp_path / "notes.md").write_text("# About\n\nnothing\n")
    raw, account, quarantine = run("kern.log", "events.csv", "empty.log", "notes.md")
    assert account == (14, 6, 8)
    assert raw["logs"].collect()["lines"].sum() == 6
    assert quarantine.select("file", "line", "reason", "column", "text").rows() == [
        ("kern.log", 4, "not_a_time", "time", lines[3]),
        ("kern.log", 6, "not_a_time", "time", lines[5]),
        ("events.csv", 3, "missing_value", "node", ",1740816900,XID79"),
        ("events.csv", 4, "not_a_time", "time", "n3,later,XID79"),
        ("events.csv", 5, "not_a_time", "time", "n4,1970-01-01T00:00:09Z,XID79"),
        ("events.csv", 6, "not_a_time", "time", "n4,9999-12-31T23:59:59Z,XID79"),
        ("notes.md", 1, "not_a_time", "time", "# About"),
        ("notes.md", 3, "not_a_time", "time", "nothing"),
    ]


def test_events_alone_watch_their_nodes_from_the_first_to_the_last(tmp_path, run):
    (tmp_path / "a.csv").write_text(f"node,time,code\nn1,{START},XID79\nn1,{START + 5 * DAY},XID79\n")
    (tmp_path / "b.csv").write_text(f"node,time,code\nn2,{START + DAY},XID79\nn2,{START + 8 * DAY},XID79\n")
    periods = derive(run("a.csv", "b.csv")[0], nodes=3).select("unit_id", "duration_s", "event").rows()
    assert periods == [
        ("n1", 5 * DAY, "failure"),
        ("n1", 3 * DAY, None),
        ("n2", DAY, "failure"),
        ("n2", 7 * DAY, "failure"),
        ("unseen-1", 8 * DAY, None),
    ]
    with pytest.raises(StudyError, match="1 nodes were watched, but the tables name 2"):
        derive(run("a.csv", "b.csv")[0], nodes=1)


HEALTHY = json.dumps(
    {"nodeName": "n9", "checkName": "X", "isHealthy": True, "generatedTimestamp": "2025-03-02T00:00:00Z"}
)


@pytest.mark.parametrize(
    ("files", "is_known", "units"),
    [
        ({"a.csv": f"node,time,code\nn1,{START},XID79\nn2,{START + DAY},XID79\n"}, False, 2),
        ({"a.csv": f"node,time,code\nn1,{START},XID79\nn2,{START + DAY},XID79\nn9,{START + 9},\n"}, True, 3),
        ({"a.csv": f"node,time,code\nn1,{START},XID79\nn1,{START + DAY},XID79\n", "b.json": HEALTHY}, True, 2),
        ({"a.csv": f"node,time,code\nn1,{START + 9},XID79\n", "n1.log": "n1", "n2.log": "n2"}, True, 2),
        ({"grep.log": "errors"}, False, 1),
    ],
    ids=["errors alone", "a row without a code", "a healthy node", "logs beside events", "a log by grep"],
)
def test_a_rate_counts_the_nodes_that_were_watched(tmp_path, run, files, is_known, units):
    for name, content in files.items():
        if name.endswith(".log"):
            write_log(tmp_path / name, content[:2], [(60, XID_79), (DAY, MCE)] if content == "errors" else daily(9))
        else:
            (tmp_path / name).write_text(content)
    periods = derive(run(*files)[0])
    assert periods["unit_id"].n_unique() == units
    assert periods["duration_s"].null_count() == (0 if is_known else periods.height)
    assert (periods["event"] == "failure").any()
    assert derive(run(*files)[0], nodes=50)["unit_id"].n_unique() == 50


def test_one_event_far_from_the_others_is_told():
    times = [START + hour * 3600 for hour in range(12)]
    rows = [(time, time + 3600, "failure") for time in times]
    summary = summarise_durations(make_periods(rows).lazy())
    assert summary["silence_s"].item() is None
    summary = summarise_durations(make_periods([(START - 100 * DAY, START, "failure"), *rows]).lazy())
    assert (summary["silence_s"].item(), summary["days"].item()) == (100 * DAY, 101)


def make_periods(rows):
    frame = pl.DataFrame(rows, schema=["start_s", "end_s", "event"], orient="row")
    return frame.with_columns(unit_id=pl.lit("n1"), duration_s=pl.col("end_s") - pl.col("start_s")).drop("end_s")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Mar  1 08:00:00 n1 kernel: usb 1-1: new\n", "its times have no year"),
        ("2025-03-01T08:00:00Z stdout F x\n", "the log of a container"),
        ("nothing\n", "no row is left"),
    ],
)
def test_a_file_without_times_is_refused(tmp_path, run, text, message):
    (tmp_path / "n1.log").write_text(text)
    with pytest.raises(StudyError, match=message) as error:
        run("n1.log")
    assert str(tmp_path / "n1.log") in str(error.value)


# A folder as a trace ------------------------------------------------------------------------------------


def make_study(entry):
    document = {"study": ["mine"], "registry": {"mine": entry}}
    return Study([("config/config.yaml", load_yaml(DEFAULTS)), ("my.yaml", document)])


def load_trace(document):
    study = Study([("config/config.yaml", load_yaml(DEFAULTS)), ("my.yaml", document)])
    (trace,) = study.traces.values()
    return trace


def test_one_log_and_folders_of_logs(tmp_path):
    (tmp_path / "n1.log").write_text(LINE)
    (tmp_path / "other.md").write_text("About")
    named = recognise(tmp_path / "n1.log")
    assert named.entry["node_logs"] == [f"{tmp_path}/n1.log"]
    trace = load_trace(parse_yaml(format_configuration(named), "my.yaml"))
    assert trace.raw_files == {"logs": [f"{tmp_path}/n1.log"]}
    assert trace.unread_entries == {"other.md": "not a table of this format"}
    (tmp_path / "other.md").unlink()
    (tmp_path / "n3.log").write_text("")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "n2.log").write_text(LINE)
    trace = load_trace(parse_yaml(format_configuration(recognise(tmp_path)), "my.yaml"))
    assert trace.raw_files == {"logs": [f"{tmp_path}/n1.log", f"{tmp_path}/n3.log", f"{tmp_path}/more/n2.log"]}
    entry = {"format": "node_logs"}
    assert find_keyed_files(tmp_path / "n1.log", entry) == {"node_logs": [f"{tmp_path}/n1.log"]}


def test_logs_beside_another_file_are_no_trace_of_their_own(tmp_path):
    (tmp_path / "n1.log").write_text(LINE)
    (tmp_path / "dump.txt").write_text(HEADER.replace("|End", ""))
    with pytest.raises(ConfigError) as error:
        recognise(tmp_path)
    assert "no logs of nodes are dump.txt; move them elsewhere, or name the one log you mean." in str(error.value)
    assert "sacct" in str(error.value)
    (tmp_path / "dump.txt").write_text(HEADER)
    assert recognise(tmp_path).format == "sacct"


def test_a_year_is_asked_for_before_the_first_job(tmp_path):
    (tmp_path / "kern.log").write_text("Dec 31 23:59:00 n1 kernel: usb\nJan  1 00:01:00 n1 kernel: usb\n")
    entry = {"format": "node_logs", "folder": str(tmp_path)}
    study = make_study(entry)
    with pytest.raises(ConfigError, match=r"registry\.mine\.node_log_end: the times in .*kern\.log have no year"):
        study.check_headers()
    study = make_study(entry | {"node_log_end": "2025-02-14"})
    study.check_headers()
    logs = study.traces["mine"].reader_options["entry"]["node_logs"]
    rows = pl.concat(rows for rows, _ in build_readers({"node_logs": logs})["logs"].rows(tmp_path / "kern.log", SCHEMA))
    assert rows.filter(kind="span").select("from_s", "until_s").row(0) == (1_735_689_540, 1_735_689_660)
    with pytest.raises(ConfigError, match="node_log_end"):
        make_study(entry | {"node_log_end": "2025"})


def test_a_start_is_asked_for_before_the_first_job(tmp_path):
    (tmp_path / "n1.log").write_text("[   60.000000] usb 1-1: new\n")
    entry = {"format": "node_logs", "folder": str(tmp_path), "node_log_zone": "Europe/Berlin"}
    with pytest.raises(ConfigError, match=r"registry\.mine\.node_log_boot: the times in .*n1\.log count"):
        make_study(entry).check_headers()
    for boot in ("2025-03-01 09:00", {"n1": "2025-03-01T09:00:00"}):
        study = make_study(entry | {"node_log_boot": boot})
        study.check_headers()
        logs = study.traces["mine"].reader_options["entry"]["node_logs"]
        rows = build_readers({"node_logs": logs})["logs"].rows(tmp_path / "n1.log", SCHEMA)
        assert pl.concat(rows for rows, _ in rows).filter(kind="span")["from_s"].to_list() == [1_740_816_060]
    for boot in ("2025-03-01", {"n1": 5}, 7):
        with pytest.raises(ConfigError, match="node_log_boot"):
            make_study(entry | {"node_log_boot": boot})
