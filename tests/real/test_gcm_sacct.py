"""Dumps of sacct that a monitoring tool keeps as test cases (facebookresearch/gcm): line breaks in a cell, bytes that
are no UTF-8, lines cut at their beginning, jobs over midnight, and `|#` between the columns."""

import polars as pl
import pytest
from of_formats import raw_schemas
from sacct_story import study
from ttf.engine.errors import StudyError
from ttf.formats.sacct.read import read_records

RECORD = raw_schemas("sacct")["record"]
# File -> rows kept and rows put aside. Of those with an expectation beside them its rows.
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


def read(folder, name):
    """(rows kept, rows put aside) of a dump."""
    kept, aside = zip(*read_records(folder / f"sample-sacct-{name}.txt", RECORD), strict=True)
    return pl.concat(kept), pl.concat(aside)


@pytest.mark.parametrize("name", DUMPS)
def test_every_row_is_kept_or_put_aside(folder, name):
    kept, aside = read(folder, name)
    assert (kept.height, aside.height) == DUMPS[name]
    assert set(aside["reason"]) <= {"wrong_column_count"}
    assert kept["elapsed_s"].null_count() in (0, kept.height)


@pytest.mark.parametrize("name", ["fake-line-break", "one-multiline", "multiple-multiline"])
def test_rows_with_a_line_break_are_the_rows_expected(folder, name):
    kept, _ = read(folder, name)
    expected, _ = read(folder, f"{name}-expected")
    assert kept.drop("line").equals(expected.drop("line"))
    # Each has the number of its first line.
    lines = (folder / f"sample-sacct-{name}.txt").read_text().splitlines()
    assert all(job in lines[line - 1] for line, job in kept.select("line", "job_id_raw").rows())


def test_jobs_over_midnight_are_in_the_dump_of_each_day_and_count_once(folder, tmp_path):
    """The tool leaves steps that ended after midnight to the next day's dump. Here a job counts as it was last seen."""
    kept, _ = read(folder, "output-midnight-edge-case")
    small = pl.read_csv(folder / "sample-sacct-output-midnight-edge-case-small.txt", separator="|")
    expected = pl.read_csv(folder / "sample-sacct-output-midnight-edge-case-small-expected.txt", separator="|")
    same = kept.select(JobID="job_id_raw", State="state_raw").join(small, on=["JobID", "State"], how="semi")
    assert same.height == small.height
    left = small.join(expected, on=["JobID", "State"], how="anti")
    assert left["End"].str.starts_with("2021-04-08").all()
    assert set(left["JobID"].str.extract(r"\.(.*)")) == {"0"}
    file = folder / "sample-sacct-output-midnight-edge-case.txt"
    _, once, _ = study(file, folder=tmp_path / "one")
    _, twice, _ = study(file, file, folder=tmp_path / "two")
    assert once.height == kept.filter(~pl.col("job_id_raw").str.contains(".", literal=True))["job_id_raw"].n_unique()
    assert once.drop("file").equals(twice.drop("file"))


def test_a_dump_without_starts_is_refused_by_name(folder):
    with pytest.raises(StudyError, match="no column Start"):
        read(folder, "output-midnight-edge-case-small")


def test_jobs_whatever_bytes_stand_in_columns_that_are_not_read(folder, tmp_path):
    _, jobs, attempts = study(folder / "sample-sacct-output-invalid-utf8.txt", folder=tmp_path / "jobs")
    assert jobs.select("job_id", "outcome", "runtime_s").rows() == [
        ("3557891", "failure", 99),
        ("3557892", "failure", 7212),
    ]
    assert attempts["node_list"].to_list() == [["learnnode047"], ["learnnode036"]]
    account, steps, _ = study(folder / "sample-sacct-output.txt", folder=tmp_path / "steps")
    assert account["rows_kept"].item() == 68
    assert not steps.height
