"""Dumps of sacct from the test cases of a monitoring tool (facebookresearch/gcm): line breaks in a cell, invalid UTF-8,
lines cut at their beginning, jobs over midnight, and `|#` as delimiter.
"""

import polars as pl
import pytest
from format_tables import raw_schemas
from sacct_story import derive_tables
from ttf.engine.errors import StudyError
from ttf.formats.sacct.read import read_records

RECORD = raw_schemas("sacct")["record"]
# File -> numbers of accepted and of quarantined rows; files with an -expected file have its rows.
DUMPS = {
    "fake-line-break": (4, 0),
    "one-multiline": (4, 0),
    "multiple-multiline": (6, 0),
    "output": (68, 0),
    "output-invalid-utf8": (11, 0),
    "output-midnight-edge-case": (1186, 0),
    "output-with-invalid-lines": (0, 1),
    "running-output": (10, 0),
    "running-output-large": (5040, 0),
}


@pytest.fixture(scope="module")
def folder(shared_data):
    folder = shared_data / "gcm-sacct"
    if not folder.is_dir():
        pytest.skip("the dumps of gcm are not beside the checkout")
    return folder


def read_dump(folder, name):
    accepted, quarantined = zip(*read_records(folder / f"sample-sacct-{name}.txt", RECORD), strict=True)
    return pl.concat(accepted), pl.concat(quarantined)


@pytest.mark.parametrize("name", DUMPS)
def test_every_row_is_accepted_or_quarantined(folder, name):
    accepted, quarantined = read_dump(folder, name)
    assert (accepted.height, quarantined.height) == DUMPS[name]
    assert set(quarantined["reason"]) <= {"wrong_column_count"}
    assert accepted["elapsed_s"].null_count() in (0, accepted.height)


@pytest.mark.parametrize("name", ["fake-line-break", "one-multiline", "multiple-multiline"])
def test_rows_with_a_line_break_are_the_rows_expected(folder, name):
    accepted, _ = read_dump(folder, name)
    expected, _ = read_dump(folder, f"{name}-expected")
    assert accepted.drop("line").equals(expected.drop("line"))
    # Each row has the number of its first line.
    lines = (folder / f"sample-sacct-{name}.txt").read_text().splitlines()
    assert all(job in lines[line - 1] for line, job in accepted.select("line", "job_id_raw").rows())


def test_jobs_over_midnight_are_in_the_dump_of_each_day_and_count_once(folder, tmp_path):
    """The tool moves steps that end after midnight to the next day's dump; the study uses a job's last record."""
    accepted, _ = read_dump(folder, "output-midnight-edge-case")
    day_dump = pl.read_csv(folder / "sample-sacct-output-midnight-edge-case-small.txt", separator="|")
    expected = pl.read_csv(folder / "sample-sacct-output-midnight-edge-case-small-expected.txt", separator="|")
    shared_rows = accepted.select(JobID="job_id_raw", State="state_raw").join(
        day_dump, on=["JobID", "State"], how="semi"
    )
    assert shared_rows.height == day_dump.height
    next_day_rows = day_dump.join(expected, on=["JobID", "State"], how="anti")
    assert next_day_rows["End"].str.starts_with("2021-04-08").all()
    assert set(next_day_rows["JobID"].str.extract(r"\.(.*)")) == {"0"}
    file = folder / "sample-sacct-output-midnight-edge-case.txt"
    _, once, _ = derive_tables(file, folder=tmp_path / "one")
    _, twice, _ = derive_tables(file, file, folder=tmp_path / "two")
    assert (
        once.height == accepted.filter(~pl.col("job_id_raw").str.contains(".", literal=True))["job_id_raw"].n_unique()
    )
    assert once.drop("file").equals(twice.drop("file"))


def test_a_dump_without_starts_is_refused_by_name(folder):
    with pytest.raises(StudyError, match="no column Start"):
        read_dump(folder, "output-midnight-edge-case-small")


def test_jobs_whatever_bytes_stand_in_columns_that_are_not_read(folder, tmp_path):
    _, jobs, attempts = derive_tables(folder / "sample-sacct-output-invalid-utf8.txt", folder=tmp_path / "jobs")
    assert jobs.select("job_id", "outcome", "runtime_s").rows() == [
        ("3557891", "failure", 99),
        ("3557892", "failure", 7212),
    ]
    assert attempts["node_list"].to_list() == [["learnnode047"], ["learnnode036"]]
    account, steps, _ = derive_tables(folder / "sample-sacct-output.txt", folder=tmp_path / "steps")
    assert account["rows_accepted"].item() == 68
    assert not steps.height
