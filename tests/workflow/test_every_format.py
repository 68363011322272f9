"""A trace of every format that no real data are at hand for, from raw tables to one page."""

import polars as pl
import pytest
from made_traces import JOBS, WRITERS, write_all
from of_formats import MADE_UP, RUNS
from prose import faults_of_page
from study_runs import check_out, pages_of_several


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    study = check_out(tmp_path_factory.mktemp("formats") / "checkout")
    registry = write_all(study.folder / "raw")
    pages = pages_of_several(registry)
    return study, study.snakemake("--", *pages, one_process=True, study=list(registry), registry=registry)


def test_pages_without_a_warning_or_a_number_that_is_none(run):
    study, done = run
    assert "Warning" not in done.stdout + done.stderr
    compared, *pages = (
        (study.folder / path).read_text() for path in pages_of_several(f"made_{name}" for name in WRITERS)
    )
    assert [faults_of_page(page) for page in (compared, *pages)] == [[]] * (1 + len(pages))
    for name in WRITERS:
        assert f'href="made_{name}.html"' in compared


@pytest.mark.parametrize("name", WRITERS)
def test_every_job_is_in_the_tables(run, name):
    results = run[0].folder / f"results/made_{name}"
    assert pl.read_csv(results / "tables/outcomes.csv")["jobs"].sum() == JOBS
    jobs = pl.read_parquet(results / "jobs.parquet")
    lives = pl.read_parquet(results / "lives.parquet")
    assert jobs.height == lives.height == JOBS
    infra = pl.read_parquet(results / "lives_infra.parquet")
    attempts = results / "attempts.parquet"
    assert infra.height == (pl.read_parquet(attempts).height if attempts.is_file() else JOBS)


def test_a_requeued_job_hides_no_node_failure(run):
    results = run[0].folder / "results/made_sacct"
    infra = pl.read_parquet(results / "lives_infra.parquet")
    jobs = pl.read_parquet(results / "jobs.parquet")
    failed = infra.filter(pl.col("event") == "infra_failure")
    assert failed.height > 10
    ended = jobs.filter(pl.col("job_id").is_in(failed["unit_id"].implode()))["outcome"]
    assert set(ended) == {"success"}


def test_one_more_file_makes_a_format(run):
    """Nothing else in the checkout knows of it."""
    study, _ = run
    (study.folder / "scripts/ttf/formats/made_up.yaml").write_text(MADE_UP)
    (study.folder / "runs").mkdir()
    (study.folder / "runs/runs.csv").write_text(RUNS)
    product = "results/mine/tables/outcomes.csv"
    registry = {"mine": {"format": "made_up", "folder": "runs"}}
    study.snakemake("--", product, one_process=True, study=["mine"], registry=registry)
    counted = dict(pl.read_csv(study.folder / product).select("outcome", "jobs").iter_rows())
    assert {outcome: jobs for outcome, jobs in counted.items() if jobs} == {
        "success": 1,
        "failure": 1,
        "waiting": 1,
        "unknown": 1,
    }
