"""Take a picture of the page for the README: the first screen of a study, by default of the most recent one.

usage: gallery.py FOLDER [STUDY [NAME]]   (make gallery; needs Chromium: make test-tools)

Writes NAME.png, by default first-screen.png. NAME.txt has the words of the contents and the overview; a test compares
those of first-screen.txt with the current page. It also has the SHA-256 of the picture, so that the test notices if
only one of the two is replaced. The README's picture of a real trace: ttf report --trace lanl, then in the same folder
gallery.py docs/gallery lanl lanl.
"""

import hashlib
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from ttf.study.studies import STUDIES, choose_study

WORDS = "[...document.querySelectorAll('nav.sidebar, #overview')].map((part) => part.innerText).join('\\n')"


def first_screen(browser: Browser, page_file: Path) -> tuple[bytes, str]:
    """Return the first screen of the page as PNG and as text, one line per piece of text."""
    page = browser.new_context(offline=True, viewport={"width": 1440, "height": 900}).new_page()
    page.goto(page_file.resolve().as_uri())
    lines = [" ".join(line.split()) for line in page.evaluate(WORDS).splitlines()]
    return page.screenshot(animations="disabled", timeout=120_000), "\n".join(filter(None, lines))


def with_picture(words: str, picture: bytes, name: str = "first-screen") -> str:
    """Return the content of NAME.txt."""
    return f"{words}\n{name}.png: SHA-256 {hashlib.sha256(picture).hexdigest()}\n"


def main(folder: Path, study: str = "", name: str = "first-screen") -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        sys.exit("error: chromium is not installed: make test-tools")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        picture, words = first_screen(browser, STUDIES / choose_study(study) / "report/index.html")
        browser.close()
    (folder / f"{name}.png").write_bytes(picture)
    (folder / f"{name}.txt").write_text(with_picture(words, picture, name), encoding="utf-8")
    print(f"{folder}/{name}.png, {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
