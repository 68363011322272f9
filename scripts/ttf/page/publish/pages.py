"""The pages of the site as .qmd: those of the report, with the site's in their contents; files, tables and a search.

All have the template of the report, so that `quarto render` of the folder gives the site's pages.
"""

import re
from collections.abc import Iterable, Mapping
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import yaml

from ttf.page.publication_record import Publication
from ttf.page.render.packing import as_json
from ttf.page.report.blocks import raw
from ttf.page.report.citation import cited
from ttf.page.report.trace_page import Entry, Frame, data_of_scripts

MARK = "<!-- more pages -->"
OF_THE_SITE = {"files": "Files", "tables": "Tables and their columns", "search": "Search"}
_RAW = re.compile(r"^```\{=html\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_MARKS = re.compile(r"\[([^\]]*)\]\([^)]*\)|[*_`]|^:::+.*$|\[?@[\w-]+[^\]\s]*\]?", re.MULTILINE)
# What of a place in a page is searched.
LONGEST = 600


def sources(
    reports: Mapping[str, str],
    titles: Mapping[str, str],
    about: Publication,
    bodies: Mapping[str, str],
    macros: ModuleType,
) -> dict[str, str]:
    """File -> text of the project: the pages, the index of the search, and what Quarto is to know.

    reports: page -> .qmd of the report; titles: page -> its title; bodies: HTML of the pages `files` and `tables`.
    """
    texts = {}
    for page, text in reports.items():
        entries = [Entry(title, f"{name}.html") for name, title in OF_THE_SITE.items()]
        # The comparison of several traces is not on paper.
        if page != "index" or len(reports) == 1:
            entries.append(Entry("The report as a PDF", f"{'report' if page == 'index' else page}.pdf"))
        texts[f"{page}.qmd"] = text.replace(MARK, str(macros.more_pages("Site", entries)))
    for name, title in OF_THE_SITE.items():
        body = bodies.get(name) or str(macros.search())
        texts[f"{name}.qmd"] = _page(name, title, titles, about, body, macros)
    index = [entry for page, text in reports.items() for entry in found_in(text, page, titles[page])]
    texts["search-index.js"] = f"window.searchIndex = {as_json(index)};\n"
    project = {"project": {"type": "default", "output-dir": "_site", "resources": ["search-index.js"]}}
    texts["_quarto.yml"] = yaml.safe_dump(project, sort_keys=False)
    return texts


def _page(name: str, title: str, titles: Mapping[str, str], about: Publication, body: str, macros: ModuleType) -> str:
    frame = Frame(title, False, about.version, cited(about, about.title, "", "site"), numbers=False)
    frame.top = [{"anchor": "content", "title": title}]
    of_site = [Entry(text, f"{page}.html", current=page == name) for page, text in OF_THE_SITE.items()]
    frame.groups = [("Report", [Entry(text, f"{page}.html") for page, text in titles.items()]), ("Site", of_site)]
    html = f'{macros.opening(frame)}<section id="content"><h1>{title}</h1>\n{body}</section>{macros.closing(frame)}'
    html += data_of_scripts({}, frame.citation)
    return frame.front(f"{title}. {about.description}") + raw(html.replace(MARK, ""))


def found_in(qmd: str, page: str, trace: str) -> list[dict[str, str]]:
    """Places of a page of the report that can be found: its sections, headings, charts, tables and numbers."""
    places = _Places()
    for place, part in enumerate(_RAW.split(_FRONT.sub("", qmd))):
        if place % 2:
            places.feed(part)
        else:
            places.handle_data(_MARKS.sub(r"\1", unescape(re.sub(r"<[^>]*>", "", part))))
            for table in re.findall(r"\{#(table-[\w-]+)", part):
                places.begin(table)
    return [
        {"page": f"{page}.html", "trace": trace, "id": name, "text": " ".join(text.split())[:LONGEST]}
        for name, text in places.texts.items()
        if text.strip()
    ]


class _Places(HTMLParser):
    """id of a place -> its text; drawings, scripts and lists of contents are left out."""

    _LEFT_OUT = ("svg", "script", "style", "nav", "select", "form")

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self._at, self._out = "", 0

    def begin(self, name: str) -> None:
        self._at = name
        self.texts.setdefault(name, "")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._out += tag in self._LEFT_OUT
        name = dict(attrs).get("id")
        if name and tag in ("section", "details", "figure", "h3", "h4", "tr") and not self._out:
            self.begin(name)

    def handle_endtag(self, tag: str) -> None:
        self._out -= tag in self._LEFT_OUT

    def handle_data(self, data: str) -> None:
        if self._at and not self._out:
            self.texts[self._at] += f" {data}"


def write(texts: Mapping[str, str], beside: Iterable[Path], folder: Path) -> None:
    """The project in `folder`, with the files `beside`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for file in beside:
        (folder / file.name).write_bytes(file.read_bytes())
