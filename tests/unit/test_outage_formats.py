"""Formats of outages: InfiniteHBD's events and tables of any layout; faults are errors or flagged."""

import csv
import json
from datetime import date

import polars as pl
import pytest
from format_tables import derive_table, ingest_tables, scan_tables
from ttf.engine.errors import StudyError
from ttf.formats.infinitehbd.read import READING
from ttf.formats.table.read import READERS, schema_document
from ttf.raw.ingest import ingest
from ttf.raw.raw_tables import table_schemas
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_durations import durations_of_outages
from ttf.records.outages.outage_records import build_exposure, merge_records

DAY = 86_400
KIND = {"Level": "Hardware Failure", "Class": "GPU", "Desc": "GPU lost"}
OBSERVED = {"nodes": 4, "window_days": [0, 10]}


def event(node, day, type_="start", **kind):
    return {"node_id": node, "event_time": day, "event_type": f"fault_{type_}", "fault_type": KIND | kind}


class OutageTrace:
    """The quarantine, outages, exposure and durations of a trace."""

    def __init__(self, name, raw, entry, quarantine):
        self.quarantine = quarantine.select("line", "reason", "column").rows()
        records = apply_rules(derive_table(name, "outage_records", raw, entry), [])
        has_exposure = "nodes" in entry
        self.exposure = build_exposure("t", derive_table(name, "exposure", raw, entry)) if has_exposure else None
        self.outages, self.records = merge_records("t", records, self.exposure)

    @property
    def durations(self):
        return durations_of_outages(self.outages, self.exposure, ["hardware_failure"], {"node": ["unit_id"]})

    def rows(self, *columns):
        return self.outages.select(*columns).rows()


@pytest.fixture
def hbd(tmp_path):
    """Return a function that reads events, or a text, in the layout of InfiniteHBD."""

    def read(events, entry=OBSERVED):
        text = events if isinstance(events, str) else json.dumps(events)
        raw, _, quarantine = ingest_tables("infinitehbd", tmp_path, 1, READING.readers, events=text)
        return OutageTrace("infinitehbd", raw, entry, quarantine)

    return read


def test_a_start_is_paired_with_the_next_end_of_its_node_and_kind(hbd):
    trace = hbd(
        [
            event("a", 1),
            event("a", 1.2),
            event("b", 1.5),
            event("a", 2, Desc="NIC down"),
            event("a", 3, "end"),
            event("a", 4, "end", Desc="NIC down"),
            event("b", 5.0001, "end"),
        ]
    )
    # The outages of `a` overlap and are merged with the first one's cause.
    flags = "began again before its end; records that overlap name several causes"
    assert trace.rows("unit_id", "start_s", "end_s", "cause", "records", "flagged") == [
        ("a", DAY, 4 * DAY, "GPU lost", 3, flags),
        ("b", 3 * DAY // 2, 5 * DAY + 9, "GPU lost", 1, None),
    ]
    assert trace.exposure["unit_id"].to_list() == ["a", "b", "unseen-1", "unseen-2"]
    assert trace.exposure.select("from_s", "until_s").unique().rows() == [(0, 10 * DAY)]


def test_durations_are_the_times_between_outages(hbd):
    trace = hbd([event("a", 1), event("a", 3, "end"), event("b", 4), event("a", 6), event("a", 6, "end")])
    durations = trace.durations
    assert durations.select("unit_id", "duration_id", "start_s", "duration_s", "event", "repair_s").rows() == [
        ("a", 0, 0, DAY, "failure", 2 * DAY),
        ("a", 1, 3 * DAY, 3 * DAY, "failure", 0),
        ("a", 2, 6 * DAY, 4 * DAY, None, None),
        ("b", 0, 0, 4 * DAY, "failure", None),
        *((f"unseen-{n}", 0, 0, 10 * DAY, None, None) for n in (1, 2)),
    ]
    assert durations["hardware_failure"].sum() == 3
    # Exposure minus downtime; the end of observation cuts the outage of `b`.
    assert durations["duration_s"].sum() == (40 - 2 - 6) * DAY


def test_an_end_without_an_earlier_start_is_quarantined(hbd):
    trace = hbd([event("a", 1, "end"), event("b", 2, "end"), event("b", 3), event("c", 4), event("c", 5, "end")])
    assert trace.quarantine == [(1, "end_without_start", "fault_type"), (2, "end_without_start", "fault_type")]
    assert trace.rows("unit_id", "end_s", "seen_until_s", "flagged") == [
        ("b", None, 10 * DAY, "no end was written"),
        ("c", 5 * DAY, 5 * DAY, None),
    ]


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (["a"], (2, "wrong_column_count", None)),
        (event(7, 1), (2, "wrong_type", "node_id")),
        (event("a", "1"), (2, "wrong_type", "event_time")),
        (event("a", None), (2, "missing_value", "event_time")),
        (event("a", 1.7e9), (2, "out_of_range", "event_time")),
        (event("a", 1, "begin"), (2, "unknown_value", "event_type")),
        (event("a", 1) | {"fault_type": "GPU"}, (2, "wrong_type", "fault_type")),
        (event("a", 1, Desc=["GPU"]), (2, "wrong_type", "Desc")),
        (event("\ud800", 1), (2, "not_utf8", None)),
        (event("a", 1) | {"fault_type": None}, None),
    ],
)
def test_an_invalid_record_is_quarantined(hbd, record, problem):
    trace = hbd([event("b", 1), record, event("b", 2, "end")])
    assert trace.quarantine == ([problem] if problem else [])
    assert trace.outages.height == (1 if problem else 2)


def test_a_truncated_file_is_an_error(hbd):
    text = json.dumps([event("a", 1), event("a", 2, "end")])
    for cut in range(1, len(text), 7):
        with pytest.raises(StudyError, match=r"events\.csv: (line 1: record [12] of the array is|.* empty)"):
            hbd(text[:cut])


def test_an_empty_observation_window_is_an_error(hbd):
    with pytest.raises(StudyError, match=r"window_days: without it .* leaves no time here"):
        hbd([event("a", 0), event("a", 0, "end")], {"nodes": 1})


# Tables of any layout ---------------------------------------------------------------------------------------

ENTRY = {
    "format": "outages",
    "mapping": {"unit": "host", "start": "down", "end": "up", "cause": "why", "group": "cluster"},
    "times": {"format": "%Y-%m-%d %H:%M", "zone": "America/Denver"},
    "blank": ["still down"],
    "nodes": 3,
}
ROWS = [
    {"host": "n1", "down": "2024-01-01 00:00", "up": "2024-01-01 02:00", "why": "gpu", "cluster": "x"},
    {"host": "n2", "down": "2024-01-02 00:00", "up": "still down", "why": "", "cluster": "x"},
    {"host": "n1", "down": "2024-01-04 00:00", "up": "2024-01-05 00:00", "why": "nic", "cluster": "x"},
]


@pytest.fixture
def table(tmp_path):
    """Return a function that reads rows, or one list of rows per file, in a custom layout."""

    def read(rows, parquet=False, **keys):
        entry, paths = ENTRY | keys, []
        for number, part in enumerate(rows if isinstance(rows[0], list) else [rows]):
            paths.append(tmp_path / f"{number}.{'parquet' if parquet else 'csv'}")
            if parquet:
                pl.DataFrame(part).write_parquet(paths[-1])
                continue
            with paths[-1].open("w", newline="") as file:
                writer = csv.DictWriter(file, part[0].keys())
                writer.writeheader()
                writer.writerows(part)
        schemas = table_schemas(schema_document(entry))
        _, quarantine = ingest({"rows": paths}, schemas, tmp_path, 1, READERS)
        return OutageTrace("outages", scan_tables(tmp_path, "rows"), entry, quarantine)

    return read


def denver_s(day, hour=0):
    """Return the epoch second of a day in January 2024, Denver time."""
    return (date(2024, 1, day) - date(1970, 1, 1)).days * DAY + (7 + hour) * 3600


def test_a_table_of_outages_by_its_mapping(table):
    trace = table(ROWS)
    assert trace.rows("unit_id", "group", "start_s", "end_s", "cause", "counted") == [
        ("n1", "x", denver_s(1), denver_s(1, 2), "gpu", False),  # observation starts with it
        ("n1", "x", denver_s(4), denver_s(5), "nic", True),
        ("n2", "x", denver_s(2), None, None, True),
    ]
    assert trace.exposure.select("unit_id", "group", "from_s", "until_s").rows() == [
        ("n1", "x", denver_s(1), denver_s(5)),
        ("n2", "x", denver_s(1), denver_s(5)),
        ("unseen-1", None, denver_s(1), denver_s(5)),
    ]


def test_parquet_is_read_like_csv(table):
    rows = [row | {"up": None if row["up"] == "still down" else row["up"], "why": row["why"] or None} for row in ROWS]
    assert table(rows, parquet=True).outages.equals(table(ROWS).outages)


def test_durations_instead_of_ends_and_planned_outages(table):
    mapping = {"unit": "host", "start": "down", "duration": {"column": "hours", "unit": "h"}}
    columns = ("host", "down", "hours", "kind")
    cells = [("n1", "2024-01-01 00:00", "1.5", "Maint"), ("n2", "2024-01-02 00:00", "", "fault")]
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    trace = table(rows, mapping=mapping | {"planned": {"column": "kind", "words": ["maint"]}})
    assert trace.rows("unit_id", "duration_s", "planned") == [("n1", 5400, True), ("n2", None, False)]


def test_without_a_mapped_end_only_the_start_of_an_outage_is_known(table):
    trace = table(ROWS, mapping={"unit": "host", "start": "down"})
    assert (trace.outages["seen_until_s"] == trace.outages["start_s"]).all()
    assert trace.outages.height == 3  # none reaches the next
    assert trace.outages["flagged"].unique().to_list() == ["no end was written"]


def test_invalid_rows_are_quarantined(table):
    rows = [*ROWS, ROWS[0] | {"up": "2023-12-31 00:00"}, ROWS[0] | {"host": ""}, ROWS[0] | {"down": ""}]
    assert table(rows).quarantine == [
        (5, "end_before_start", "up"),
        (6, "missing_value", "host"),
        (7, "missing_value", "down"),
    ]
