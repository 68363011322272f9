"""Backblaze's drives and Alibaba's SSD tickets against computations from the files without Polars."""

import csv
import gzip
from collections import Counter, defaultdict
from datetime import date, timedelta

import polars as pl
import pytest
from format_tables import derive_table, ingest_tables
from scipy import stats
from ttf.analyses.time_to_failure.annual_failure_rate.compute import annual_failure_rates
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import merge_records


@pytest.fixture(scope="module")
def days(shared_data):
    files = sorted((shared_data / "backblaze-2013").glob("*.csv.gz"))
    if not files:
        pytest.skip("the days of Backblaze are not beside the checkout")
    return files


@pytest.fixture(scope="module")
def durations(days, tmp_path_factory):
    raw, account, _ = ingest_tables("backblaze", tmp_path_factory.mktemp("backblaze"), 0, days=days)
    assert account.rows() == [("days", 431_087, 431_087, 0)]
    return derive_table("backblaze", "durations", raw)


@pytest.fixture(scope="module")
def drives(days):
    """Return (model, days seen, days of failure) by serial number, line by line."""
    drives_by_serial = {}
    for file in days:
        with gzip.open(file, "rt", newline="") as text:
            # The fields before those of SMART.
            for day, serial, model, _, failure, *_ in csv.reader(text):
                if day != "date":
                    _, days_seen, failed = drives_by_serial.setdefault(serial, (model, [], []))
                    days_seen.append(date.fromisoformat(day))
                    failed += [days_seen[-1]] * (failure == "1")
    return drives_by_serial


def test_known_numbers(durations, drives):
    assert durations["unit_id"].n_unique() == len(drives) == 21_959
    assert durations["duration_s"].sum() == 431_087 * 86_400
    assert durations["event"].count() == 43
    # Blocks of 45 and 43 drives were away for 12 and 10 days, one drive alone for 4, and came back.
    assert durations.filter(pl.col("duration_id") > 0).height == 89
    assert durations["duration_id"].max() == 1
    # One drive reads 29 years of power.
    assert durations.filter(pl.col("years_at_start").is_null())["unit_id"].to_list() == ["WD-WCAU45409452"]


def test_every_duration_is_a_stretch_of_days(durations, drives):
    expected = []
    for serial in sorted(drives):
        _, days_seen, failed = drives[serial]
        assert failed in ([], [max(days_seen)]), "a failure is a drive's last day in these files"
        starts = [day for day in sorted(days_seen) if day - timedelta(1) not in days_seen]
        for start in starts:
            end = start
            while end + timedelta(1) in days_seen:
                end += timedelta(1)
            expected.append((serial, start, (end - start).days + 1, [end] == failed))
    start, length = pl.from_epoch("start_s").dt.date(), pl.col("duration_s") // 86_400
    actual = durations.select("unit_id", start, length, pl.col("event").is_not_null())
    assert actual.rows() == expected


def test_annual_failure_rates(durations, drives):
    models = defaultdict(lambda: [0, 0, 0])
    for model, days_seen, failed in drives.values():
        for stratum in ("all", model):
            models[stratum] = [a + b for a, b in zip(models[stratum], (1, len(days_seen), len(failed)), strict=True)]
    table = pl.concat([annual_failure_rates(durations.lazy(), stratum_column) for stratum_column in ("all", "model")])
    assert table.height == len(models) == 37
    for row in table.iter_rows(named=True):
        number, drive_days, failures = models[row["stratum"]]
        assert (row["drives"], row["drive_days"], row["failures"]) == (number, drive_days, failures)
        assert row["afr"] == pytest.approx(100 * failures / (drive_days / 365))
    total = table.row(0, named=True)
    assert total["afr"] == pytest.approx(3.6408, abs=5e-5)
    assert total["ci_low"] == pytest.approx(100 * stats.chi2.ppf(0.025, 86) / 2 / (431_087 / 365))
    # Six effective models give a far wider interval than 43 independent failures.
    assert total["ci_low_clustered"] < 0.5 * total["ci_low"]


@pytest.fixture(scope="module")
def tickets(shared_data):
    file = shared_data / "alibaba-ssd" / "ssd_failure_tag.csv"
    if not file.is_file():
        pytest.skip("the tickets of Alibaba's SSDs are not beside the checkout")
    return file


def test_every_ticket_is_an_outage(tickets, tmp_path):
    raw, account, _ = ingest_tables("alibaba_ssd", tmp_path, 0, tickets=[tickets])
    assert account.rows() == [("tickets", 18_387, 18_387, 0)]
    records = derive_table("alibaba_ssd", "outage_records", raw)
    outages, table_records = merge_records("t", apply_rules(records, []), None)
    assert outages.height == table_records.height == 18_387
    with tickets.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert len({row["disk_id"] for row in rows}) < len({(row["model"], row["disk_id"]) for row in rows}) == len(rows)
    assert outages["unit_id"].n_unique() == len(rows)
    # Some rack numbers occur in several rooms; a node is in one room.
    numbers = {row["rack_id"] for row in rows}
    racks = {(row["machine_room_id"], row["rack_id"]) for row in rows}
    assert (len(numbers), len(racks), outages["rack"].n_unique()) == (5_320, 5_439, 5_320)
    assert sum(count > 1 for count in Counter(rack for _, rack in racks).values()) == 115
    assert outages.group_by("node").agg(pl.struct("rack", "group").n_unique())["rack"].max() == 1
    assert (outages["node"].n_unique(), outages["group"].n_unique()) == (12_033, 675)
    assert outages["end_s"].null_count() == 18_387
