"""Tables of jobs that strangers published, and small faults in such tables: what is drafted, asked and refused."""

import polars as pl
import pytest
from format_tables import FORMATS, derive_table
from ttf.formats.protocol import load_schemas_and_readers
from ttf.raw.ingest import anomalies, ingest
from ttf.study.configuration.messages import ConfigError
from ttf.study.recognition.recognise import recognise

MLFLOW_TIMES = {"times": {"format": "%d-%m-%Y %H:%M", "zone": "UTC"}}
EXIT_CODES = {"outcomes": {"success": ["0"], "failure": ["*"]}}
# File -> keys that the draft asks for, answers, jobs and median run time by outcome, and core-hours.
JOBS = {
    "wandb_ui_export.csv": ([], {}, {"success": (64, 759.5)}, None),
    "genai_requests_2026.csv": (
        [],
        {},
        {"success": (140, 21), "failure": (40, 4), "waiting": (9, None)},
        None,
    ),
    "mlflow_ui_export.csv": (["times.format"], MLFLOW_TIMES, {"success": (12, 15.5)}, None),
    "lsf_parsed_jobs.csv": (["outcomes"], EXIT_CODES, {"success": (45, 100), "failure": (42, 1)}, None),
}


def derive(path, entry, folder):
    """Return the jobs of a table with the completed draft, and its anomalies (code -> rows)."""
    schemas, readers = load_schemas_and_readers(FORMATS["table"]["reader"], entry, "")
    account, quarantine = ingest({"rows": [path]}, schemas, folder, 0.01, readers)
    jobs = derive_table("table", "jobs", {"rows": pl.scan_parquet(folder / "rows.parquet")}, entry)
    return jobs, dict(anomalies(quarantine, account).select("code", "rows").iter_rows())


@pytest.mark.parametrize("name", JOBS)
def test_a_table_of_jobs_is_drafted(find_stranger, name, tmp_path):
    path, (asked, answers, expected, core_hours) = find_stranger(f"jobs/{name}"), JOBS[name]
    recognised = recognise(path)
    assert list(recognised.missing) == asked
    jobs, told = derive(path, recognised.entry | answers, tmp_path)
    assert told == {}
    rows = jobs.group_by("outcome").agg(pl.len(), median=pl.col("runtime_s").median())
    assert {outcome: (n, median) for outcome, n, median in rows.iter_rows()} == expected
    if core_hours:
        assert (jobs["runtime_s"] * jobs["cpu_milli"]).sum() / 3_600_000 == pytest.approx(core_hours, abs=1e-4)
    # A third of the run times of MLflow's table end in .5: rounded, they differ by 0.5 s at most.
    if name == "mlflow_ui_export.csv":
        assert jobs["runtime_s"].sum() == pytest.approx(207.5, abs=6)


def test_a_table_without_outcomes_is_refused_for_that(find_stranger):
    recognised = recognise(find_stranger("jobs/dlrm2025.csv"))
    assert list(recognised.missing) == ["mapping.status", "outcomes", "times.format"]
    assert recognised.missing["mapping.status"].startswith("no usable column has the name or the words of an outcome")


SACCT = "sacct -a -X -P --noconvert -S 2025-01-01 -E now -o JobIDRaw,State,Submit,Start,End,"
REFUSED = {
    "jobs/tiresias_60_job.csv": ["this is a simulator's input", "(duration)", "without outcomes"],
    "jobs/sacct_fixed_width.txt": ["columns of fixed width", "CANCELLED+", "without Start, End", SACCT],
    "jobs/sacct_no_header.txt": ["there is no header row", "with steps (48816.batch)", SACCT],
    "jobs/sacct_state_many_cancellers.csv": [
        "printed by sacct, and without JobID, Start, End. 190 rows",
        "success: COMPLETED 62; failure: FAILED 62, TIMEOUT 21; cancelled: CANCELLED 45",
        SACCT,
    ],
    "faults/draft/gz_cut/runs.csv.gz": ["damaged or cut short"],
    "faults/draft/utf16/runs.csv": ["the text is UTF-16", "iconv -f UTF-16 -t UTF-8 runs.csv"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_is_refused_with_the_reason_and_what_to_type(find_stranger, name):
    with pytest.raises(ConfigError) as error:
        recognise(find_stranger(name))
    text = str(error.value)
    assert [words for words in REFUSED[name] if words not in text] == []
    assert sum(-(-len(line) // 100) for line in text.splitlines()) <= 20


FAULTS = {
    "good": ("", {}),
    "dup_gpus": ("not used: gpus: two columns have this name", {}),
    "end_one_bad": ("end: cells that count as blank: 'never' in line 7", {}),
    "start_one_bad": ("start: cells that count as blank: '2024-02-30T00:00:00Z' in line 7", {}),
    "gpus_one_bad": ("gpus: cells below zero count as blank: '-1' in line 7", {"negative_blanked": 1}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_one_fault_costs_one_cell_and_is_named(find_stranger, name, tmp_path):
    path, (words, expected) = find_stranger(f"faults/draft/{name}/{name}.csv"), FAULTS[name]
    recognised = recognise(path)
    assert words in recognised.explanation and not recognised.missing
    jobs, told = derive(path, recognised.entry, tmp_path)
    assert told == expected
    n_runs = 79 if name in ("end_one_bad", "start_one_bad") else 80
    n_sizes = {"dup_gpus": 0, "gpus_one_bad": 79}.get(name, 80)
    assert jobs.select(pl.len(), pl.col("runtime_s", "gpu_milli").count()).row(0) == (80, n_runs, n_sizes)


def test_a_command_of_several_lines_is_one_cell(find_stranger, tmp_path):
    path = find_stranger("faults/ray/jobs.csv")
    recognised = recognise(path)
    jobs, told = derive(path, recognised.entry, tmp_path)
    assert jobs.select("job_id", "outcome", "runtime_s").rows() == [("r1", "success", 3600), ("r2", "failure", 3600)]
    assert told == {}
