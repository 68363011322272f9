"""The picture of the page in the README: docs/gallery/findings.png, the first screen of the simulated Slurm cluster.

usage: gallery.py PAGE FOLDER   (make gallery; needs Chromium: make test-tools)
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright


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
        picture = folder / "findings.png"
        page.screenshot(path=picture, animations="disabled", timeout=120_000)
        print(f"{picture}, {picture.stat().st_size / 1000:.0f} kB")
        browser.close()


main(Path(sys.argv[1]), Path(sys.argv[2]))
