"""Traces of jobs and of components in one study: a page for each and a comparison."""

import json
import re

import polars as pl
import pytest
from acceptance import CHROMIUM, browsing, faults, faults_of_other_page, open_page
from metric_cells import wrong_cells
from prose_checks import faults_of_page
from study_runs import PAGE, ROOT
from ttf.display.phrases import strip_markup
from ttf.display.trace_numbers import Numbers
from ttf.engine.storage.tables import read_table
from ttf.page.results_tables import load_all_contracts

TRACES = ("openb", "titan", "lanl", "eagle")


@pytest.mark.parametrize("trace", TRACES)
def test_every_number_is_the_cell_that_it_names(results, trace):
    assert wrong_cells(results / trace) == []


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


def test_the_readme_states_these_results(results):
    titan, openb = (Numbers(json.loads((results / name / "metrics.json").read_text())) for name in ("titan", "openb"))
    rows = [
        f"| {titan['durations.units']:,} GPUs, {titan['mttf.events']:,} failures | MTTF {titan.words('mttf.mttf_s')} "
        f"({strip_markup(titan.interval('mttf.mttf_s'))}), but the hazard is not constant: "
        f"{titan.words('lifetimes.young_mttf_s')} up to an age of {titan.words('lifetimes.split_age_s')}, "
        f"{titan.words('lifetimes.old_mttf_s')} after it |",
        f"| {openb['data.jobs']:,} pods, {openb['outcomes.ended']:,} with a result | "
        f"{openb.words('outcomes.failure_share')} of those failed, "
        f"half within {openb.words('outcomes.failure.runtime_median_s')}; ",
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for row in rows:
        assert row.replace("\u00a0", " ") in readme


def test_published_findings_on_titan_are_reproduced_and_absent_traces_not_run(results):
    scored = pl.read_csv(results / "studies/study/scorecard.csv", infer_schema_length=None)
    verdicts = {row["id"]: row["verdict"] for row in scored.iter_rows(named=True)}
    assert {verdicts[f"titan-{name}"] for name in ("gpus", "gpu-years", "failed")} == {"reproduced"}
    # A quantity that no trace can give is not computable, with a reason.
    absent = scored.filter(pl.col("trace") == "philly")
    assert set(absent["verdict"]) == {"not run", "not computable"}
    assert absent.filter(pl.col("verdict") == "not run").height > 100
    assert absent["computed"].null_count() == absent.height


def test_a_page_of_each_trace_and_a_comparison(results):
    pages = results / "studies/study/report"
    traces = {metrics.parent.name for metrics in results.glob("*/metrics.json")}
    assert {page.stem for page in pages.glob("*.html")} == {"index", *traces} > {*TRACES}
    text = re.sub(r"<(script|style)\b.*?</\1>", "", (pages / "index.html").read_text(), flags=re.DOTALL)
    assert all(f'href="{trace}.html"' in text for trace in traces)
    assert faults_of_page((pages / "index.html").read_text()) == []
    compared = pl.read_csv(results / "studies/study/comparison.csv", infer_schema_length=None)
    assert set(compared["trace"]) == traces


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")
def test_the_pages_are_accepted(results):
    with browsing() as browser:
        faults_by_page = {
            trace: faults(browser, results / f"studies/study/report/{trace}.html", results / trace, trace == "openb")
            for trace in TRACES
        }
        comparison = results / "studies/study/report/index.html"
        with open_page(browser, comparison) as (page, _):
            height = page.evaluate("document.documentElement.scrollHeight / innerHeight")
        faults_by_page["comparison"] = faults_of_other_page(browser, comparison) + (
            [f"{height:.1f} screens"] if height > 3 else []
        )
    assert {page: page_faults for page, page_faults in faults_by_page.items() if page_faults} == {}


def test_no_headline_on_a_projection_that_the_data_do_not_bear(results, finished_study):
    """User failures are only a proxy (openb, eagle, sample), or there is one size only (titan, lanl)."""
    pages = {results / trace: results / f"studies/study/report/{trace}.html" for trace in TRACES}
    pages[finished_study.folder / "results/sample"] = finished_study.folder / PAGE
    for trace, file in pages.items():
        brief = json.loads((trace / "brief.json").read_text())
        states = {tile["name"]: tile["state"] for tile in brief["tiles"]}
        assert states.get("ettr", "withheld") == "withheld"
        if "ettr" in states:
            assert states["mttf"] == "withheld"
        assert "ettr.estimate.wall_clock_ettr" in brief["withheld"]
        page = file.read_text()
        assert 'data-key="ettr.estimate' not in page
        assert not re.search(r"can expect [\d,.]+ interruptions", page)
        ettr = read_table(trace / "tables/ettr.csv", load_all_contracts()["ettr"])
        assert ettr.filter(pl.coalesce("gpus", "nodes") == 1024)["ettr_renewal"].null_count() == 3


def test_counts_in_the_caption_of_the_incidence_are_those_of_all_durations(results):
    """The counts do not depend on the steps that a thinned curve keeps."""
    for trace in ("openb", "eagle"):
        durations = pl.read_parquet(results / trace / "durations.parquet", columns=["event", "duration_s"])
        events = dict(durations.drop_nulls().group_by("event").len().iter_rows())
        caption = json.loads((results / trace / "figures/index.json").read_text())["cumulative_incidence"]["caption"]
        caption_counts = re.search(r"at risk: (.*?)\.", caption)[1]
        counts = {end: int(number.replace(",", "")) for end, number in re.findall(r"(\w+) ([\d,]*\d)", caption_counts)}
        assert counts == events


def test_all_rows_of_a_whole_trace_have_the_same_clusters(results):
    """Rates and means add weeks."""
    tables = ("mttf", "survival_summary", "survival_at", "lifetime_verdict", "cox", "node_failure_rate")
    for trace, expected in (("lanl", "system"), ("titan", "cabinet"), ("openb", "request profile")):
        cluster_units = set()
        for name in tables:
            rows = read_table(results / trace / f"tables/{name}.csv", load_all_contracts()[name])
            rows = rows.filter(stratum_by="all") if "stratum_by" in rows.columns else rows
            cluster_units |= {expected.removesuffix(" and week") for expected in rows["cluster_by"].drop_nulls()}
        assert cluster_units == {expected}
