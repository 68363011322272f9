"""Measure the page of the Slurm sample in a browser: size, first paint, and longest task while loading."""

import shutil
import statistics
from pathlib import Path

from clock import machine, measure_cost, report
from runs import command

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OBSERVED = """window.tasks = [];
new PerformanceObserver((seen) => window.tasks.push(...seen.getEntries().map((task) => task.duration)))
  .observe({type: "longtask", buffered: true});"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def compare(folder: Path, rounds: int) -> dict:
    """Return medians over the rounds; tasks below 50 ms, which no browser reports, count as 0."""
    if not CHROMIUM:
        raise SystemExit("chromium is not installed: make test-tools")
    folder.mkdir(parents=True, exist_ok=True)
    measure_cost([*command(), "--config", "study=[sample_slurm]"], folder)
    return measure_page(folder / "results/studies/sample_slurm/report/index.html", rounds) | {
        "machine": machine("playwright")
    }


def measure_page(page_file: Path, rounds: int) -> dict:
    from playwright.sync_api import sync_playwright

    paints, tasks = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(rounds):
            page = browser.new_context(offline=True, viewport={"width": 1440, "height": 900}).new_page()
            page.add_init_script(OBSERVED)
            page.goto(page_file.as_uri())
            page.wait_for_timeout(2_000)
            paints.append(page.evaluate(PAINT) / 1000)
            tasks.append(page.evaluate("Math.max(0, ...window.tasks)") / 1000)
            page.context.close()
        browser.close()
    report(f"first paint {statistics.median(paints):.2f} s, longest task {statistics.median(tasks):.2f} s")
    return {
        "megabytes": page_file.stat().st_size / 1e6,
        "first_paint_s": statistics.median(paints),
        "longest_task_s": statistics.median(tasks),
    }
