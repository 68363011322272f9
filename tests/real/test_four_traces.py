"""Four traces at once, of jobs and of components: a page of each and one that compares them."""

import json
import re
import shutil

import polars as pl
import pytest
import whole_study
from acceptance import CHROMIUM, browsing, faults, faults_of_other_page, opened
from named_cells import wrong_cells
from prefixes import cut
from prose import faults_of_page
from study_runs import PAGE
from ttf.engine.storage.tables import read_table
from ttf.page.results_tables import contracts

TRACES = ("openb", "titan", "lanl", "eagle")
LANL_ROWS = 4_000


@pytest.fixture(scope="module")
def results(tmp_path_factory, shared_data):
    folder = tmp_path_factory.mktemp("four")
    registry = {name: {"folder": str(shared_data / name)} for name in TRACES}
    registry["openb"]["windows"] = {"by": "month"}
    # The first systems: tests/real/test_lanl.py has all of them.
    registry["lanl"]["folder"] = str(shutil.copytree(shared_data / "lanl", folder / "lanl"))
    for file in (folder / "lanl").glob("*.csv"):
        cut(file, LANL_ROWS)
    # Curves are cut short, as those of large traces are.
    config = {"study": list(TRACES), "registry": registry, "survival": {"max_steps": 40}}
    done = whole_study.run(config, folder)
    assert (done.job, done.refused, done.crash, done.warned) == (None, None, None, [])
    return folder / "results"


@pytest.mark.parametrize("trace", [*TRACES, "comparison"])
def test_every_number_is_the_cell_that_it_names(results, trace):
    assert wrong_cells(results / ("studies/study/comparison" if trace == "comparison" else trace)) == []


def test_known_answers(results):
    def failures(trace):
        mttf = pl.read_csv(results / trace / "tables/mttf.csv", infer_schema_length=None)
        overall = (pl.col("event") == "failure") & (pl.col("stratum_by") == "all") & (pl.col("confidence") == 0.95)
        return mttf.filter(overall).select("n", "events").row(0)

    assert failures("titan") == (30_207, 5_089)
    assert failures("openb") == (7_255, 1_870)
    assert failures("eagle") == (1_000, 15)
    outages = pl.read_csv(results / "lanl/quality/row_account.csv")
    assert outages.rows() == [("outages", LANL_ROWS, LANL_ROWS, 0)]
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


def test_a_page_of_each_trace_and_a_comparison(results):
    pages = results / "studies/study/report"
    assert {page.stem for page in pages.glob("*.html")} == {"index", *TRACES}
    text = re.sub(r"<(script|style)\b.*?</\1>", "", (pages / "index.html").read_text(), flags=re.DOTALL)
    assert all(f'href="{trace}.html"' in text for trace in TRACES)
    assert faults_of_page((pages / "index.html").read_text()) == []
    compared = pl.read_csv(results / "studies/study/comparison/mttf.csv", infer_schema_length=None)
    assert set(compared["trace"]) == set(TRACES)


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")
def test_the_pages_are_accepted(results):
    with browsing() as browser:
        found = {
            trace: faults(browser, results / f"studies/study/report/{trace}.html", results / trace, trace == "openb")
            for trace in TRACES
        }
        comparison = results / "studies/study/report/index.html"
        with opened(browser, comparison) as (page, _):
            height = page.evaluate("document.documentElement.scrollHeight / innerHeight")
        found["comparison"] = faults_of_other_page(browser, comparison) + (
            [f"{height:.1f} screens"] if height > 3 else []
        )
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


def test_no_headline_on_a_projection_that_the_data_do_not_bear(results, finished_study):
    """Failures of users stand for those of machines (openb, eagle, sample), or lives have one size (titan, lanl)."""
    pages = {results / trace: results / f"studies/study/report/{trace}.html" for trace in TRACES}
    pages[finished_study.folder / "results/sample"] = finished_study.folder / PAGE
    for trace, file in pages.items():
        brief = json.loads((trace / "brief.json").read_text())
        states = {tile["name"]: tile["state"] for tile in brief["tiles"]}
        assert states.get("ettr", "withheld") == "withheld"
        if "ettr" in states:
            assert states["mttf"] == "withheld"
        assert "ettr.estimate.ettr" in brief["withheld"]
        page = file.read_text()
        assert 'data-key="ettr.estimate' not in page
        assert not re.search(r"can expect [\d,.]+ interruptions", page)
        ettr = read_table(trace / "tables/ettr.csv", contracts()["ettr"])
        assert ettr.filter(pl.coalesce("gpus", "nodes") == 1024)["ettr_renewal"].null_count() == 3


def test_counts_in_the_caption_of_the_incidence_are_those_of_all_lives(results):
    """They were sums over the steps that a thinned curve keeps."""
    for trace in ("openb", "eagle"):
        lives = pl.read_parquet(results / trace / "lives.parquet", columns=["event", "duration_s"])
        ended = dict(lives.drop_nulls().group_by("event").len().iter_rows())
        caption = json.loads((results / trace / "figures/index.json").read_text())["cumulative_incidence"]["caption"]
        told = re.search(r"at risk: (.*?)\.", caption)[1]
        counts = {end: int(number.replace(",", "")) for end, number in re.findall(r"(\w+) ([\d,]*\d)", told)}
        assert counts == ended


def test_time_limits_are_told_where_failures_are_counted(results):
    """All 15 failures of Eagle's sample are runs into their time limit."""
    tiles = json.loads((results / "eagle/brief.json").read_text())["tiles"]
    assert re.search(
        r"15.* reached a time limit", next(tile["means"] for tile in tiles if tile["name"] == "failure_rate")
    )


def test_drift_between_months(results):
    drift = pl.read_csv(results / "openb/tables/drift.csv", infer_schema_length=None)
    assert drift.height > 0
    assert drift["p_value"].drop_nulls().is_between(0, 1).all()


def test_all_that_is_said_of_a_whole_trace_is_clustered_by_one_thing(results):
    """Of LANL's systems there is one here, so its nodes are what differs; rates and means allow for weeks beside."""
    tables = ("mttf", "survival_summary", "survival_at", "lifetime_verdict", "cox", "node_failure_rate")
    for trace, by in (("lanl", "node"), ("titan", "cabinet"), ("openb", "request profile")):
        clustered_by = set()
        for name in tables:
            rows = read_table(results / trace / f"tables/{name}.csv", contracts()[name])
            rows = rows.filter(stratum_by="all") if "stratum_by" in rows.columns else rows
            clustered_by |= {by.removesuffix(" and week") for by in rows["cluster_by"].drop_nulls()}
        assert clustered_by == {by}
