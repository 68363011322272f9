"""Job records out of public bug reports: runs that never were, clocks set back, preempted jobs, placeholders, MIG."""

import polars as pl
import pytest
from format_tables import FILES, FORMATS, derive_table
from recognised_jobs import read_recognised
from ttf.formats.protocol import load_schemas_and_readers
from ttf.raw.ingest import anomalies, ingest
from ttf.records.durations import durations_of_jobs
from ttf.study.recognition.draft import draft_mapping
from ttf.study.recognition.format_declarations import read_schema_text
from ttf.study.recognition.table_sample import read_sample


@pytest.fixture
def derive(shared_data, tmp_path):
    """Derive the jobs of a file of the reports; return them and its anomalies (code -> rows)."""

    def run(name, format_="sacct", entry=None):
        file = find(shared_data, name)
        schema = "" if "mapping" in (entry or {}) else read_schema_text(FILES[format_])
        schemas, readers = load_schemas_and_readers(FORMATS[format_]["reader"], entry or {}, schema)
        (table, _), *_ = schemas.items()
        account, quarantine = ingest({table: [file]}, schemas, tmp_path, 0.01, readers)
        jobs = derive_table(format_, "jobs", {table: pl.scan_parquet(tmp_path / f"{table}.parquet")}, entry)
        return jobs, dict(anomalies(quarantine, account).select("code", "rows").iter_rows())

    return run


def find(shared_data, name):
    file = shared_data / "strangers" / "reports" / name
    if not file.is_file():
        pytest.skip(f"{name} of the reports is not beside the checkout")
    return file


def test_a_start_at_1970_is_no_run(derive):
    jobs, told = derive("epoch_start/sacct.txt")
    never_ran = jobs.row(by_predicate=pl.col("job_id") == "9001", named=True)
    assert [never_ran[name] for name in ("outcome", "start_s", "runtime_s")] == ["cancelled", None, None]
    assert told == {"year_blanked": 1}
    durations = durations_of_jobs(jobs).drop_nulls("duration_s")
    assert durations.select(pl.len(), (pl.col("event") == "failure").sum()).row(0) == (200, 47)
    assert durations["duration_s"].sum() / 47 == pytest.approx(31_136, abs=1)


def test_a_preempted_job_has_ended(derive):
    jobs, _ = derive("preempted_end/sacct.txt")
    assert jobs.filter(status_raw="PREEMPTED")["outcome"].to_list() == ["cancelled"] * 20
    assert "unknown" not in jobs["outcome"]


@pytest.mark.parametrize("zone", ["America/New_York", "UTC"])
def test_elapsed_counts_where_the_clocks_changed(derive, zone):
    jobs, told = derive("dst/sacct.txt", entry={"times": {"zone": zone}})
    hours = [1 / 3, 1.25, 3.5, 1, 2 / 3600]
    assert jobs["runtime_s"].head(5).to_list() == [round(3600 * hour) for hour in hours]
    assert told == {}


def test_placeholders_do_not_cost_the_starts(derive, shared_data):
    file = find(shared_data, "csv_zero_dates/go_start.csv")
    draft = draft_mapping(read_sample(file))
    assert (draft.entry["mapping"]["start"], draft.missing) == ("started_at", {})
    jobs, told = derive("csv_zero_dates/go_start.csv", "table", draft.entry)
    assert (jobs["runtime_s"].count(), told) == (200, {"year_blanked": 3})


def test_a_part_of_a_gpu_is_not_no_gpu(shared_data, tmp_path):
    jobs, _ = read_recognised(find(shared_data, "kubernetes_mig/pods.json"), tmp_path)
    gpus = dict(jobs.select("job_id", "gpu_milli").iter_rows())
    assert [gpus[name] for name in ("mig0", "mig1", "mig2", "p0", "podoom")] == [None, None, 0, 1000, 2000]
