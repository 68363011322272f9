"""Titan: one duration per GPU, summed over its stays."""

from pathlib import Path

import polars as pl
import pytest
from format_tables import derive_table, ingest_tables
from ttf.records.durations import DURATION_COLUMNS

ROOT = Path(__file__).resolve().parents[2]
HEADER = "SN,location,insert,remove,duration,out,event\n"
END = "2019-08-01 20:07:33"


@pytest.fixture
def ingest_stays(tmp_path):
    """Ingest rows of the table; return the raw tables, with the quarantine in `ingest_stays.quarantine`."""

    def run(*rows):
        tables, _, run.quarantine = ingest_tables("titan", tmp_path, stays=HEADER + "".join(f"{row}\n" for row in rows))
        return tables

    return run


def test_columns_of_a_duration(ingest_stays):
    durations = derive_table(
        "titan", "durations", ingest_stays(f"0323,c11-2c1s4n3,2014-01-21 10:28:50,{END},174386323,FALSE,")
    )
    extras = {"batch": pl.String, "cage": pl.Int64, "dbe": pl.Boolean, "otb": pl.Boolean}
    position_types = dict.fromkeys(["column", "row", "slot", "node"], pl.Int64)
    assert durations.schema == pl.Schema(DURATION_COLUMNS | extras | position_types)
    assert {name: value for name, value in durations.row(0, named=True).items() if value is not None} == {
        "unit_id": "0323",
        "duration_id": 0,
        "entry_s": 0,
        "duration_s": 174386323,
        "gpu_count": 1,
        "gpu_milli": 1000,
        "nodes": 1,
        "cluster_by": "cabinet",
        "cluster": 0,
        "group_by": "node",
        "group": 0,
        "batch": "old",
        "cage": 1,
        "dbe": False,
        "otb": False,
        "column": 11,
        "row": 2,
        "slot": 4,
        "node": 3,
    }


def test_a_failure_is_a_gpu_taken_out_with_an_event(ingest_stays):
    out, stays = "2017-02-07 10:20:57,100,TRUE", f"{END},100,FALSE"
    durations = derive_table(
        "titan",
        "durations",
        ingest_stays(
            f"both,c0-0c0s1n0,2014-01-21 10:28:50,{out},OTB",
            "both,c0-0c0s1n0,,2016-01-01 00:00:00,,,DBE",
            f"dbe,c0-0c0s1n0,2014-01-21 10:28:50,{out},",
            "dbe,c0-0c0s1n0,,2016-01-01 00:00:00,,,DBE",
            f"otb,c0-0c0s1n0,2014-01-21 10:28:50,{out},OTB",
            f"taken out whole,c0-0c0s1n0,2014-01-21 10:28:50,{out},",
            f"still there,c0-0c0s1n0,2014-01-21 10:28:50,{stays},DBE",
            "still there,c0-0c0s1n0,,2016-01-01 00:00:00,,,OTB",
        ),
    )
    assert durations.select("unit_id", "event", "dbe", "otb").rows() == [
        ("both", "failure", True, True),
        ("dbe", "failure", True, False),
        ("otb", "failure", False, True),
        ("taken out whole", None, False, False),
        ("still there", None, False, False),
    ]
    assert durations["duration_s"].to_list() == [100] * 5


def test_a_duration_is_the_sum_of_its_stays(ingest_stays):
    durations = derive_table(
        "titan",
        "durations",
        ingest_stays(
            "a,c0-0c0s1n0,2016-06-01 00:00:00,2016-06-01 00:10:00,600,FALSE,",
            f"b,c0-0c0s1n0,2016-06-02 00:00:00,{END},7,FALSE,",
            f"a,c0-0c1s1n0,2016-07-01 00:00:00,{END},900,TRUE,DBE",
            "events only,c0-0c1s1n0,,2016-07-01 00:00:00,,,DBE",
            "no duration,c0-0c1s1n0,2016-03-13 00:00:00,2016-03-14 00:00:00,,FALSE,",  # the clocks change
        ),
    )
    assert durations.select("unit_id", "duration_s", "event").rows() == [
        ("a", 1500, "failure"),
        ("b", 7, None),
        ("no duration", 23 * 3600, None),
    ]


def test_batch_by_first_insertion(ingest_stays):
    durations = derive_table(
        "titan",
        "durations",
        ingest_stays(
            f"a,c0-0c0s1n0,2015-12-31 23:59:59,{END},1,FALSE,",
            f"b,c0-0c0s1n0,2016-01-01 00:00:00,{END},1,FALSE,",
            f"c,c0-0c0s1n0,2016-01-01 00:00:01,{END},1,FALSE,",
            f"a,c0-0c0s1n0,2017-01-01 00:00:00,{END},1,FALSE,",
        ),
    )
    assert durations["batch"].to_list() == ["old", "old", "new"]


def test_the_position_is_the_location_held_longest(ingest_stays):
    def stay(serial, location, insert, seconds):
        return f"{serial},{location},{insert} 00:00:00,{END},{seconds},FALSE,"

    durations = derive_table(
        "titan",
        "durations",
        ingest_stays(
            stay("twice", "c1-0c0s0n0", "2014-01-01", 60),
            stay("twice", "c2-0c1s0n0", "2014-02-01", 100),
            stay("twice", "c1-0c0s0n0", "2014-03-01", 60),
            stay("tie", "c1-0c0s0n0", "2014-03-01", 60),
            stay("tie", "c3-0c2s0n0", "2014-01-01", 60),
            stay("tie by name", "c4-0c2s0n0", "2014-01-01", 60),
            stay("tie by name", "c1-7c1s2n3", "2014-01-01", 60),
        ),
    )
    assert durations.select("unit_id", "column", "row", "cage", "slot", "node").rows() == [
        ("twice", 1, 0, 0, 0, 0),
        ("tie", 3, 0, 2, 0, 0),
        ("tie by name", 1, 7, 1, 2, 3),
    ]


def test_rows_that_break_a_rule_are_quarantined(ingest_stays):
    ingest_stays(
        f"a,c0-0c0s1n0,2014-01-21 10:28:50,{END},1,FALSE,",
        f",c0-0c0s1n0,2014-01-21 10:28:50,{END},1,FALSE,",
        f"a,c0-0c0s1n0,2014-01-21,{END},1,FALSE,",
        f"a,c0-0c0s1n0,2019-08-02 10:28:50,{END},1,FALSE,",
        f"a,c0-0c0s1n0,2014-01-21 10:28:50,{END},-1,FALSE,",
        f"a,c0-0c0s1n0,2014-01-21 10:28:50,{END},1,maybe,",
        f"a,c0-0c0s1n0,2014-01-21 10:28:50,{END},1,FALSE,FIRE",
    )
    assert ingest_stays.quarantine.select("line", "reason", "column").rows() == [
        (3, "missing_value", "SN"),
        (4, "not_a_time", "insert"),
        (5, "end_before_start", "remove"),
        (6, "negative_blanked", "duration"),
        (7, "unknown_value", "out"),
        (8, "unknown_value", "event"),
    ]
