"""InfiniteHBD's faults in the study against an independent reader and against published numbers."""

import json
from collections import Counter

import polars as pl
import pytest
from format_tables import derive_table, ingest_tables
from outage_traces import DAY, infinitehbd
from study_runs import ROOT
from ttf.formats.infinitehbd.read import READING
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_durations import durations_of_outages
from ttf.records.outages.outage_records import build_exposure, merge_records
from ttf.study.configuration.yaml_files import load_yaml

ENTRY = load_yaml(ROOT / "config/traces.yaml")["infinitehbd"]


@pytest.fixture(scope="module")
def folder(shared_data):
    if not (shared_data / "infinitehbd").is_dir():
        pytest.skip("the faults of InfiniteHBD are not beside the checkout")
    return shared_data / "infinitehbd"


@pytest.fixture(scope="module")
def derived(folder, tmp_path_factory):
    """Return (row account, outages, records, exposure) of the study, without the rules of causes."""
    output_folder, files = tmp_path_factory.mktemp("infinitehbd"), [folder / "fault_trace.json"]
    raw, account, _ = ingest_tables("infinitehbd", output_folder, 0, READING.readers, events=files)
    exposure = build_exposure("t", derive_table("infinitehbd", "exposure", raw, ENTRY))
    records = apply_rules(derive_table("infinitehbd", "outage_records", raw, ENTRY), [])
    return account, *merge_records("t", records, exposure), exposure


def test_every_event_is_kept_and_the_file_is_the_one_of_the_registry(derived, folder):
    assert derived[0].rows() == [("events", 1168, 1168, 0)]
    assert ENTRY["download"]["events"]["bytes"] == (folder / "fault_trace.json").stat().st_size


def test_the_numbers_of_faults_and_outages(derived, folder):
    _, outages, records, exposure = derived
    assert (records.height, outages.height, outages["counted"].sum()) == (584, 582, 582)
    assert records["unit_id"].n_unique() == 231
    levels = {"Hardware Failure": 298, "Software Failure": 24, "Other Failure": 262}
    assert dict(records.group_by("level").len().iter_rows()) == levels
    published = Counter(tuple(row[:2]) for row in records.select("level", "class").rows())
    statistics = json.loads((folder / "fault_statistics.json").read_text())
    for level, classes in statistics.items():
        assert classes.pop("LevelTotal") == levels[level]
        for name, causes in classes.items():
            assert published[level, name] == causes["ClassTotal"]
    assert outages.filter(pl.col("records") > 1)["records"].to_list() == [3]
    assert (records["start_s"] == records["end_s"]).sum() == 14
    assert (exposure["until_s"] - exposure["from_s"]).sum() == 400 * round(348.9798 * DAY)


def test_the_same_as_read_by_other_code(derived, folder):
    (_, outages, records, exposure), (*reference_tables, reference_exposure) = derived, infinitehbd(folder)
    for table, reference in zip((outages, records), reference_tables, strict=True):
        keys = ["unit_id", "start_s", "end_s", "cause"]
        assert table.sort(keys).equals(reference.select(table.columns).sort(keys))
    times = ["unit_id", "from_s", "until_s"]
    assert exposure.select(times).equals(reference_exposure.select(times))


def test_durations_are_what_outages_leave_of_the_watch(derived):
    _, outages, _, exposure = derived
    durations = durations_of_outages(outages, exposure, ["hardware_failure"], {"node": ["unit_id"]})
    watched_s = (exposure["until_s"] - exposure["from_s"]).sum()
    assert durations["duration_s"].sum() == watched_s - outages["duration_s"].sum()
    assert durations["event"].count() == 582
    assert durations["unit_id"].n_unique() == 400
    assert durations["hardware_failure"].sum() == (outages["level"] == "Hardware Failure").sum()
