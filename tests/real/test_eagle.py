"""The format `table` on real Slurm jobs (NREL Eagle) against plain Python computations from the raw CSV."""

import csv
from collections import Counter
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from format_tables import derive_table
from memory_tables import outcome_table
from ttf.formats.table import read as table
from ttf.raw.ingest import ingest
from ttf.raw.raw_tables import table_schemas
from ttf.records.durations import durations_of_jobs
from ttf.study.configuration.config import resolve
from ttf.study.configuration.yaml_files import load_yaml

ROOT = Path(__file__).resolve().parents[2]
DENVER = ZoneInfo("America/Denver")


@pytest.fixture(scope="module")
def rows(shared_data):
    with (shared_data / "eagle/sample_eagle_data.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def entry():
    layer = ("my.yaml", {"study": ["eagle"]})
    return resolve([layer], load_yaml(ROOT / "config/traces.yaml"))["registry"]["eagle"]


def derive(entry, path, folder, max_share=0.0):
    folder.mkdir()
    schemas = table_schemas(table.schema_document(entry))
    account, quarantine = ingest({"rows": [path]}, schemas, folder, max_share, table.READERS)
    return derive_table("table", "jobs", {"rows": pl.scan_parquet(folder / "rows.parquet")}, entry), account, quarantine


@pytest.fixture(scope="module")
def jobs(entry, shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("eagle") / "raw"
    jobs, account, quarantine = derive(entry, shared_data / "eagle" / entry["files"]["rows"], folder)
    assert account.rows() == [("rows", 1000, 1000, 0)]
    assert quarantine.is_empty()
    return jobs


def epoch(text):
    return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=DENVER).timestamp())


def parse_integer(text):
    number = float(text)
    assert number.is_integer()
    return int(number)


def test_outcomes(entry, jobs, rows):
    assert Counter(row["state"] for row in rows) == {"COMPLETED": 985, "TIMEOUT": 15}
    assert dict(jobs["outcome"].value_counts().rows()) == {"success": 985, "failure": 15}
    assert jobs["status_raw"].to_list() == [row["state"] for row in rows]
    outcomes = outcome_table(jobs, words=[word for words in entry["outcomes"].values() for word in words])
    assert outcomes.select("outcome", "jobs", "at_time_limit").rows() == [("success", 985, 0), ("failure", 15, 15)]


def test_run_times_are_those_of_the_file(jobs, rows):
    """None of the 1,000 differs."""
    differ = [n for n, row in enumerate(rows) if parse_integer(row["run_time"]) != jobs["runtime_s"][n]]
    assert differ == []


def test_times(jobs, rows):
    times = [tuple(epoch(row[f"{name}_time"]) for name in ("submit", "start", "end")) for row in rows]
    assert jobs.select("submit_s", "start_s", "end_s").rows() == times
    assert jobs["queue_s"].to_list() == [start - submit for submit, start, _ in times]
    assert jobs["trace_end_s"].unique().to_list() == [max(end for *_, end in times)]


def test_requests(jobs, rows):
    assert jobs["gpu_milli"].to_list() == [1000 * int(row["gpus_req"]) for row in rows]
    assert jobs["cpu_milli"].to_list() == [1000 * int(row["processors_req"]) for row in rows]
    assert jobs["mem_mib"].to_list() == [parse_integer(row["mem_req"]) or None for row in rows]
    assert jobs["nodes"].to_list() == [int(row["nodes_req"]) for row in rows]
    assert jobs["size"].unique().to_list() == [1]
    assert (jobs["gpu_milli"] > 0).sum() == sum(row["gpus_req"] != "0" for row in rows) == 4


def test_rows_that_share_an_id_are_jobs_of_their_own(jobs, rows):
    repeated = {name: count for name, count in Counter(row["job_id"] for row in rows).items() if count > 1}
    assert repeated == {"532939": 452}
    numbers = Counter()
    tasks = []
    for row in rows:
        numbers[row["job_id"]] += 1
        tasks.append(str(numbers[row["job_id"]]) if row["job_id"] in repeated else None)
    assert jobs["task"].to_list() == tasks
    durations = durations_of_jobs(jobs)
    assert durations["unit_id"].n_unique() == 1000
    assert durations["duration_s"].sum() == sum(parse_integer(row["run_time"]) for row in rows)


def test_with_unique_ids_all_but_one_row_are_quarantined(entry, shared_data, tmp_path):
    unique_entry = {key: value for key, value in entry.items() if key != "unique_ids"}
    _, account, quarantine = derive(unique_entry, shared_data / "eagle/sample_eagle_data.csv", tmp_path / "raw", 1.0)
    assert account.rows() == [("rows", 1000, 549, 451)]
    assert quarantine["reason"].unique().to_list() == ["duplicate_key"]


@pytest.mark.parametrize("typed", [False, True])
def test_the_same_from_parquet(jobs, entry, shared_data, tmp_path, typed):
    """Columns as text, and with the types that Polars infers."""
    frame = pl.read_csv(shared_data / "eagle/sample_eagle_data.csv", infer_schema=typed, try_parse_dates=typed)
    assert (frame.schema["start_time"] == pl.Datetime("us")) is typed
    frame.write_parquet(tmp_path / "eagle.parquet")
    assert derive(entry, tmp_path / "eagle.parquet", tmp_path / "raw")[0].equals(jobs)
