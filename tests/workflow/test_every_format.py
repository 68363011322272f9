"""Traces of every format without real test data, from raw tables to the page."""

import polars as pl
import pytest
import whole_study
from format_tables import MADE_UP, RUNS
from made_traces import JOBS, WRITERS, write_all
from prose_checks import faults_of_page
from study_runs import pages_of_several


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a study of all these traces, which ends without a warning."""
    folder = tmp_path_factory.mktemp("formats")
    registry = write_all(folder / "raw")
    result = whole_study.run({"study": [*registry], "registry": registry}, folder)
    assert (result.job, result.refused, result.crash, result.warned) == (None, None, None, [])
    return folder


def test_pages_without_a_number_that_is_none(folder):
    compared, *pages = ((folder / path).read_text() for path in pages_of_several(f"made_{name}" for name in WRITERS))
    assert [faults_of_page(page) for page in (compared, *pages)] == [[]] * (1 + len(pages))
    for name in WRITERS:
        assert f'href="made_{name}.html"' in compared


@pytest.mark.parametrize("name", WRITERS)
def test_every_job_is_in_the_tables(folder, name):
    results = folder / f"results/made_{name}"
    assert pl.read_csv(results / "tables/outcomes.csv")["jobs"].sum() == JOBS
    jobs = pl.read_parquet(results / "jobs.parquet")
    durations = pl.read_parquet(results / "durations.parquet")
    assert jobs.height == durations.height == JOBS
    infra = pl.read_parquet(results / "durations_infra.parquet")
    attempts = results / "attempts.parquet"
    assert infra.height == (pl.read_parquet(attempts).height if attempts.is_file() else JOBS)


def test_a_requeued_job_hides_no_node_failure(folder):
    results = folder / "results/made_sacct"
    infra = pl.read_parquet(results / "durations_infra.parquet")
    jobs = pl.read_parquet(results / "jobs.parquet")
    failed = infra.filter(pl.col("event") == "infra_failure")
    assert failed.height > 10
    outcomes = jobs.filter(pl.col("job_id").is_in(failed["unit_id"].implode()))["outcome"]
    assert set(outcomes) == {"success"}


def test_one_more_file_makes_a_format(checkout):
    """No other file of the checkout mentions the format."""
    (checkout.folder / "scripts/ttf/formats/made_up.yaml").write_text(MADE_UP)
    (checkout.folder / "runs").mkdir()
    (checkout.folder / "runs/runs.csv").write_text(RUNS)
    product = "results/mine/tables/outcomes.csv"
    registry = {"mine": {"format": "made_up", "folder": "runs"}}
    checkout.snakemake("--", product, one_process=True, study=["mine"], registry=registry)
    counted = dict(pl.read_csv(checkout.folder / product).select("outcome", "jobs").iter_rows())
    assert {outcome: jobs for outcome, jobs in counted.items() if jobs} == {
        "success": 1,
        "failure": 1,
        "waiting": 1,
        "unknown": 1,
    }
