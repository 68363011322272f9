"""Strangers' logs and event files: each is read as its README says, or refused with the way out."""

import polars as pl
import pytest
from format_tables import raw_schemas
from study_runs import ROOT
from ttf.formats.node_logs.derive import durations
from ttf.formats.node_logs.read import build_readers
from ttf.formats.protocol import Source
from ttf.raw.ingest import ingest
from ttf.raw.node_logs.node_names import NodeNames
from ttf.raw.node_logs.reader import LogOptions, read_node_log
from ttf.raw.node_logs.rules import Rules
from ttf.study.configuration.log_rules import load_log_rules
from ttf.study.configuration.messages import ConfigError
from ttf.study.recognition.recognise import recognise

RULES = load_log_rules(ROOT / "config" / "node_log_rules.yaml")
XID_119 = [1_740_327_858, 1_740_327_864, 1_740_327_870, 1_740_328_032, 1_740_328_213]
TEN = ["10_a07_rfc5424.log", "10_a03_short_full.log", "10_a39_iso_brackets_talos.log", "11_a21_fluentbit.jsonl"]


def read(path, end_s=None):
    options = LogOptions(Rules.from_options(RULES), "UTC", None, NodeNames([]), 5, 604_800, end_s=end_s)
    return read_node_log(path, options)


@pytest.mark.parametrize("name", [*TEN, "11_a26_es_csv.csv", "11_a30_node_time_message.csv"])
def test_the_same_lines_in_each_form_tell_the_same_errors(find_stranger, name):
    path = find_stranger(f"logs/{name}")
    assert recognise(path).format == "node_logs"
    logs = read(path)
    assert logs.errors.select("node", "code", "time_s").rows() == [("gpu01", "XID 119", time) for time in XID_119]
    assert (logs.account.rows["picked"], logs.account.rows["unmatched"]) == (5, 38)


def test_dmesg_with_levels_and_syslog_without_years(find_stranger):
    logs = read(find_stranger("logs/05_dmesg_decode/gpu01.log"))
    lines = logs.errors.filter(logs.errors["code"].str.starts_with("XID")).select("node", "gpu", "code", "lines").rows()
    assert lines == [("gpu01", "0000:38:00", "XID 13", 16), ("gpu01", "0000:38:00", "XID 43", 1)]
    logs = read(find_stranger("logs/09_syslog_no_year/kern.log"), end_s=1_432_000_000)
    assert logs.errors.select("node", "code", "lines").rows() == [("node01", "XID 69", 7), ("node01", "XID 31", 1)]


@pytest.mark.parametrize("node", ["gpu01", "gpu02"])
def test_the_log_of_a_container_has_the_node_of_its_lines(find_stranger, node):
    path = find_stranger(f"logs/06_cri/kern-reader_{node}.log")
    assert recognise(path).format == "node_logs"
    days = [1_738_800_000, 1_739_836_800, 1_740_873_600]
    assert read(path).errors.select("node", "code", "time_s").rows() == [(node, "XID 79", day) for day in days]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("07_varlog", "no logs of nodes are dpkg.log"),
        ("07_varlog/dpkg.log", "without a node and a program"),
        ("18_sacctmgr_fixed.txt", "Print it again with -P"),
    ],
)
def test_other_files_are_refused_with_the_way_out(find_stranger, name, words):
    with pytest.raises(ConfigError, match=words):
        recognise(find_stranger(f"logs/{name}"))


@pytest.mark.parametrize(
    ("name", "rows", "quarantined", "failures", "nodes"),
    [
        ("logs/08_events_with_fleet/bgl.csv", 200, 0, 119, 140),
        ("faults/old_time/plain/events.csv", 401, 0, 177, 3),
        ("faults/old_time/1970/events.csv", 402, 1, 177, 3),
        ("faults/old_time/9999/events.csv", 402, 1, 177, 3),
        ("faults/bom/gpud/gpu01.json", 60, 0, 25, 1),
        ("faults/bom/iso/kern.log", 60, 0, 24, 3),
        ("faults/surrogate/gpud/gpu01.json", 61, 0, 26, 1),
        ("faults/surrogate/journal/gpu01.json", 61, 0, 22, 3),
    ],
)
def test_no_event_is_lost_and_no_wrong_time_counts(find_stranger, tmp_path, name, rows, quarantined, failures, nodes):
    limits = {"merge_s": 5, "gap_s": 604_800, "boot_s": 300}
    readers = build_readers({"node_logs": limits | {"rules": RULES, "times": {"zone": "UTC"}}})
    account, _ = ingest({"logs": [find_stranger(name)]}, raw_schemas("node_logs"), tmp_path, 1.0, readers)
    assert account.select("rows_read", "rows_quarantined").row(0) == (rows, quarantined)
    periods = durations(Source({"logs": pl.scan_parquet(tmp_path / "logs.parquet")}, {"node_logs": limits}))
    assert (periods["unit_id"].n_unique(), periods["duration_s"].null_count()) == (nodes, 0)
    # A failure at the first moment of the watch ends no period.
    assert failures - 2 <= (periods["event"] == "failure").sum() <= failures
    assert periods["duration_s"].max() < 200 * 86_400
