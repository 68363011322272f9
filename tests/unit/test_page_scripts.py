"""The page's scripts agree with Python: the planner, packed charts, and tables as CSV and ZIP."""

import csv
import io
import json
import random
import shutil
import zipfile
from pathlib import Path

import pytest
from scipy.stats import hypergeom
from ttf.page.render.packing import pack_charts
from ttf.stats.large_runs.ettr import (
    Plan,
    ettr_renewal,
    expected_interruptions,
    expected_scheduled_s,
    expected_wall_s,
    optimal_interval_s,
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")
SCRIPTS = sorted(Path(__file__).parents[2].glob("report/page/*.js"))

TABLE = """<table data-name="t"><thead><tr><th data-name="who">Who</th><th data-name="jobs">Jobs</th></tr></thead>
<tbody><tr><th scope="rowgroup" colspan="2">=HYPERLINK(1)</th></tr>
<tr><th scope="row">@you, "me"</th><td data-v="-1250.5">−1,250.5</td></tr>
<tr><th scope="row">b</th><td data-v="">–</td></tr>
<tr><th scope="row">c</th><td data-v="20">20</td></tr></tbody></table>"""
ALL_NUMBERS = """<table id="all-numbers"><thead><tr><th>Key</th></tr></thead><tbody><tr id="m:a.b" data-v="0.25">
<th scope="row">a.b</th><td>25%</td><td>share</td><td>1,200</td><td>tables/t.csv</td></tr></tbody></table>"""


@pytest.fixture(scope="module")
def page():
    """Open a page with one table, one number and all scripts."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        number = '<p data-file="a/b.qmd"><data data-key="a.b">25%</data></p>'
        fold = f'<details id="numbers"><summary>All numbers</summary>{ALL_NUMBERS}</details>'
        page.set_content(f"<!DOCTYPE html><title>Page</title><main>{number}{TABLE}{fold}</main>")
        page.add_script_tag(content="".join(script.read_text(encoding="utf-8") for script in SCRIPTS))
        yield page
        browser.close()
    assert errors == []


NAMES = ("rate", "interval", "write", "restart", "queue", "work")


def planner_results(page, plans: list[tuple[float, ...]]) -> list[dict[str, float]]:
    """Return the planner's results; infinity is null, as JSON cannot express it."""
    return page.evaluate(
        "(plans) => plans.map((plan) => ({...expectedTimes(plan), best: bestInterval(plan.rate, plan.write)}))",
        [dict(zip(NAMES, plan, strict=True)) for plan in plans],
    )


def test_the_planner_computes_the_same_as_python(page):
    rng = random.Random(16)
    decades = ((-10, -3), (1, 5), (0, 3), (0, 3), (3, 7))
    draws = [[10 ** rng.uniform(*ends) for ends in decades] for _ in range(100)]
    plans = [(*draw[:4], queue, draw[4]) for draw in draws for queue in (0.0, 7200.0, 8e5)]
    plans += [(0.0, 3600.0, 300.0, 0.0, 60.0, 7200.0), (1e-5, 3600.0, 0.0, 0.0, 0.0, 1800.0)]
    for plan, result in zip(plans, planner_results(page, plans), strict=True):
        python_plan = Plan(*plan)
        assert result["scheduled"] == pytest.approx(expected_scheduled_s(python_plan), rel=1e-9)
        assert result["wall"] == pytest.approx(expected_wall_s(python_plan), rel=1e-9)
        assert result["interruptions"] == pytest.approx(expected_interruptions(python_plan), rel=1e-9)
        assert result["ettr"] == pytest.approx(ettr_renewal(python_plan), rel=1e-9)
        assert result["best"] == pytest.approx(optimal_interval_s(plan[0], plan[2]), rel=1e-8)


def test_the_planner_gives_the_share_of_time_short_of_nodes(page):
    shares = [0.6, 0.2, 0.1, 0.0, 0.05, 0.05]
    runs = [(1, 0), (8, 0), (8, 2), (30, 3), (35, 5), (40, 0)]
    shortages = page.evaluate(
        "([shares, runs]) => runs.map(([nodes, spares]) => shortageShare(shares, 40, nodes, spares))", [shares, runs]
    )
    expected = [
        sum(share * hypergeom.sf(spares, 40, down, nodes + spares) for down, share in enumerate(shares))
        for nodes, spares in runs
    ]
    assert shortages == pytest.approx(expected, abs=1e-9)
    assert shortages[-1] == pytest.approx(0.4)
    assert page.evaluate("Number.isNaN(shortageShare([1], 40, 39, 2))")


def test_the_page_unpacks_a_packed_chart(page):
    rows = [{"x": n // 3, "s": "aaaaaaaaaa" if n % 2 else "b", "y": None if n == 4 else n} for n in range(12)]
    spec = {"mark": "line", "encoding": {"x": {"field": "x", "title": "Time since the start"}}, "datasets": {"d": rows}}
    chart = pack_charts({"p": spec})["p"]
    unpacked = page.evaluate("unpackSpec", chart)
    expected = spec | {
        "datasets": {"d": [{name: value for name, value in row.items() if value is not None} for row in rows]}
    }
    assert unpacked == expected


def test_a_csv_has_exact_values_and_no_formulas(page):
    rows = list(csv.reader(io.StringIO(page.evaluate("tableCsv(document.querySelector('table'))"))))
    assert rows == [
        ["group", "who", "jobs"],
        ["'=HYPERLINK(1)", '\'@you, "me"', "-1250.5"],
        ["'=HYPERLINK(1)", "b", ""],
        ["'=HYPERLINK(1)", "c", "20"],
    ]


def test_tables_sort_by_exact_values_and_restore_their_order(page):
    script = "[...document.querySelector('table').tBodies[0].rows].map((row) => row.cells[0].textContent)"
    button = page.locator("table[data-name] thead button").nth(1)
    orders = {}
    for order in ("ascending", "descending", None):
        button.click()
        assert page.locator("table[data-name] thead th").nth(1).get_attribute("aria-sort") == order
        orders[order] = page.evaluate(script)[1:]
    assert orders == {
        "ascending": ['@you, "me"', "c", "b"],
        "descending": ["c", '@you, "me"', "b"],
        None: ['@you, "me"', "b", "c"],
    }


def test_all_tables_are_saved_as_a_valid_zip(page):
    with page.expect_download() as download:
        page.evaluate("DO['all-tables']()")
    with zipfile.ZipFile(download.value.path()) as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == {"metrics.json", "tables/t.csv"}
        assert archive.read("tables/t.csv").decode() == page.evaluate("tableCsv(document.querySelector('table'))")
        numbers = json.loads(archive.read("metrics.json"))
    assert numbers == {"a.b": {"value": 0.25, "unit": "share", "n": 1200, "source": "tables/t.csv"}}
