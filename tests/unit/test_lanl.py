"""LANL: a node has one duration per at-risk period."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from format_tables import derive_table, ingest_tables, raw_schemas
from ttf.formats.lanl import derive as lanl

COLUMNS = [column.name for column in raw_schemas("lanl")["outages"].columns]
DENVER = ZoneInfo("America/Denver")
DAY, HOUR = 86_400, 3600


@pytest.fixture
def raw(tmp_path):
    """Ingest rows; unset columns are those of node 0 of system 1, in service from January 2001 on."""

    def run(*rows):
        defaults = {"System": "1", "nodes": "1", "nodenumz": "0", "node prod": "1-Jan", "node decom": "current"}
        lines = [",".join((defaults | row).get(name, "") for name in COLUMNS) for row in rows]
        tables, _, run.quarantine = ingest_tables("lanl", tmp_path, outages="\n".join([",".join(COLUMNS), *lines, ""]))
        return tables

    return run


def outage(start, end, **columns):
    return {"Prob Started": start, "Prob Fixed": end} | columns


def epoch(year, month, day, hour=0, minute=0):
    return int(datetime(year, month, day, hour, minute, tzinfo=DENVER).timestamp())


def test_columns_of_a_duration(raw):
    row = outage("1/3/2001 0:00", "1/3/2001 2:00", cputype="2", Hardware="CPU") | {"machine type": "cluster"}
    durations = derive_table("lanl", "durations", raw(row))
    values = {
        name: value for name, value in durations.row(0, named=True).items() if value is not None and value is not False
    }
    assert values == {"cluster_by": "system", "group_by": "node", "cluster": 0, "group": 0, "unit_id": "1/0"} | {
        "duration_id": 0, "entry_s": 0, "duration_s": 2 * DAY, "event": "failure", "nodes": 1, "system": "1",
        "machine_type": "cluster", "cpu_type": "2", "hardware": True, "repair_s": 2 * HOUR,
        # Two days before the outage, in UTC: seven hours later than at the site.
        "start_s": int(datetime(2001, 1, 1, 7, tzinfo=UTC).timestamp()),
    }  # fmt: skip
    assert durations.height == 1  # the data end with the repair


def test_at_risk_from_repair_to_the_next_outage(raw):
    durations = derive_table(
        "lanl",
        "durations",
        raw(
            outage("1/5/2001 0:00", "1/5/2001 6:00"),
            outage("1/2/2001 0:00", "1/3/2001 0:00"),
            outage("2/10/2001 0:00", "2/10/2001 0:00", nodenumz="1", nodes="2"),
        ),
    )
    assert durations.select("unit_id", "duration_id", "duration_s", "event", "repair_s").rows() == [
        ("1/0", 0, DAY, "failure", DAY),
        ("1/0", 1, 2 * DAY, "failure", 6 * HOUR),
        ("1/0", 2, epoch(2001, 2, 10) - epoch(2001, 1, 5, 6), None, None),
        ("1/1", 0, 40 * DAY, "failure", 0),  # an outage of no length, at the last moment of the data
    ]


def test_outages_that_overlap_or_touch_are_one(raw):
    durations = derive_table(
        "lanl",
        "durations",
        raw(
            outage("1/2/2001 0:00", "1/4/2001 0:00", Hardware="CPU"),
            outage("1/2/2001 0:00", "1/2/2001 1:00", Software="OS"),
            outage("1/2/2001 0:30", "1/2/2001 1:00", Facilities="UPS"),  # inside the first
            outage("1/3/2001 0:00", "1/5/2001 0:00", Network="Network"),
            outage("1/5/2001 0:00", "1/6/2001 0:00", Undetermined="Security"),
            outage("1/7/2001 0:00", "1/8/2001 0:00", **{"Human Error": "Human Error"}),
            outage("1/9/2001 0:00", "1/9/2001 6:00"),  # of unknown cause
        ),
    )
    causes = [[name for name in lanl.CAUSES if row[name]] for row in durations.iter_rows(named=True)]
    assert durations.select("duration_s", "event", "repair_s").rows() == [
        (DAY, "failure", 4 * DAY),
        (DAY, "failure", DAY),
        (DAY, "failure", 6 * HOUR),
    ]
    assert causes == [["hardware", "software"], ["human_error"], []]


def test_service_ends_with_its_month_or_the_data(raw):
    table = raw(
        outage("3/1/2001 0:00", "3/2/2001 0:00", **{"node decom": "1-Mar"}),
        outage("5/1/2001 0:00", "5/2/2001 0:00", nodenumz="1", **{"node decom": "9-Dec"}),
        outage("7/1/2001 0:00", "7/2/2001 0:00", nodenumz="2", **{"node decom": ""}),
    )
    service = lanl.service_periods(table["outages"].collect())
    assert service.select("unit_id", "from_s", "until_s").rows() == [
        ("1/0", epoch(2001, 1, 1), epoch(2001, 4, 1)),
        ("1/1", epoch(2001, 1, 1), epoch(2001, 7, 2)),
        ("1/2", epoch(2001, 1, 1), epoch(2001, 7, 2)),
    ]


def test_outages_out_of_service_end_no_duration(raw):
    durations = derive_table(
        "lanl",
        "durations",
        raw(
            outage("12/1/2000 0:00", "12/2/2000 0:00"),
            outage("12/31/2000 0:00", "1/2/2001 0:00"),
            outage("1/4/2001 0:00", "1/5/2001 0:00"),
            outage("2/3/2001 0:00", "2/4/2001 0:00", **{"node decom": "1-Jan"}),
            outage("6/1/2001 0:00", "6/1/2001 0:00", System="2", **{"node prod": "1-Jun"}),
        ),
    )
    assert durations.filter(system="1").select("duration_s", "event").rows() == [
        (2 * DAY, "failure"),
        (29 * DAY, "failure"),
        (epoch(2001, 6, 1) - epoch(2001, 2, 4), None),
    ]


@pytest.mark.parametrize("prod", ["before tracking", ""])
def test_a_node_of_unknown_age_is_observed_from_its_systems_first_outage(raw, prod):
    unknown = {"node prod": prod}
    durations = derive_table(
        "lanl",
        "durations",
        raw(
            outage("1/2/2001 0:00", "1/3/2001 0:00", **unknown),
            outage("1/5/2001 0:00", "1/6/2001 0:00", **unknown),
            outage("1/6/2001 0:00", "1/6/2001 0:00", nodenumz="1", **unknown),
        ),
    )
    assert durations.select("unit_id", "duration_s", "event").rows() == [
        ("1/0", 2 * DAY, "failure"),
        ("1/1", 4 * DAY, "failure"),
    ]


def test_nodes_without_an_outage_serve_like_their_nearest_neighbour(raw):
    durations = derive_table(
        "lanl",
        "durations",
        raw(
            outage("1/11/2001 0:00", "1/11/2001 0:00", nodes="7", nodenumz="1", cputype="8"),
            outage("2/11/2001 0:00", "2/11/2001 0:00", nodes="7", nodenumz="5", cputype="9", **{"node prod": "1-Feb"}),
        ),
    )
    assert durations.select("unit_id", "duration_s", "event", "cpu_type").rows() == [
        ("1/1", 10 * DAY, "failure", "8"),
        ("1/1", 31 * DAY, None, "8"),
        ("1/5", 10 * DAY, "failure", "9"),
        ("1/unseen-1", 41 * DAY, None, "8"),  # 0
        ("1/unseen-2", 41 * DAY, None, "8"),  # 2
        ("1/unseen-3", 41 * DAY, None, "8"),  # 3: as near to 1 as to 5
        ("1/unseen-4", 10 * DAY, None, "9"),  # 4
        ("1/unseen-5", 10 * DAY, None, "9"),  # 6
    ]


def test_durations_account_for_daylight_saving_time_in_denver(raw):
    durations = derive_table(
        "lanl", "durations", raw(outage("4/1/2001 1:00", "4/1/2001 4:00"))
    )  # an hour is missing that night
    assert durations.select("duration_s", "repair_s").rows() == [(90 * DAY + HOUR, 2 * HOUR)]


@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("Apr-97", (1997, 4)),
        ("5-Apr", (2005, 4)),
        ("Jan-70", (1970, 1)),
        ("Jan-69", (2069, 1)),
    ],
)
def test_months(text, month):
    assert lanl.parse_month(text) == month


@pytest.mark.parametrize("column", ["node prod", "node decom"])
def test_a_row_with_an_invalid_month_is_quarantined(raw, column):
    texts = ["", "1-Jan", "the ides of March", "Apr", "5-April", "5-Apr-97", "-5-Apr", "1997-Apr", "5-", "²-Apr"]
    raw(*(outage("1/2/2001 0:00", "1/3/2001 0:00", **{column: text}) for text in texts))
    rows = raw.quarantine.select("line", "reason", "column").rows()
    assert rows == [(line, "wrong_form", column) for line in range(4, 12)]
