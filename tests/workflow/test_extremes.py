"""One study of extreme traces: tables state reasons, and pages are accepted in Chromium."""

import acceptance
import extreme_traces
import polars as pl
import pytest
import whole_study
from acceptance import CHROMIUM, faults, open_page
from hostile_trace import HOSTILE
from prose_checks import faults_of_page
from study_runs import tables_without_sense

needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")


@pytest.fixture(scope="module")
def extremes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extremes")
    registry = extreme_traces.write_all(folder / "raw")
    result = whole_study.run({"study": [*registry], "registry": registry}, folder)
    assert (result.job, result.refused, result.crash, result.warned) == (None, None, None, [])
    return folder / "results"


@pytest.mark.parametrize("name", extreme_traces.NAMES)
def test_tables_contain_no_nan_or_infinity(extremes, name):
    assert tables_without_sense(extremes / name) == []


# A hostile name can itself break a clause, so this page is excluded.
@pytest.mark.parametrize("page", ["index", *extreme_traces.TABLES])
def test_pages_have_no_slip(extremes, page):
    assert faults_of_page((extremes / f"studies/study/report/{page}.html").read_text()) == []


def test_what_cannot_be_computed_has_a_reason(extremes):
    mttf = pl.read_csv(extremes / "no_failure/tables/mttf.csv")
    assert mttf["mttf_s"].null_count() == mttf.height
    assert mttf["ci_low_s"].null_count() == 0
    constant = pl.read_csv(extremes / "no_gpu/tables/correlations.csv").filter(feature="gpu_request")
    assert constant["estimate"].null_count() == constant.height
    assert constant["reason"].null_count() == 0


@needs_chromium
@pytest.mark.parametrize("name", extreme_traces.NAMES)
def test_every_page_is_accepted(extremes, browser, name):
    page = extremes / f"studies/study/report/{name}.html"
    page_faults = faults(browser, page, extremes / name, axe=name == "one_job")
    # A hostile name can itself break a clause.
    assert [fault for fault in page_faults if not (fault.startswith("a clause") and "window.broken" in fault)] == []


@needs_chromium
def test_hostile_text_from_a_trace_is_shown_as_text(extremes, browser):
    owners = pl.read_csv(extremes / "hostile/tables/failures_by_owner.csv", infer_schema_length=None)
    assert set(HOSTILE) <= set(owners["owner"])
    with open_page(browser, extremes / "studies/study/report/hostile.html") as (page, faults_on_page):
        page.evaluate(acceptance.OPEN_ALL, True)
        assert page.evaluate("window.broken") is None
        text = page.inner_text("body")
        assert sum(name[:20] in text for name in HOSTILE) >= 8
        assert "root:" not in text
        assert page.evaluate("document.querySelectorAll('a[href^=\"javascript\"], img, iframe, object').length") == 0
        # Labels, cells and lines of contents truncate long names.
        longest = "(what) => Math.max(0, ...[...document.querySelectorAll(what)].map((one) => one.textContent.length))"
        assert page.evaluate(longest, "svg text:not(:has(tspan)), svg tspan") < 150
        assert page.evaluate(longest, "bdi") <= 200
        assert page.evaluate(longest, "main :is(td, th)") < 450
        # Characters that change the reading direction are isolated in the name's element.
        assert page.evaluate(
            "[...document.querySelectorAll('td, th, dd')].every((one) => !/[\\u202a-\\u202e]/.test(one.textContent)"
            " || one.querySelector('bdi'))"
        )
        page.locator("[data-do=explore]").first.click()
        page.wait_for_selector(".drawing.live svg")
        assert page.evaluate("window.broken") is None
        # Vega warns of channels that a layer's mark does not use.
        assert [fault for fault in faults_on_page if "WARN" not in fault] == []
