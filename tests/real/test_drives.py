"""Backblaze's drives and Alibaba's SSD tickets against facts worked out here from the files, without Polars."""

import csv
import gzip
from collections import Counter, defaultdict
from datetime import date, timedelta

import polars as pl
import pytest
from of_formats import table_of, typed
from scipy import stats
from ttf.analyses.time_to_failure.annual_failure_rate.compute import annual_failure_rates
from ttf.records.outages.outage_causes import with_rules
from ttf.records.outages.outage_records import outages_of


@pytest.fixture(scope="module")
def days(shared_data):
    files = sorted((shared_data / "backblaze-2013").glob("*.csv.gz"))
    if not files:
        pytest.skip("the days of Backblaze are not beside the checkout")
    return files


@pytest.fixture(scope="module")
def lives(days, tmp_path_factory):
    raw, account, _ = typed("backblaze", tmp_path_factory.mktemp("backblaze"), 0, days=days)
    assert account.rows() == [("days", 431_087, 431_087, 0)]
    return table_of("backblaze", "lives", raw)


@pytest.fixture(scope="module")
def drives(days):
    """Serial number -> (model, days seen, day of failure or None), line by line."""
    found = {}
    for file in days:
        with gzip.open(file, "rt", newline="") as text:
            # The first fields, before those of SMART.
            for day, serial, model, _, failure, *_ in csv.reader(text):
                if day != "date":
                    _, seen, failed = found.setdefault(serial, (model, [], []))
                    seen.append(date.fromisoformat(day))
                    failed += [seen[-1]] * (failure == "1")
    return found


def test_known_numbers(lives, drives):
    assert lives["unit_id"].n_unique() == len(drives) == 21_959
    assert lives["duration_s"].sum() == 431_087 * 86_400
    assert lives["event"].count() == 43
    # Blocks of 45 and 43 drives were away for 12 and 10 days, one drive alone for 4, and came back.
    assert lives.filter(pl.col("life_id") > 0).height == 89
    assert lives["life_id"].max() == 1
    # One drive reads 29 years of power.
    assert lives.filter(pl.col("years_at_start").is_null())["unit_id"].to_list() == ["WD-WCAU45409452"]


def test_every_life_is_a_stretch_of_days(lives, drives):
    expected = []
    for serial in sorted(drives):
        _, seen, failed = drives[serial]
        assert failed in ([], [max(seen)]), "a failure is a drive's last day in these files"
        starts = [day for day in sorted(seen) if day - timedelta(1) not in seen]
        for start in starts:
            end = start
            while end + timedelta(1) in seen:
                end += timedelta(1)
            expected.append((serial, start, (end - start).days + 1, [end] == failed))
    start, length = pl.from_epoch("start_s").dt.date(), pl.col("duration_s") // 86_400
    found = lives.select("unit_id", start, length, pl.col("event").is_not_null())
    assert found.rows() == expected


def test_annual_failure_rates(lives, drives):
    models = defaultdict(lambda: [0, 0, 0])
    for model, seen, failed in drives.values():
        for of in ("all", model):
            models[of] = [a + b for a, b in zip(models[of], (1, len(seen), len(failed)), strict=True)]
    table = pl.concat([annual_failure_rates(lives.lazy(), by) for by in ("all", "model")])
    assert table.height == len(models) == 37
    for row in table.iter_rows(named=True):
        number, drive_days, failures = models[row["stratum"]]
        assert (row["drives"], row["drive_days"], row["failures"]) == (number, drive_days, failures)
        assert row["afr"] == pytest.approx(100 * failures / (drive_days / 365))
    whole = table.row(0, named=True)
    assert whole["afr"] == pytest.approx(3.6408, abs=5e-5)
    assert whole["ci_low"] == pytest.approx(100 * stats.chi2.ppf(0.025, 86) / 2 / (431_087 / 365))
    # Six effective models leave far more room than 43 independent failures would.
    assert whole["ci_low_clustered"] < 0.5 * whole["ci_low"]


@pytest.fixture(scope="module")
def tickets(shared_data):
    file = shared_data / "alibaba-ssd" / "ssd_failure_tag.csv"
    if not file.is_file():
        pytest.skip("the tickets of Alibaba's SSDs are not beside the checkout")
    return file


def test_every_ticket_is_an_outage(tickets, tmp_path):
    raw, account, _ = typed("alibaba_ssd", tmp_path, 0, tickets=[tickets])
    assert account.rows() == [("tickets", 18_387, 18_387, 0)]
    records = table_of("alibaba_ssd", "outage_records", raw)
    outages, kept = outages_of("t", with_rules(records, []), None)
    assert outages.height == kept.height == 18_387
    with tickets.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert len({row["disk_id"] for row in rows}) < len({(row["model"], row["disk_id"]) for row in rows}) == len(rows)
    assert outages["unit_id"].n_unique() == len(rows)
    # Some numbers of racks stand in several rooms; a node stands in one.
    numbers = {row["rack_id"] for row in rows}
    places = {(row["machine_room_id"], row["rack_id"]) for row in rows}
    assert (len(numbers), len(places), outages["rack"].n_unique()) == (5_320, 5_439, 5_320)
    assert sum(count > 1 for count in Counter(rack for _, rack in places).values()) == 115
    assert outages.group_by("node").agg(pl.struct("rack", "group").n_unique())["rack"].max() == 1
    assert (outages["node"].n_unique(), outages["group"].n_unique()) == (12_033, 675)
    assert outages["end_s"].null_count() == 18_387
