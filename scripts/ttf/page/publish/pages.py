"""The pages of the site as .qmd: the report with links to the site's pages, and the pages files, tables and search.

All use the template of the report, so `quarto render` of the folder gives the pages of the site.
"""

import re
from collections.abc import Iterable, Mapping
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import yaml

from ttf.page.publication_record import Publication
from ttf.page.render.packing import to_json
from ttf.page.report.blocks import raw_block
from ttf.page.report.citation import make_citation
from ttf.page.report.trace_page import Entry, Frame, embed_script_data

MARK = "<!-- more pages -->"
SITE_PAGES = {"files": "Files", "tables": "Tables and their columns", "search": "Search"}
_RAW = re.compile(r"^```\{=html\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_MARKS = re.compile(r"\[([^\]]*)\]\([^)]*\)|[*_`]|^:::+.*$|\[?@[\w-]+[^\]\s]*\]?", re.MULTILINE)
# Characters of a searchable place that the index keeps.
LONGEST = 600


def sources(
    reports: Mapping[str, str],
    titles: Mapping[str, str],
    publication: Publication,
    bodies: Mapping[str, str],
    macros: ModuleType,
) -> dict[str, str]:
    """Return file -> text of the project: the pages, the search index, and the settings of Quarto.

    reports: page -> .qmd of the report; titles: page -> its title; bodies: HTML of the pages `files` and `tables`.
    """
    texts = {}
    for page, text in reports.items():
        entries = [Entry(title, f"{name}.html") for name, title in SITE_PAGES.items()]
        # The comparison of several traces has no PDF.
        if page != "index" or len(reports) == 1:
            entries.append(Entry("The report as a PDF", f"{'report' if page == 'index' else page}.pdf"))
        texts[f"{page}.qmd"] = text.replace(MARK, str(macros.more_pages("Site", entries)))
    for name, title in SITE_PAGES.items():
        body = bodies.get(name) or str(macros.search())
        texts[f"{name}.qmd"] = _build_page(name, title, titles, publication, body, macros)
    index = [entry for page, text in reports.items() for entry in index_page(text, page, titles[page])]
    texts["search-index.js"] = f"window.searchIndex = {to_json(index)};\n"
    project = {"project": {"type": "default", "output-dir": "_site", "resources": ["search-index.js"]}}
    texts["_quarto.yml"] = yaml.safe_dump(project, sort_keys=False)
    return texts


def _build_page(
    name: str, title: str, titles: Mapping[str, str], publication: Publication, body: str, macros: ModuleType
) -> str:
    frame = Frame(
        title, False, publication.version, make_citation(publication, publication.title, "", "site"), numbers=False
    )
    frame.top = [{"anchor": "content", "title": title}]
    site_entries = [Entry(text, f"{page}.html", current=page == name) for page, text in SITE_PAGES.items()]
    frame.groups = [("Report", [Entry(text, f"{page}.html") for page, text in titles.items()]), ("Site", site_entries)]
    html = f'{macros.opening(frame)}<section id="content"><h1>{title}</h1>\n{body}</section>{macros.closing(frame)}'
    html += embed_script_data({}, frame.citation)
    return frame.front(f"{title}. {publication.description}") + raw_block(html.replace(MARK, ""))


def index_page(qmd: str, page: str, trace: str) -> list[dict[str, str]]:
    """Return the search index of a report page: its sections, headings, charts, tables and numbers."""
    place_texts = _PlaceTexts()
    for index, part in enumerate(_RAW.split(_FRONT.sub("", qmd))):
        if index % 2:
            place_texts.feed(part)
        else:
            place_texts.handle_data(_MARKS.sub(r"\1", unescape(re.sub(r"<[^>]*>", "", part))))
            for table in re.findall(r"\{#(table-[\w-]+)", part):
                place_texts.begin_place(table)
    return [
        {"page": f"{page}.html", "trace": trace, "id": name, "text": " ".join(text.split())[:LONGEST]}
        for name, text in place_texts.texts.items()
        if text.strip()
    ]


class _PlaceTexts(HTMLParser):
    """Collects id of a place -> its text, without drawings, scripts and lists of contents."""

    _SKIPPED_TAGS = ("svg", "script", "style", "nav", "select", "form")

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self._place_id, self._skip_depth = "", 0

    def begin_place(self, name: str) -> None:
        self._place_id = name
        self.texts.setdefault(name, "")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skip_depth += tag in self._SKIPPED_TAGS
        name = dict(attrs).get("id")
        if name and tag in ("section", "details", "figure", "h3", "h4", "tr") and not self._skip_depth:
            self.begin_place(name)

    def handle_endtag(self, tag: str) -> None:
        self._skip_depth -= tag in self._SKIPPED_TAGS

    def handle_data(self, data: str) -> None:
        if self._place_id and not self._skip_depth:
            self.texts[self._place_id] += f" {data}"


def write(texts: Mapping[str, str], extra_files: Iterable[Path], folder: Path) -> None:
    """Write the project and its extra files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for file in extra_files:
        (folder / file.name).write_bytes(file.read_bytes())
