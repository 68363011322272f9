"""The pages of the site as .qmd: the report with links to the site's pages, and the pages files and tables.

All use the template of the report, so `quarto render` of the folder gives the pages of the site.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

import yaml

from ttf.page.publication_record import Publication
from ttf.page.report.blocks import raw_block
from ttf.page.report.citation import make_citation
from ttf.page.report.trace_page import Entry, Frame, embed_script_data

MARK = "<!-- more pages -->"
SITE_PAGES = {"files": "Files", "tables": "Tables and their columns"}


def sources(
    reports: Mapping[str, str],
    titles: Mapping[str, str],
    publication: Publication,
    bodies: Mapping[str, str],
    macros: ModuleType,
) -> dict[str, str]:
    """Return file -> text of the project: the pages, and the settings of Quarto.

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
        texts[f"{name}.qmd"] = _build_page(name, title, titles, publication, bodies[name], macros)
    texts["_quarto.yml"] = yaml.safe_dump({"project": {"type": "default", "output-dir": "_site"}}, sort_keys=False)
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


def write(texts: Mapping[str, str], extra_files: Iterable[Path], folder: Path) -> None:
    """Write the project and its extra files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for file in extra_files:
        (folder / file.name).write_bytes(file.read_bytes())
