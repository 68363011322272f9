"""The picture of the page in the README, docs/gallery/first-screen.png: the first screen of the study made last.

usage: gallery.py FOLDER [STUDY]   (make gallery; needs Chromium: make test-tools)
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("workflow", "scripts")]

from study.studies import STUDIES, chosen  # noqa: E402


def main(folder: Path, study: str = "") -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        sys.exit("error: chromium is not installed: make test-tools")
    folder.mkdir(parents=True, exist_ok=True)
    page_file, picture = STUDIES / chosen(study) / "report/index.html", folder / "first-screen.png"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True, viewport={"width": 1440, "height": 900}).new_page()
        page.goto(page_file.resolve().as_uri())
        page.screenshot(path=picture, animations="disabled", timeout=120_000)
        browser.close()
    print(f"{picture}, {picture.stat().st_size / 1000:.0f} kB")


main(Path(sys.argv[1]), *sys.argv[2:])
