"""The scripts of the page reckon as Python does: the planner, what charts are packed in, tables as CSV and as ZIP."""

import csv
import io
import json
import math
import random
import shutil
import zipfile
from pathlib import Path

import polars as pl
import pytest
from plan_inputs import a_rate
from scipy.stats import hypergeom
from ttf.analyses.large_runs.plan_ettr.compute import plan_tables
from ttf.page.render.packing import packed
from ttf.stats.large_runs.ettr import (
    Plan,
    ettr_renewal,
    expected_interruptions,
    expected_scheduled_s,
    expected_wall_s,
    optimal_interval_s,
)
from ttf.stats.large_runs.plans import Habits

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
    """An empty page with one table and one number, and all scripts; what they define can be asked for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        number = '<p><data data-key="a.b">25%</data></p>'
        fold = f'<details id="numbers"><summary>All numbers</summary>{ALL_NUMBERS}</details>'
        page.set_content(f"<!DOCTYPE html><title>Page</title><main>{number}{TABLE}{fold}</main>")
        page.add_script_tag(content="".join(script.read_text(encoding="utf-8") for script in SCRIPTS))
        yield page
        browser.close()
    assert errors == []


NAMES = ("rate", "interval", "write", "restart", "queue", "work")


def reckoned(page, plans: list[tuple[float, ...]]) -> list[dict[str, float]]:
    """What the planner says of runs; JSON has no infinity, so that stands as null."""
    return page.evaluate(
        "(plans) => plans.map((plan) => ({...expectedTimes(plan), best: bestInterval(plan.rate, plan.write)}))",
        [dict(zip(NAMES, plan, strict=True)) for plan in plans],
    )


def test_the_planner_reckons_as_python_does(page):
    draw = random.Random(16)

    def log_uniform(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    plans = [
        (
            log_uniform(1e-10, 1e-3),
            log_uniform(10, 1e5),
            log_uniform(1, 1e3),
            log_uniform(1, 1e3),
            queue,
            log_uniform(1e3, 1e7),
        )
        for queue in (0.0, 7200.0, 8e5)
        for _ in range(100)
    ] + [(0.0, 3600.0, 300.0, 0.0, 60.0, 7200.0), (1e-5, 3600.0, 0.0, 0.0, 0.0, 1800.0)]
    for plan, found in zip(plans, reckoned(page, plans), strict=True):
        right = Plan(*plan)
        assert found["scheduled"] == pytest.approx(expected_scheduled_s(right), rel=1e-9)
        assert found["wall"] == pytest.approx(expected_wall_s(right), rel=1e-9)
        assert found["interruptions"] == pytest.approx(expected_interruptions(right), rel=1e-9)
        assert found["ettr"] == pytest.approx(ettr_renewal(right), rel=1e-9)
        assert found["best"] == pytest.approx(optimal_interval_s(plan[0], plan[2]), rel=1e-8)


def test_the_planner_agrees_with_the_table_of_ettr(page):
    settings = [Habits(interval, 300, 300, wait, 1_209_600) for interval in (3600, 300) for wait in (0, 7200)]
    table, _ = plan_tables(a_rate(6.5e-3, 5e-3, 8e-3, 8), settings, [8, 64, 1024, 16_384], 2, 1)
    columns = ("checkpoint_interval_s", "checkpoint_write_s", "restart_s", "queue_s", "productive_s")
    plans = table.select(pl.col("failure_rate_per_node_day") * pl.col("nodes") / 86_400, *columns).rows()
    assert [found["ettr"] for found in reckoned(page, plans)] == pytest.approx(
        table["ettr_renewal"].to_list(), rel=1e-9
    )


def test_the_planner_says_how_long_a_run_is_short_of_nodes(page):
    shares = [0.6, 0.2, 0.1, 0.0, 0.05, 0.05]
    asked = [(1, 0), (8, 0), (8, 2), (30, 3), (35, 5), (40, 0)]
    found = page.evaluate(
        "([shares, asked]) => asked.map(([nodes, spares]) => shortageShare(shares, 40, nodes, spares))", [shares, asked]
    )
    right = [
        sum(share * hypergeom.sf(spares, 40, down, nodes + spares) for down, share in enumerate(shares))
        for nodes, spares in asked
    ]
    assert found == pytest.approx(right, abs=1e-9)
    assert found[-1] == pytest.approx(0.4)
    assert page.evaluate("Number.isNaN(shortageShare([1], 40, 39, 2))")
    form = """<form data-units="40" data-down="[0.5, 0.5]" data-node-gpus="8">
    <input type="number" name="gpus"><input type="number" name="spares"></form>"""
    told = page.evaluate(
        """(form) => [["48", "0"], ["320", "1"], ["", "0"], ["41", "0"]].map(([gpus, spares]) => {
            const node = document.createElement("div");
            node.innerHTML = form;
            const [first, second] = node.querySelectorAll("input");
            [first.value, second.value] = [gpus, spares];
            return shortageText(node.firstChild);
        })""",
        form,
    )
    assert told == ["7.5%", "–", "–", "7.5%"]


def test_what_is_packed_comes_back_in_the_page(page):
    rows = [{"x": n // 3, "s": "aaaaaaaaaa" if n % 2 else "b", "y": None if n == 4 else n} for n in range(12)]
    spec = {"mark": "line", "encoding": {"x": {"field": "x", "title": "Time since the start"}}, "datasets": {"d": rows}}
    small = packed({"p": spec})["p"]
    back = page.evaluate("unpackSpec", small)
    whole = spec | {
        "datasets": {"d": [{name: value for name, value in row.items() if value is not None} for row in rows]}
    }
    assert back == whole


def test_a_table_is_saved_exactly_and_no_text_is_a_formula(page):
    found = list(csv.reader(io.StringIO(page.evaluate("tableCsv(document.querySelector('table'))"))))
    assert found == [
        ["group", "who", "jobs"],
        ["'=HYPERLINK(1)", '\'@you, "me"', "-1250.5"],
        ["'=HYPERLINK(1)", "b", ""],
        ["'=HYPERLINK(1)", "c", "20"],
    ]


def test_sorting_goes_by_the_exact_values_and_back(page):
    shown = "[...document.querySelector('table').tBodies[0].rows].map((row) => row.cells[0].textContent)"
    button = page.locator("table[data-name] thead button").nth(1)
    orders = {}
    for order in ("ascending", "descending", None):
        button.click()
        assert page.locator("table[data-name] thead th").nth(1).get_attribute("aria-sort") == order
        orders[order] = page.evaluate(shown)[1:]
    assert orders == {
        "ascending": ['@you, "me"', "c", "b"],
        "descending": ["c", '@you, "me"', "b"],
        None: ['@you, "me"', "b", "c"],
    }


def test_all_tables_are_a_zip_that_others_can_read(page):
    with page.expect_download() as download:
        page.evaluate("DO['all-tables']()")
    with zipfile.ZipFile(download.value.path()) as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == {"metrics.json", "tables/t.csv"}
        assert archive.read("tables/t.csv").decode() == page.evaluate("tableCsv(document.querySelector('table'))")
        numbers = json.loads(archive.read("metrics.json"))
    assert numbers == {"a.b": {"value": 0.25, "unit": "share", "n": 1200, "source": "tables/t.csv"}}


def test_the_card_of_a_number_works_by_the_keyboard(page):
    page.wait_for_selector("data[data-key][tabindex]")
    card = page.locator(".number-card")
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()")
    page.locator("data[data-key]").focus()
    page.keyboard.press("Enter")
    assert card.locator("dd").all_text_contents() == ["a.b", "0.25", "1,200", "tables/t.csv"]
    assert page.evaluate("document.activeElement.textContent") == "Copy value"
    page.keyboard.press("Escape")
    assert not card.is_visible()
    assert page.evaluate("document.activeElement.dataset.key") == "a.b"


def test_an_address_opens_the_fold_that_it_lies_in(page):
    row = page.locator("[id='m:a.b']")
    assert not row.is_visible()
    page.evaluate("openAddress('#m:a.b')")
    assert row.is_visible()
