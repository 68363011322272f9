"""Tickets of failed SSDs: each ticket is an outage without a recorded end."""

import pytest
from format_tables import derive_table, ingest_tables
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import merge_records
from ttf.study.configuration.messages import ConfigError
from ttf.study.study import Study

HEADER = "model,failure_time,failure,app,r_5,n_5,disk_id,node_id,rack_id,machine_room_id"
TICKETS = [
    "C1,2018-01-02 08:00:00,1,none,,,7,n1,r1,10",
    "A2,2018-01-02 03:09:38,1,RM,1,2,7,n2,r1,11",
    "B3,2018-01-03 00:00:00,0,RM,,,8,n2,r1,11",
]


def ingest_tickets(folder, rows):
    (folder / "ssd_failure_tag.csv").write_text("".join(f"{row}\n" for row in [HEADER, *rows]))
    raw, _, quarantine = ingest_tables("alibaba_ssd", folder, tickets=[folder / "ssd_failure_tag.csv"])
    return raw, quarantine


def test_a_ticket_is_an_outage_without_a_recorded_end(tmp_path):
    records = derive_table("alibaba_ssd", "outage_records", ingest_tickets(tmp_path, TICKETS)[0])
    outages, _ = merge_records("t", apply_rules(records, []), None)
    assert outages.select("unit_id", "node", "rack", "group", "kind", "start_s").rows() == [
        ("A2/7", "n2", "r1", "11", "A2/RM", 1_514_833_778),
        ("C1/7", "n1", "r1", "10", "C1/none", 1_514_851_200),
    ]
    # The reader invents neither an end nor a downtime.
    assert outages.select("end_s", "duration_s", "level", "class", "cause").null_count().row(0) == (2,) * 5
    assert outages["seen_until_s"].equals(outages["start_s"])
    assert outages["counted"].all()
    assert outages["flagged"].to_list() == ["no end was written"] * 2


def test_a_number_of_drives_gives_no_exposure(tmp_path, monkeypatch):
    """No file records when drives came and went, so the study refuses a number of drives."""
    ingest_tickets(tmp_path, TICKETS)
    monkeypatch.chdir(tmp_path)

    def study_with(**settings):
        entry = {"format": "alibaba_ssd", "folder": "."} | settings
        return Study([("my.yaml", {"study": ["mine"], "registry": {"mine": entry}})])

    trace = study_with().traces["mine"]
    assert not trace.has_exposure and trace.has_outages
    with pytest.raises(ConfigError, match=r"registry\.mine\.nodes: SSDs came and went at unknown times"):
        study_with(nodes=1_000_000)


def test_rows_that_break_a_rule(tmp_path):
    wrong = [TICKETS[0], TICKETS[0].replace("none", ""), "C1,2018-01-02,1,RM,,,9,n1,r1,10", "C1,2018"]
    _, quarantine = ingest_tickets(tmp_path, TICKETS + wrong)
    assert quarantine.select("line", "reason", "column").rows() == [
        (5, "duplicate_key", "model, disk_id, start_s"),
        (6, "missing_value", "app"),
        (7, "not_a_time", "failure_time"),
        (8, "wrong_column_count", None),
    ]
