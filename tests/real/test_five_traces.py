"""Five traces at once, of jobs and of components, in one report with a section that compares them."""

import json
import re

import polars as pl
import pytest
from prose import faults_of_page
from study_runs import check_out, pages_of_several
from ttf.brief.model import WITHHELD, read_brief
from ttf.report.said import plain
from ttf.rooms import contracts
from ttf.tables import read_table

TRACES = ("sample", "openb", "titan", "lanl", "eagle")


@pytest.fixture(scope="module")
def results(tmp_path_factory, shared_data):
    study = check_out(tmp_path_factory.mktemp("five") / "checkout")
    folders = {name: {"folder": str(shared_data / name)} for name in ("openb", "titan", "lanl", "eagle")}
    folders["openb"]["windows"] = {"by": "month"}
    sample = {"sample": {"generate": {"tasks": 2000}}}
    # Curves are cut short, as those of large traces are.
    cut = {"survival": {"max_steps": 40}}
    pages = pages_of_several(["sample", *folders])
    study.snakemake("--", *pages, one_process=True, study=["sample", *folders], registry=sample | folders, **cut)
    return study.folder / "results"


def test_known_answers(results):
    def failures(trace):
        mttf = pl.read_csv(results / trace / "tables/mttf.csv", infer_schema_length=None)
        overall = (pl.col("event") == "failure") & (pl.col("stratum_by") == "all") & (pl.col("confidence") == 0.95)
        return mttf.filter(overall).select("n", "events").row(0)

    assert failures("titan") == (30_207, 5_089)
    assert failures("openb") == (7_255, 1_870)
    assert failures("eagle") == (1_000, 15)
    outages = pl.read_csv(results / "lanl/quality/row_account.csv")
    assert outages.rows() == [("outages", 23_739, 23_739, 0)]
    eagle = pl.read_csv(results / "eagle/tables/outcomes.csv")
    assert dict(eagle.select("outcome", "jobs").iter_rows()) == {"success": 985, "failure": 15}


def test_published_findings_on_titan_are_reproduced_and_absent_traces_not_run(results):
    scored = pl.read_csv(results / "studies/study/scorecard.csv", infer_schema_length=None)
    verdicts = {row["id"]: row["verdict"] for row in scored.iter_rows(named=True)}
    assert {verdicts[f"titan-{name}"] for name in ("gpus", "gpu-years", "failed")} == {"reproduced"}
    # Where even the whole trace would not tell, that is said, and why.
    absent = scored.filter(pl.col("trace") == "pai2020")
    assert set(absent["verdict"]) == {"not run", "not computable"}
    assert absent.filter(pl.col("verdict") == "not run").height > 100
    assert absent["computed"].null_count() == absent.height


def test_component_traces_have_no_job_tables(results):
    for trace in ("titan", "lanl"):
        assert not (results / trace / "jobs.parquet").exists()
        assert not (results / trace / "tables/outcomes.csv").exists()


def test_a_page_for_each_and_one_that_compares_them(results):
    report = results / "studies/study/report"
    assert {page.stem for page in report.glob("*.html")} == {"index", *TRACES}
    texts = {page.stem: page.read_text() for page in report.glob("*.html")}
    assert all(len(text) < 1_600_000 for text in texts.values())
    assert {page: faults_of_page(text) for page, text in texts.items()} == {page: [] for page in texts}
    assert all(f'href="{trace}.html"' in texts["index"] for trace in TRACES)
    assert "synthetic" in texts["index"]
    compared = pl.read_csv(results / "studies/study/comparison/mttf.csv", infer_schema_length=None)
    assert set(compared["trace"]) == {*TRACES}


def test_no_headline_on_a_projection_that_the_data_do_not_bear(results):
    """Failures of users stand for those of machines (openb, eagle, sample); components (titan, lanl) have no runs."""
    for trace in TRACES:
        brief = read_brief(results / trace / "brief.json")
        states = {tile.name: tile.state for tile in brief.tiles}
        if trace in ("titan", "lanl"):
            assert "ettr" not in states
        else:
            assert states["mttf"] == states["ettr"] == WITHHELD
            assert "cannot be estimated" in brief.bottom_line[1]
            assert {"ettr.mttf_s", "ettr.estimate.ettr"} <= brief.withheld.keys()
        ettr = read_table(results / trace / "tables/ettr.csv", contracts()["ettr"])
        assert ettr.filter(pl.coalesce("gpus", "nodes") == 1024)["ettr_renewal"].null_count() == 3


def test_counts_in_the_caption_of_the_incidence_are_those_of_all_lives(results):
    """They were sums over the steps that a thinned curve keeps."""
    for trace in ("sample", "openb", "eagle"):
        lives = pl.read_parquet(results / trace / "lives.parquet", columns=["event", "duration_s"])
        ended = dict(lives.drop_nulls().group_by("event").len().iter_rows())
        caption = json.loads((results / trace / "figures/index.json").read_text())["cumulative_incidence"]["caption"]
        told = re.search(r"at risk: (.*?)\. ", caption)[1]
        counts = {end: int(number.replace(",", "")) for end, number in re.findall(r"(\w+) ([\d,]*\d)", told)}
        assert counts == ended


def test_time_limits_are_told_where_failures_are_counted(results):
    """All 15 failures of Eagle's sample are runs into their time limit."""
    assert "15 jobs that reached a time limit" in plain(
        read_brief(results / "eagle/brief.json").tile("failure_rate").means
    )


def test_drift_between_months(results):
    drift = pl.read_csv(results / "openb/tables/drift.csv", infer_schema_length=None)
    assert drift.height > 0
    assert drift["p_value"].drop_nulls().is_between(0, 1).all()
