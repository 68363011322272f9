"""Node events of Slurm: raw dumps become records of outages and the observed time of nodes."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import yaml
from format_tables import FILES, FORMATS, ingest_tables, raw_schemas
from sacct_story import FIXTURES
from samples.sacct import sample, sample_events
from ttf.engine.errors import StudyError
from ttf.formats.protocol import Source, load_format
from ttf.formats.slurm_events.read import READERS
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import build_exposure, merge_records

RULES = yaml.safe_load((FILES["sacct"].parents[4] / "config/outage_causes.yaml").read_text())["rules"]
NODES = "Cluster|NodeName|TimeStart|TimeEnd|State|StateRaw|Reason|User"
CLUSTER = "Cluster|Cluster Nodes|TimeStart|TimeEnd|TRES|Reason"
T = 1_700_000_000


def read_dumps(folder, *dumps, max_share=0.0, **meaning):
    """Ingest these dumps; return the source, the row account and the quarantine."""
    folder.mkdir(exist_ok=True)
    files = []
    for number, dump in enumerate(dumps):
        files.append(folder / f"{number}.txt")
        files[-1].write_bytes(dump if isinstance(dump, bytes) else dump.encode())
    raw, *account_and_quarantine = ingest_tables("slurm_events", folder, max_share, READERS, node_event=files)
    return Source(raw, meaning), *account_and_quarantine


def derive(source, rules=RULES, with_exposure=True):
    """Derive (outages, records, exposure) as the rule derive_outages does."""
    format_ = load_format(FORMATS["slurm_events"]["code"])
    exposure = build_exposure("t", format_.exposure(source)) if with_exposure else None
    return *merge_records("t", apply_rules(format_.outage_records(source), rules), exposure), exposure


def dump(*rows, header=NODES):
    return "\n".join([header, *rows]) + "\n"


def read_outages(tmp_path, *dumps, columns=("unit_id", "start_s", "end_s", "cause"), **options):
    source, *_ = read_dumps(tmp_path / "d", *dumps)
    return derive(source, with_exposure=False, **options)[0].select(columns).rows()


# ---- the sample, with its true outages ----


def test_the_outages_of_the_sample_are_recovered(tmp_path):
    sample.write_sample(tmp_path / "new", 4_000)
    files = [tmp_path / "new" / sample.FILES[name] for name in ("node_events", "cluster_events")]
    source, account, _ = read_dumps(tmp_path / "d", *(file.read_bytes() for file in files))
    plan, nodes = sample.plan(4_000, 2025), sample.node_count(4_000)
    failures, events = sample.node_failures(np.random.default_rng([2025, 1]), nodes, sample.Hazard())
    runs = sample.simulate_runs(plan, nodes, failures)
    true_outages = sample.simulate_outages(2025, runs, failures, events, nodes)
    outages, records, exposure = derive(source)
    expected = sorted(
        (
            sample.node_name(outage.node),
            outage.start_s,
            outage.end_s if outage.end_s < sample.END_S else None,
            outage.planned,
            outage.rows[0].reason.replace("|", "¦"),
            outage.rows[-1].reason.replace("|", "¦"),
        )
        for outage in true_outages
    )
    assert account["rows_quarantined"].sum() == 0
    selected = records.select("unit_id", "start_s", "end_s", "planned", "symptom", "cause").sort("unit_id", "start_s")
    assert selected.rows() == expected
    assert outages.height == len(expected)
    assert outages["counted"].all()
    is_open = outages.filter(pl.col("end_s").is_null())
    assert is_open.height >= 2
    assert set(is_open["seen_until_s"]) == {last_time_s(source)}
    # Nodes are observed from the first day, except while there was no controller.
    assert exposure["unit_id"].n_unique() == 240
    assert exposure.height == 480
    observed_s = (exposure["until_s"] - exposure["from_s"]).sum() + 240 * sample_events.AWAY_S
    assert observed_s == 240 * (last_time_s(source) - sample.FIRST_S)


def last_time_s(source):
    return source.raw["node_event"].select(pl.max_horizontal("start_s", "end_s").max()).collect().item()


# ---- the meaning of rows ----


def test_the_events_of_a_real_slurm(tmp_path):
    """tests/slurm/test_node_events.py made them: down, drained with and without a job, a cold start."""
    dumps = [(FIXTURES / name).read_bytes() for name in ("node_events.txt", "cluster_events.txt")]
    outages, records, exposure = derive(read_dumps(tmp_path / "d", *dumps)[0])
    start = 1_795_457_458
    assert outages.with_columns(pl.col("start_s", "end_s") - start).select(
        "node", "start_s", "end_s", "level", "cause", "planned", "counted"
    ).rows() == [
        ("n1", 0, 3, "down", "bad DIMM", False, True),
        ("n1", 15, 18, "drained", "fan noise ¦ ticket 4711", False, True),
        ("n2", 4, 7, "drained", "scheduled maintenance: firmware", True, True),
        ("n2", 19, 28, "drained", "IB cable swapped, on trial", False, True),
        ("n2", 49, None, "drained", "disk to be replaced", False, True),
    ]
    assert records["symptom"].to_list()[3] == "Not responding"
    assert exposure.select("node", "from_s", "until_s").rows() == [
        (node, start - 7, start + 49) for node in ("n1", "n2")
    ]


def test_rows_that_touch_are_one_outage_with_its_symptom_and_its_cause(tmp_path):
    text = dump(
        f"c|n1|{T}|{T + 60}|DOWN*|2049|Not responding|slurm(64030)",
        f"c|n1|{T + 60}|{T + 500}|DRAIN|514|bad DIMM in slot 3|slurm(64030)",
        f"c|n1|{T + 500}|{T + 900}|DOWN*|2049|Not responding|slurm(64030)",
        f"c|n1|{T + 901}|{T + 950}|DRAIN|514|checking|root(0)",
        f"c|n2|{T + 60}|{T + 90}|DOWN|1|Not responding|slurm(64030)",
    )
    source, *_ = read_dumps(tmp_path / "d", text)
    outages, records, _ = derive(source, with_exposure=False)
    assert outages.select("unit_id", "start_s", "end_s", "level", "class", "cause").rows() == [
        ("n1", T, T + 900, "drained", "Memory", "bad DIMM in slot 3"),
        ("n1", T + 901, T + 950, "drained", "Set by a person", "checking"),
        ("n2", T + 60, T + 90, "down", "Not responding", "Not responding"),
    ]
    assert records.select("symptom", "rows", "user").rows() == [
        ("Not responding", 3, "slurm(64030)"),
        ("checking", 1, "root(0)"),
        ("Not responding", 1, "slurm(64030)"),
    ]


def test_rows_resent_at_one_instant_neither_end_nor_begin_an_outage(tmp_path):
    rows = [f"c|n{node}|{T + node}|{T + 100}|DOWN*|2049|Not responding|" for node in range(1, 5)]
    rows += [f"c|n{node}|{T + 100}|{T + 200 + node}|DOWN*|2049|Not responding|" for node in range(1, 4)]
    # Slurm writes a node that returns without a reason as registered; the outage stays the same.
    rows.append(f"c|n4|{T + 100}|{T + 204}|DOWN*|2049|First Registration|")
    assert read_outages(tmp_path, dump(*rows)) == [
        (f"n{node}", T + node, T + 200 + node, "Not responding") for node in range(1, 5)
    ]


def test_a_cold_start_is_no_outage(tmp_path):
    rows = [f"c|n{node}|{T + 100}|{T + 130}|DOWN|1|cold-start|slurm(64030)" for node in range(1, 5)]
    rows += [f"c|n1|{T}|{T + 100}|DOWN*|2049|Not responding|", f"c|n2|{T + 130}|{T + 300}|DOWN*|2049|Not responding|"]
    rows += [f"c|n5|{T}|{T + 9}|DOWN|1|{reason}|" for reason in ("First Registration", "node-update")]
    assert read_outages(tmp_path, dump(*dict.fromkeys(rows))) == [
        ("n1", T, T + 130, "Not responding"),
        ("n2", T + 130, T + 300, "Not responding"),
    ]


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("DOWN*", "Not responding", ("down", "Not responding", False)),
        ("DRAIN", "gres/gpu count reported lower than configured (7 < 8)", ("drained", "GRES missing", False)),
        ("FAIL", "node not responding to IPMI", ("fail", "Set by a person", False)),
        ("DRAIN", "Planned maintenance, Tuesday", ("drained", "Set by a person", True)),
        ("DRAIN", "unplanned power cut", ("drained", "Power and cooling", False)),
        ("DRAIN", "GPU 3: retired pages, row remap pending", ("drained", "GPU", False)),
        ("MAINT", "", ("maint", "Maintenance", True)),
        ("BOOT^", "new driver : reboot issued", ("reboot", "Reboot", True)),
        ("DRAIN$", "GPU lost", ("drained", "GPU", False)),
        ("IDLE~", "Powered down after SuspendTime", None),
        ("DOWN", "", ("down", None, False)),
    ],
)
def test_states_and_reasons(tmp_path, state, reason, expected):
    rows = read_outages(tmp_path, dump(f"c|n1|{T}|{T + 9}|{state}||{reason}|"), columns=("level", "class", "planned"))
    assert rows == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("bits", "level"),
    [("514", "drained"), ("0x202", "drained"), ("32770", "maint"), ("", None)],
)
def test_a_dump_without_states_is_read_from_its_bits(tmp_path, bits, level):
    text = dump(f"n1|{T}|{T + 9}|{bits}", header="NodeName|TimeStart|TimeEnd|StateRaw")
    assert read_outages(tmp_path, text, columns=["level"]) == [(level,)]


# ---- several dumps ----


def test_a_later_dump_closes_what_was_open_and_rows_count_once(tmp_path):
    first = dump(f"c|n1|{T}|Unknown|DOWN*|2049|Not responding|", f"c|n2|{T + 5}|0|DRAIN|514|disk|")
    second = dump(
        f"c|n1|{T}|{T + 50}|DOWN*|2049|Not responding|",
        f"c|n2|{T + 5}|Unknown|DRAIN|514|disk|",
        f"c|n3|{T + 900}|{T + 950}|DOWN*|2049|Not responding|",
    )
    expected = [("n1", T, T + 50), ("n2", T + 5, None), ("n3", T + 900, T + 950)]
    for dumps in ((first, second), (second, first), (first, second, second)):
        source, *_ = read_dumps(tmp_path / "d", *dumps)
        outages = derive(source, with_exposure=False)[0]
        assert outages.select("unit_id", "start_s", "end_s").rows() == expected
        # The node is still down at the last time in the last dump.
        assert outages["seen_until_s"].to_list()[1] == T + 950


def test_an_open_row_that_a_later_dump_no_longer_has_lasts_to_its_own_dump(tmp_path):
    first = dump(f"c|n1|{T}|Unknown|DOWN*|2049|Not responding|", f"c|n2|{T + 5}|{T + 60}|DRAIN|514|disk|")
    second = dump(f"c|n3|{T + 900}|{T + 950}|DOWN*|2049|Not responding|")
    outages, *_ = derive(read_dumps(tmp_path / "d", first, second)[0], with_exposure=False)
    assert outages.filter(unit_id="n1").select("end_s", "seen_until_s").rows() == [(None, T + 60)]
    # Another row of the node closes it, as Slurm does.
    third = dump(f"c|n1|{T + 800}|{T + 850}|DRAIN|514|disk|")
    assert read_outages(tmp_path, first, third, columns=("unit_id", "start_s", "end_s"))[0] == ("n1", T, T + 850)


def test_nodes_of_two_clusters_with_one_name_are_distinct(tmp_path):
    text = dump(f"a|n1|{T}|{T + 9}|DOWN|1|x|", f"b|n1|{T}|{T + 8}|DOWN|1|x|")
    assert read_outages(tmp_path, text, columns=("unit_id", "node", "group", "end_s")) == [
        ("a:n1", "n1", "a", T + 9),
        ("b:n1", "n1", "b", T + 8),
    ]


# ---- exposure ----


def test_cluster_registrations_give_the_observed_nodes(tmp_path):
    nodes = dump(f"c|n1|{T}|{T + 9}|DOWN|1|x|", f"c|n3|{T + 700}|{T + 800}|DOWN|1|x|")
    cluster = dump(
        f"c|n[1-2]|{T - 100}|{T + 500}|cpu=2|Cluster Registered TRES",
        f"c|n[1-3]|{T + 500}|{T + 600}|cpu=3|Cluster Registered TRES",
        f"c|n[1-3]|{T + 600}|{T + 650}||slurmctld disconnect",
        f"c|n[2-3]|{T + 650}|Unknown|cpu=2|Cluster Registered TRES",
        header=CLUSTER,
    )
    dump_of_both = dump(  # as sacctmgr prints them without a kind of event
        f"c||n[1-2]|{T - 100}|{T + 500}||Cluster Registered TRES|",
        f"c||n[1-3]|{T + 500}|{T + 600}||Cluster Registered TRES|",
        f"c||n[1-3]|{T + 600}|{T + 650}||slurmctld disconnect|",
        f"c||n[2-3]|{T + 650}|Unknown||Cluster Registered TRES|",
        f"c|n1||{T}|{T + 9}|DOWN|x|",
        f"c|n3||{T + 700}|{T + 800}|DOWN|x|",
        header="Cluster|NodeName|Cluster Nodes|TimeStart|TimeEnd|State|Reason|User",
    )
    for dumps in ((nodes, cluster), (cluster, nodes), (dump_of_both,)):
        _, _, exposure = derive(read_dumps(tmp_path / "d", *dumps)[0])
        assert exposure.select("unit_id", "from_s", "until_s").rows() == [
            ("n1", T - 100, T + 600),
            ("n2", T - 100, T + 600),
            ("n2", T + 650, T + 800),
            ("n3", T + 500, T + 600),
            ("n3", T + 650, T + 800),
        ]


def test_without_registrations_the_registry_or_jobs_give_the_nodes(tmp_path):
    text = dump(f"c|n1|{T}|{T + 9}|DOWN|1|x|", f"c|n9|{T - 900}|{T - 800}|DOWN|1|x|")
    source, *_ = read_dumps(tmp_path / "d", text)
    with pytest.raises(StudyError, match="Event=Cluster"):
        derive(source)
    _, _, exposure = derive(replace(source, meaning={"nodes": 4}))
    assert exposure.select("unit_id", "from_s", "until_s").rows() == [
        (name, T - 900, T + 9) for name in ("n1", "n9", "unseen-1", "unseen-2")
    ]
    placements = pl.LazyFrame({"node": ["n1", "n2", "n1"], "start_s": [T - 50, T, T], "end_s": [T, T + 70, None]})
    _, _, exposure = derive(replace(source, placements=placements))
    assert exposure.select("unit_id", "from_s", "until_s").rows() == [
        ("n1", T - 50, T + 70),
        ("n2", T - 50, T + 70),
    ]


def test_an_unreadable_hostlist_is_reported(tmp_path):
    cluster = dump(f"c|n[1-|{T}|Unknown|cpu=2|Cluster Registered TRES", header=CLUSTER)
    with pytest.raises(StudyError, match=r"Cluster Nodes .* brackets do not match.* -P"):
        derive(read_dumps(tmp_path / "d", cluster)[0])


# ---- malformed dumps ----

ROWS = [f"c|n{node}|{T}|{T + 9}|DOWN|1|x|" for node in range(1, 4)]


def test_a_reason_with_the_delimiter_or_half_a_character_is_accepted(tmp_path):
    rows = [
        f"c|n1|{T}|{T + 9}|DOWN|1|a | b || c|root(0)".encode(),
        f"c|n2|{T}|{T + 9}|DRAIN|514|".encode() + b"zu hei\xc3|",
    ]
    source, account, _ = read_dumps(tmp_path / "d", b"\n".join([NODES.encode(), *rows]) + b"\n")
    assert account["rows_quarantined"].item() == 0
    records = derive(source, with_exposure=False)[1]
    assert records.select("cause", "user").rows() == [("a ¦ b ¦¦ c", "root(0)"), ("zu hei\ufffd", None)]


def test_columns_in_another_order_fewer_or_more_and_a_delimiter_at_the_end(tmp_path):
    text = dump(f"x|n1|{T + 9}|{T}|1-00:00:00|", header="Reason|NodeName|TimeEnd|TimeStart|Duration|")
    assert read_outages(tmp_path, text) == [("n1", T, T + 9, "x")]
    text = dump(
        "n1|2025-03-01T08:00:00|None", "n2|2025-03-01T08:00:00|2025-03-01T09:00:00", header="NodeName|TimeStart|TimeEnd"
    )
    assert read_outages(tmp_path, text) == [("n1", 1740816000, None, None), ("n2", 1740816000, 1740819600, None)]


def test_a_cut_line_and_an_end_before_the_start_are_quarantined(tmp_path):
    reversed_row = f"c|n8|{T}|{T - 9}|DOWN|1|x|"
    source, account, quarantine = read_dumps(tmp_path / "d", dump(*ROWS, reversed_row) + f"c|n9|{T}", max_share=0.5)
    assert account.select("rows_read", "rows_accepted", "rows_quarantined").row(0) == (5, 3, 2)
    assert quarantine.select("line", "reason").rows() == [(5, "end_before_start"), (6, "wrong_column_count")]
    assert derive(source, with_exposure=False)[0].height == 3
    with pytest.raises(StudyError, match="2 of 5 rows"):
        read_dumps(tmp_path / "d", dump(*ROWS, reversed_row) + f"c|n9|{T}", max_share=0.01)


def test_a_dump_without_events_has_no_outages(tmp_path):
    cluster = dump(f"c|n[1-3]|{T}|{T + 90}|cpu=3|Cluster Registered TRES", header=CLUSTER)
    for dumps in ((dump(), cluster), (cluster,)):
        outages, _, exposure = derive(read_dumps(tmp_path / "d", *dumps)[0])
        assert not outages.height
        assert exposure.select("unit_id", "from_s", "until_s").row(2) == ("n3", T, T + 90)
    assert not derive(read_dumps(tmp_path / "d", dump())[0], with_exposure=False)[0].height


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "   Cluster NodeName                  TimeStart             TimeEnd  State  Reason       User \n"
            "---------- --------------- ------------------- ------------------- ------ ------- ---------- \n"
            "onemachine n1              2026-11-23T17:15:57 2026-11-23T17:15:58  DRAIN slow an+ slurm(640+ \n",
            r"0\.txt: line 1: the columns have a fixed width.* print the dump with -P",
        ),
        (dump(f"c|{T}|{T}", header="Cluster|TimeStart|TimeEnd"), "neither NodeName nor Cluster Nodes"),
        (dump(f"c|n1|{T}", header="Cluster|NodeName|TimeStart"), "the header row has no column TimeEnd"),
        ("<html><body>Sign in</body></html>\n", "HTML"),
        ("", "empty"),
    ],
)
def test_a_file_that_is_no_dump_is_refused_with_advice(tmp_path, text, message):
    with pytest.raises(StudyError, match=message):
        read_dumps(tmp_path / "d", text)


def test_the_table_has_one_schema_in_both_formats():
    slurm_events_schema, sacct_schema = (raw_schemas(name)["node_event"] for name in ("slurm_events", "sacct"))
    assert slurm_events_schema == sacct_schema
