"""Backblaze: each unbroken run of days of a drive is one duration. Absence is not failure."""

from datetime import date, timedelta

import polars as pl
import pytest
import yaml
from format_tables import derive_table, ingest_tables, raw_schemas
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.errors import StudyError
from ttf.formats.backblaze import derive
from ttf.raw.ingest import ingest
from ttf.records.durations import DURATION_COLUMNS

SCHEMAS = raw_schemas("backblaze")
HEADER = "date,serial_number,model,capacity_bytes,failure,smart_1_raw,smart_9_normalized,smart_9_raw"
FIRST_DAY = date(2013, 4, 10)
DAY_S = 86_400


def row(day, serial, failure=0, hours: int | str = 100, model="M1"):
    return f"{FIRST_DAY + timedelta(day)},{serial},{model},4000787030016,{failure},7,99,{hours}"


def ingest_files(folder, files):
    """Write the rows of each file and return (raw tables, quarantine)."""
    for name, rows in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in [HEADER, *rows]))
    raw, _, quarantine = ingest_tables("backblaze", folder, days=[folder / name for name in files])
    return raw, quarantine


def durations_of(raw):
    return derive_table("backblaze", "durations", raw)


def duration_rows(durations):
    """List (drive, number of the duration, first day, days, whether it failed)."""
    day = (pl.col("start_s") - pl.lit(FIRST_DAY).cast(pl.Datetime).dt.epoch("s")) // DAY_S
    return durations.select(
        "unit_id", "duration_id", day, pl.col("duration_s") // DAY_S, pl.col("event") == "failure"
    ).rows()


def test_columns_of_a_duration(tmp_path):
    raw, _ = ingest_files(tmp_path, {"a.csv": [row(0, "Z1", hours=20_000), row(1, "Z1", 1)]})
    durations = durations_of(raw)
    extras = {"model": pl.String, "years_at_start": pl.Int64, "start_s": pl.Int64}
    assert durations.schema == pl.Schema(DURATION_COLUMNS | extras)
    values = {name: value for name, value in durations.row(0, named=True).items() if value is not None}
    assert values == yaml.safe_load("""
        unit_id: Z1
        duration_id: 0
        entry_s: 0
        duration_s: 172800
        event: failure
        nodes: 1
        cluster_by: model
        cluster: 0
        group_by: drive
        group: 0
        model: M1
        years_at_start: 2
        start_s: 1365552000
    """)


def test_repeated_drive_days_are_quarantined(tmp_path):
    """The first row counts."""
    days = {"a.csv": [row(0, "x"), row(0, "y"), row(0, "x", 1)], "copy.csv": [row(0, "x"), row(0, "y")]}
    raw, quarantine = ingest_files(tmp_path, days)
    assert quarantine.select("file", "line", "reason").rows() == [
        ("a.csv", 4, "duplicate_key"),
        ("copy.csv", 2, "duplicate_key"),
        ("copy.csv", 3, "duplicate_key"),
    ]
    assert duration_rows(durations_of(raw)) == [("x", 0, 0, 1, None), ("y", 0, 0, 1, None)]


def test_headers_of_other_years(tmp_path):
    """Extra columns, another order and absent optional columns are accepted; absent required ones are refused."""
    (tmp_path / "2025.csv").write_text("date,datacenter,model,serial_number,failure,pod_id\n2013-04-10,sac0,M1,x,1,7\n")
    (tmp_path / "2013.csv").write_text(f"{HEADER}\n{row(1, 'x')}\n")
    ingest({"days": [tmp_path / "2025.csv", tmp_path / "2013.csv"]}, SCHEMAS, tmp_path, 0.0)
    durations = durations_of({"days": pl.scan_parquet(tmp_path / "days.parquet")})
    assert duration_rows(durations) == [("x", 0, 0, 1, True), ("x", 1, 1, 1, None)]
    assert durations["years_at_start"].to_list() == [None, 0]
    (tmp_path / "other.csv").write_text("date,model,serial_number\n2013-04-10,M1,x\n")
    with pytest.raises(StudyError, match=r"other\.csv: line 1: the header row has no column failure"):
        ingest({"days": [tmp_path / "other.csv"]}, SCHEMAS, tmp_path, 0.0)


def test_an_impossible_age_is_blank_and_its_day_counts(tmp_path):
    days = {"a.csv": [row(0, "a", hours=254_189), row(0, "b", hours=2**48 - 1), row(0, "c", hours=""), row(0, "d")]}
    raw, quarantine = ingest_files(tmp_path, days)
    assert quarantine.is_empty()
    assert durations_of(raw)["years_at_start"].to_list() == [None, None, None, 0]


def test_rows_that_break_a_rule(tmp_path):
    days = [
        row(0, "a", 2),
        row(0, "a", "yes"),
        row(0, ""),
        row(0, "b").replace("2013-04-10", "10/04/2013"),
        row(0, "c", ""),
    ]
    _, quarantine = ingest_files(tmp_path, {"a.csv": [row(0, "a"), *days]})
    assert quarantine.select("reason", "column").rows() == [
        ("out_of_range", "failure"),
        ("not_a_number", "failure"),
        ("missing_value", "serial_number"),
        ("not_a_time", "date"),
        ("missing_value", "failure"),
    ]


DAYS = st.dictionaries(st.tuples(st.integers(0, 12), st.sampled_from("abc")), st.booleans(), min_size=1, max_size=25)


@given(DAYS, st.integers(1, 5))
def test_every_row_is_a_day_at_risk_and_every_failure_ends_a_duration(days, max_rows):
    """Compare with a walk from day to day, for any number of parts in which drives are sorted.

    A drive that returns starts a new duration; one that does not is censored on its last day.
    """
    rows = [(day * DAY_S, drive, "M", int(failed), 5) for (day, drive), failed in days.items()]
    columns = ("day_s", "serial_number", "model", "failure", "power_on_h")
    raw = {"days": pl.LazyFrame(rows, schema=columns, orient="row")}
    expected = []
    for drive in sorted({drive for _, drive in days}):
        durations = []
        for day in sorted(day for day, day_drive in days if day_drive == drive):
            if not durations or durations[-1][1] != day - 1 or days[day - 1, drive]:
                durations.append([day, day])
            durations[-1][1] = day
        expected += [(drive, n, a * DAY_S, b - a + 1, days[b, drive]) for n, (a, b) in enumerate(durations)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derive, "MAX_ROWS", max_rows)
        actual = durations_of(raw)
    columns = ("unit_id", "duration_id", "start_s", pl.col("duration_s") // DAY_S, pl.col("event").is_not_null())
    assert actual.select(columns).rows() == expected
