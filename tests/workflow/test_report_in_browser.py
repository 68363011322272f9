"""The page in a real browser, offline: nothing asked of a network, no script error, every chart drawn, hostile
text inert."""

import json
import shutil
from contextlib import contextmanager

import pytest
from qmd_lint import faults, whole
from study_runs import pods, write_pods
from ttf.report.render import render_pdf
from ttf.stats.ettr import Plan, ettr_renewal, expected_interruptions, expected_wall_s, optimal_interval_s

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")

HOSTILE = [
    "<script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "</script><script>window.broken=1</script>",
    "\"'>&lt;b&gt;",
    "{{< include /etc/passwd >}}",
    "[link](javascript:window.broken=1)",
    "$x^2$ `code` **bold** @fig-t1-survival",
    "🔥‮gnp.exe",
    "datum.x); window.broken=1; (",
    "A" * 10_000,
]


LINKS_TO_NOTHING = """[...document.querySelectorAll('a[href^="#"]')].map((link) => link.hash.slice(1))
    .filter((id) => id && !document.getElementById(decodeURIComponent(id)))"""


def _stays(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))


@contextmanager
def opened(page_file, width=1300):
    """The page in Chromium without a network; gives (page, errors, requests that left the page)."""
    from playwright.sync_api import sync_playwright

    errors, left = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        page = browser.new_context(offline=True, viewport={"width": width, "height": 900}).new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and errors.append(message.text))
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


@pytest.mark.parametrize("width", [1300, 390], ids=["desktop", "phone"])
def test_page_is_drawn_offline(finished_study, width):
    with opened(finished_study.folder / "results/report/index.html", width) as (page, errors, left):
        assert errors == []
        assert left == []
        marks = marks_of_charts(page)
        assert len(marks) >= 18
        assert [chart for chart, count in marks.items() if count == 0] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert "synthetic sample" in page.inner_text("body").lower()
        text = page.inner_text("body")
        assert "@fig" not in text
        assert "{{" not in text
        assert page.evaluate(LINKS_TO_NOTHING) == []
        assert "Pandoc" in page.inner_text(".made-by") or "Quarto" in page.inner_text(".made-by")


def source_is_right_and_prints(study):
    """Nothing in the .qmd that Quarto would warn of, and a PDF of it without Quarto."""
    source, pdf = study.folder / "results/report/source", study.folder / "printed.pdf"
    assert faults(whole(source / "report.qmd")) == []
    charts = (study.folder / "results").glob("*/figures/*.svg")
    render_pdf(source, charts, pdf, study.folder / "report/pandoc.lua")
    assert pdf.read_bytes().startswith(b"%PDF-")


def test_source_is_right_for_quarto_and_prints(finished_study):
    source_is_right_and_prints(finished_study)


def test_numbers_on_the_page_are_those_of_the_tables(finished_study):
    metrics = json.loads((finished_study.folder / "results/sample/metrics.json").read_text())
    with opened(finished_study.folder / "results/report/index.html") as (page, _, _):
        text = page.inner_text("body")
    share = metrics["outcomes.failure_share"]["value"]
    assert f"{100 * share:.1f}\u00a0%" in text
    assert f"{metrics['outcomes.ended']['value']:,}" in text


PLANNER = "chart-t1-ettr-planner"
SIGNALS = ["rate", "interval_s", "write_s", "start_s", "queue_s", "work_s", "ettr", "interruptions", "wall_s", "best_s"]


def planned(page) -> dict[str, float]:
    return {name: page.evaluate(f"views['{PLANNER}'].signal('{name}')") for name in SIGNALS}


def test_planner_answers_its_sliders_as_python_does(finished_study):
    with opened(finished_study.folder / "results/report/index.html", 390) as (page, errors, _):
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


def test_hostile_text_from_a_trace_is_shown_as_text(checkout):
    lines = [line.replace("V100", HOSTILE[n % len(HOSTILE)].replace(",", ";")) for n, line in enumerate(pods(400))]
    config = write_pods(checkout, lines)
    config["registry"]["mine"] |= {
        "title": HOSTILE[0],
        "note": HOSTILE[2],
        "source": HOSTILE[5],
        "citation": HOSTILE[6],
    }
    checkout.snakemake(**config)
    with opened(checkout.folder / "results/report/index.html") as (page, errors, left):
        assert errors == []
        assert left == []
        assert page.evaluate("window.broken") is None
        text = page.inner_text("body")
        assert "<script>window.broken=1</script>" in text
        assert "[link](javascript:window.broken=1)" in text
        assert "root:" not in text
        assert page.evaluate("document.querySelectorAll('a[href^=\"javascript\"]').length") == 0
    source_is_right_and_prints(checkout)
