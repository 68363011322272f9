"""The page in a real browser, offline: nothing asked of a network, no script error, every chart drawn, hostile
text inert."""

import importlib.util
import json
import math
import re
import shutil
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import hostile_trace
import polars as pl
import pytest
from hostile_trace import HOSTILE
from plan_inputs import a_rate
from qmd_lint import faults, whole
from study_runs import OWN, PAGE
from ttf.analyses.plan_ettr.compute import plan_tables
from ttf.report.render import render_pdf
from ttf.stats.ettr import Plan, ettr_renewal, expected_interruptions, expected_wall_s, optimal_interval_s
from ttf.stats.plans import Habits

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")

LINKS_TO_NOTHING = """[...document.querySelectorAll('a[href^="#"]')].map((link) => link.hash.slice(1))
    .filter((id) => id && !document.getElementById(decodeURIComponent(id)))"""


def _stays(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))


@contextmanager
def opened(page_file, width=1300, colours="light"):
    """The page in Chromium without a network; gives (page, errors and warnings, requests that left the page)."""
    from playwright.sync_api import sync_playwright

    errors, left = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        page = browser.new_context(
            offline=True, viewport={"width": width, "height": 900}, color_scheme=colours
        ).new_page()
        page.on("dialog", lambda dialog: errors.append(dialog.message) or dialog.dismiss())
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: message.type in ("error", "warning") and errors.append(message.text))
        page.on(
            "request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or left.append(request.url)
        )
        page.goto(page_file.as_uri())
        page.wait_for_function("charts.every(([id]) => document.querySelector(`#${id} svg`))")
        page.wait_for_timeout(300)
        yield page, errors, left
        browser.close()


def marks_of_charts(page) -> dict[str, int]:
    """How many marks each chart has drawn."""
    return page.evaluate(
        """Object.fromEntries([...document.querySelectorAll('.chart')].map((chart) => [chart.id,
           chart.querySelectorAll('svg [aria-roledescription$="mark container"] > *').length]))"""
    )


def too_wide(page, what: str) -> list[str]:
    """The boxes of this class that have to be scrolled sideways."""
    wide = "[...document.querySelectorAll(what)].filter((box) => box.scrollWidth > box.clientWidth + 1)"
    return page.evaluate(f"(what) => {wide}.map((box) => box.id)", what)


# What share of a table's room the heads of its rows take.
WIDEST_ROW_HEAD = """Math.max(...[...document.querySelectorAll('.great-table th[scope="row"]')]
    .map((head) => head.offsetWidth / head.closest('.great-table').clientWidth))"""

# Rules of axe-core on what can differ from row to row are asked of a few rows; a chart is one picture.
LESS_TO_CHECK = """document.querySelectorAll('svg.marks').forEach((svg) => svg.replaceChildren());
    document.querySelectorAll('.great-table tbody tr:nth-child(n+4)').forEach((row) => row.remove())"""


def violations(page, rules=None) -> list[str]:
    """What axe-core finds against the accessibility of the page, which loses rows by it."""
    package = Path(importlib.util.find_spec("axe_playwright_python").origin).parent
    page.evaluate((package / "axe.min.js").read_text(encoding="utf-8"))
    page.evaluate(LESS_TO_CHECK)
    found = page.evaluate("rules => axe.run(document, rules ? {runOnly: rules} : {})", rules)["violations"]
    return [f"{found['id']}: {node['html'][:200]}" for found in found for node in found["nodes"]]


@pytest.mark.parametrize(
    ("width", "colours", "rules"),
    [(1250, "light", None), (390, "dark", ["color-contrast", "scrollable-region-focusable", "target-size"])],
    ids=["desktop", "phone-dark"],
)
def test_page_is_drawn_offline(finished_study, tmp_path, width, colours, rules):
    with opened(finished_study.folder / PAGE, width, colours) as (page, errors, left):
        assert errors == []
        assert left == []
        marks = marks_of_charts(page)
        assert len(marks) >= 18
        assert [chart for chart, count in marks.items() if count == 0] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # Every chart fits; on a desktop so does every table.
        assert too_wide(page, ".chart" if width < 760 else ".chart, .great-table") == []
        assert page.evaluate(WIDEST_ROW_HEAD) < 0.6
        # The findings come first: all of them on the first screen of a desktop, their heading on that of a phone.
        end = page.locator("h1[id=sec-findings], #sec-findings > h1" if width < 760 else ".findings").bounding_box()
        assert end["y"] + end["height"] <= 844
        assert "synthetic sample" in page.inner_text("body").lower()
        text = page.inner_text("body")
        assert "@fig" not in text
        assert "{{" not in text
        assert page.evaluate(LINKS_TO_NOTHING) == []
        assert "Pandoc" in page.inner_text(".made-by") or "Quarto" in page.inner_text(".made-by")
        page.screenshot(path=tmp_path / "page.png")
        assert violations(page, rules) == []
        assert errors == []


def test_files_the_page_links_to_exist_and_can_be_reached_by_the_keyboard(finished_study):
    report = finished_study.folder / f"{OWN}/report"
    with opened(report / "index.html") as (page, _, _):
        links = page.evaluate("[...document.querySelectorAll('a[href]')].map((link) => link.getAttribute('href'))")
        tables = page.evaluate("document.querySelectorAll('.great-table').length")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip-link"
        # Nothing lies over it.
        assert (
            page.evaluate(
                "(({x, y, width, height}) => document.elementFromPoint(x + width / 2, y + height / 2).className)"
                "(document.activeElement.getBoundingClientRect())"
            )
            == "skip-link"
        )
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash") == page.locator(".skip-link").get_attribute("href")
        page.keyboard.press("Tab")
        focused = "document.activeElement.matches('a[href], button, summary, input, [tabindex]')"
        assert page.evaluate(focused)
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    files = [link for link in links if not re.match(r"[a-z]+:|#", link)]
    assert len(files) >= tables > 20
    assert [file for file in files if not (report / file).is_file()] == []


def test_print_shows_the_whole_tables(finished_study, tmp_path):
    with opened(finished_study.folder / PAGE, 760) as (page, errors, left):
        page.emulate_media(media="print")
        clipped = (
            "[...document.querySelectorAll('.great-table')].filter((box) => box.scrollWidth > box.clientWidth + 1)"
        )
        assert page.evaluate(f"{clipped}.map((box) => box.id)") == []
        assert not page.locator("nav#TOC").is_visible()
        # Charts are drawn for a page of paper, not for a phone as wide; no number is broken.
        assert not page.evaluate("narrow.matches")
        numbers = "[...document.querySelectorAll('.great-table td:not(.l, .w)')]"
        assert page.evaluate(f"{numbers}.every((cell) => getComputedStyle(cell).whiteSpace === 'nowrap')")
        page.pdf(path=tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").stat().st_size > 100_000
        assert errors == left == []


STRATA = {"All": "all", "GPU type": "gpu_type", "Number of GPUs": "gpu_count"}


def test_tables_are_sorted_by_their_headings(finished_study):
    with opened(finished_study.folder / PAGE, 390) as (page, errors, _):
        table = page.locator("#tbl-t1-mttf table")
        heading = table.locator("thead th").nth(4)  # mean time to failure, in minutes to years
        rows = "table => [...table.tBodies].map((body) => [...body.rows].map((row) => row.cells[0].textContent))"
        before = table.evaluate(rows)
        groups = [group[0] for group in before]
        truth = pl.read_csv(finished_study.folder / "results/sample/tables/mttf.csv", infer_schema_length=None).filter(
            (pl.col("confidence") == 0.95) & (pl.col("event") == "failure")
        )
        orders = {}
        for order in ("ascending", "descending", None):
            heading.locator("button").press("Enter")
            assert heading.get_attribute("aria-sort") == order
            orders[order] = table.evaluate(rows)
            assert [group[0] for group in orders[order]] == groups
        assert orders[None] == before
        for order in ("ascending", "descending"):
            for group, *shown in orders[order]:
                times = dict(truth.filter(stratum_by=STRATA[group]).select("stratum", "mttf_s").iter_rows())
                values = [round(times[stratum], -1) for stratum in shown if times[stratum] is not None]
                # Three digits are shown: times that look the same stay as they were.
                wrong = [
                    pair
                    for pair in pairwise(values)
                    if (pair[0] - pair[1]) * (1 if order == "ascending" else -1) > 0.01 * pair[0]
                ]
                assert wrong == [], group
        assert errors == []


def printed(study, pdf: Path, own: str = OWN) -> bytes:
    """The report on paper, by Pandoc and Typst; own: the folder of the study."""
    charts = (study.folder / "results").glob("*/figures/*.svg")
    render_pdf(study.folder / own / "report/source", charts, pdf, study.folder / "report/pandoc.lua")
    return pdf.read_bytes()


def test_source_is_right_for_quarto_and_prints(finished_study, tmp_path):
    assert faults(whole(finished_study.folder / f"{OWN}/report/source/report.qmd")) == []
    assert printed(finished_study, tmp_path / "report.pdf").startswith(b"%PDF-")


def test_numbers_on_the_page_are_those_of_the_tables(finished_study):
    metrics = json.loads((finished_study.folder / "results/sample/metrics.json").read_text())
    with opened(finished_study.folder / PAGE) as (page, _, _):
        text = page.inner_text("body")
    share = metrics["outcomes.failure_share"]["value"]
    assert f"{100 * share:.1f}\u00a0%" in text
    assert f"{metrics['outcomes.ended']['value']:,}" in text


PLANNER = "chart-t1-ettr-planner"
SIGNALS = ["rate", "interval_s", "write_s", "start_s", "queue_s", "work_s", "ettr", "interruptions", "wall_s", "best_s"]


def planned(page) -> dict[str, float]:
    return {name: page.evaluate(f"views['{PLANNER}'].signal('{name}')") for name in SIGNALS}


def test_planner_answers_its_sliders_as_python_does(finished_study):
    with opened(finished_study.folder / PAGE, 390) as (page, errors, _):
        before = planned(page)
        for slider, value, words in (("log_size", 14, "16,384"), ("work_days", 3, "3 days"), ("write_s", 30, "30 s")):
            page.locator(f"#{PLANNER} input[name={slider}]").fill(str(value))
            page.wait_for_function(
                f"document.querySelector('#{PLANNER} input[name={slider}] ~ output').textContent === '{words}'"
            )
        after = planned(page)
        shown = " ".join(page.locator(f"#{PLANNER} svg text").all_text_contents())
        assert errors == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        sliders = page.locator(f"#{PLANNER} .vega-bindings").bounding_box()
        assert sliders["x"] >= 0 and sliders["x"] + sliders["width"] <= 390
    assert after["ettr"] < before["ettr"]
    for found in (before, after):
        plan = Plan(*(found[name] for name in SIGNALS[:6]))
        assert found["ettr"] == pytest.approx(ettr_renewal(plan), rel=1e-9)
        assert found["interruptions"] == pytest.approx(expected_interruptions(plan), rel=1e-9)
        assert found["wall_s"] == pytest.approx(expected_wall_s(plan), rel=1e-9)
        assert found["best_s"] == pytest.approx(optimal_interval_s(plan.failures_per_s, plan.write_s), rel=1e-8)
    assert f"{100 * after['ettr']:.1f} %" in shown
    assert "16,384 GPUs on" in shown


def test_planner_agrees_with_the_table(finished_study):
    """At the sizes, intervals and waits of an ettr.csv, with the published rate at which it starts.

    This trace has no rate of its own that a run could be planned with.
    """
    settings = [Habits(interval, 300, 300, wait, 1_209_600) for interval in (3600, 300) for wait in (0, 7200)]
    table, _ = plan_tables(a_rate(6.5e-3, 5e-3, 8e-3, 8), settings, [8, 64, 1024, 16_384], 2, 1)
    table = table.filter(rate="estimate")
    rows = table.select("gpus", "checkpoint_interval_s", "queue_s", "ettr_renewal").rows()
    points = [[math.log2(gpus), math.log10(interval / 60), queue / 60] for gpus, interval, queue, _ in rows]
    with opened(finished_study.folder / PAGE) as (page, errors, _):
        assert page.evaluate(f"views['{PLANNER}'].signal('per_1000')") == pytest.approx(6.5)
        planned = page.evaluate(
            f"""async (points) => {{
              const view = views['{PLANNER}'], found = [];
              for (const [size, interval, queue] of points) {{
                view.signal('log_size', size).signal('log_interval', interval).signal('queue_min', queue);
                await view.runAsync();
                found.push(view.signal('ettr'));
              }}
              return found;
            }}""",
            points,
        )
        assert errors == []
    assert planned == pytest.approx([row[-1] for row in rows], abs=1e-6)


# Rows of all charts as they are drawn, and what they say.
TEXTS_OF_CHARTS = """charts.flatMap(([id, spec]) => Object.values(unpacked(spec).datasets))
    .flat().flatMap(Object.values).filter((value) => typeof value === 'string')"""
# Tables of the page that name users and accounts, GPU types, nodes and reasons, and how many of HOSTILE at the least.
NAMED_IN = {"owners": 8, "percentiles": 5, "lemons": 1, "unmatched": 1}


def test_hostile_text_from_a_trace_is_shown_as_text(checkout, tmp_path):
    hostile_trace.write(checkout.folder / "raw/dumps")
    about = {"title": HOSTILE[0], "note": HOSTILE[2], "source": HOSTILE[5], "citation": HOSTILE[6]}
    own = {"format": "sacct", "folder": "raw/dumps", "health_events": "raw/health_events.csv"}
    checkout.snakemake(one_process=True, study=["mine"], registry={"mine": own | about})
    owners = pl.read_csv(checkout.folder / "results/mine/tables/failures_by_owner.csv", infer_schema_length=None)
    assert set(HOSTILE) <= set(owners["owner"])
    own = "results/studies/mine"
    with opened(checkout.folder / own / "report/index.html") as (page, errors, left):
        assert errors == left == []
        assert page.evaluate("window.broken") is None
        text = page.inner_text("body")
        assert "[link](javascript:window.broken=1)" in text
        assert "root:" not in text
        for table, least in NAMED_IN.items():
            shown = " ".join(page.locator(f"#tbl-t1-{table} tbody").all_text_contents())
            assert sum(name[:20] in shown for name in HOSTILE) >= least, (table, shown)
        assert page.evaluate("document.querySelectorAll('a[href^=\"javascript\"]').length") == 0
        assert page.locator("img").count() == 0
        # Whatever a name is like, an axis, a tooltip and a cell show a line of it.
        assert max(map(len, page.evaluate(TEXTS_OF_CHARTS))) < 250
        assert max(map(len, page.locator("svg.marks text:not(:has(tspan)), svg.marks tspan").all_text_contents())) < 150
        assert max(map(len, page.locator(".great-table :is(td, th)").all_text_contents())) < 450
        page.locator("#chart-t1-mttf-by-gpu-type g.mark-symbol path").first.hover()
        assert 0 < len(page.locator("#vg-tooltip-element").inner_text()) < 400
        assert errors == []
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults(whole(checkout.folder / own / "report/source/report.qmd")) == []
    assert printed(checkout, tmp_path / "report.pdf", own).startswith(b"%PDF-")
