"""Pictures of the page for the README: docs/gallery/*.png, of the report of the embedded sample.

usage: gallery.py PAGE FOLDER   (make gallery; needs Chromium: make test-tools)
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

# Picture -> the element that this selector finds; without one, the first screen.
PICTURES = {
    "findings": None,
    "mttf_by_gpus": "#fig-t1-mttf-by-gpus",
    "planner": "#fig-t1-ettr-planner",
}


def main(page_file: Path, folder: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        sys.exit("error: chromium is not installed: make test-tools")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True, viewport={"width": 1440, "height": 900}).new_page()
        page.goto(page_file.resolve().as_uri())
        page.wait_for_function("charts.every(([id]) => document.querySelector(`#${id} svg`))")
        page.wait_for_timeout(500)
        for name, selector in PICTURES.items():
            shown = page.locator(selector).first if selector else page
            shown.screenshot(path=folder / f"{name}.png", animations="disabled", timeout=120_000)
            print(f"{folder / name}.png, {(folder / f'{name}.png').stat().st_size / 1000:.0f} kB")
        browser.close()


main(Path(sys.argv[1]), Path(sys.argv[2]))
