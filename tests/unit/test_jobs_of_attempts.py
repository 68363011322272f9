"""The job of an attempt is found by its place where attempts stand by jobs, and by its id where they do not."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ttf.inputs import Inputs
from ttf.jobs_of_attempts import in_blocks, with_jobs

TRIED = st.lists(st.integers(0, 3), max_size=12)


def made(tried: list[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Jobs with so many attempts each."""
    jobs = pl.DataFrame({"job_id": [f"j{number}" for number in range(len(tried))], "attempts": tried, "size": tried})
    attempts = jobs.select("job_id", attempt=pl.int_ranges("attempts")).explode("attempt", empty_as_null=False)
    return jobs, attempts


@settings(max_examples=30, deadline=None)
@given(TRIED, st.randoms(use_true_random=False))
def test_the_job_is_that_of_the_id(tried, random):
    jobs, attempts = made(tried)
    of_row = [row for row, tries in enumerate(tried) for _ in range(tries)]
    order = random.sample(range(attempts.height), attempts.height)
    assert with_jobs(jobs, attempts[order])["job"].to_list() == [of_row[place] for place in order]


def test_an_attempt_of_no_job_has_none_and_one_of_two_is_refused():
    jobs, attempts = made([1, 1])
    assert with_jobs(jobs[1:], attempts)["job"].to_list() == [None, 0]
    with pytest.raises(pl.exceptions.ComputeError):
        with_jobs(pl.concat([jobs, jobs]), attempts)


@settings(max_examples=30, deadline=None)
@given(TRIED, st.integers(1, 13), st.booleans())
def test_blocks_are_all_rows_each_job_with_its_attempts(tmp_path_factory, tried, size, is_reversed):
    folder, (jobs, attempts) = tmp_path_factory.mktemp("blocks"), made(tried)
    attempts = attempts.reverse() if is_reversed else attempts
    files = {"jobs": folder / "jobs.parquet", "attempts": folder / "attempts.parquet"}
    jobs.write_parquet(files["jobs"])
    attempts.write_parquet(files["attempts"])
    found = list(in_blocks(Inputs(files, {}, {}), ("job_id", "size"), ("job_id", "attempt"), size))
    assert pl.concat([some for some, _ in found]).equals(jobs.select("job_id", "size"))
    assert pl.concat([tries.drop("job") for _, tries in found]).equals(attempts)
    for some, tries in found:
        assert some["job_id"].gather(tries["job"]).to_list() == tries["job_id"].to_list()
    if not is_reversed:
        assert len(found) == max(-(-len(tried) // size), 1)
