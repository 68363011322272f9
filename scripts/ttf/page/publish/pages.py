"""The pages of the site as .qmd: the report with links to the site's page of files, and that page."""

from collections.abc import Mapping
from types import ModuleType

from ttf.page.publication_record import Publication
from ttf.page.report.blocks import raw_block
from ttf.page.report.citation import make_citation
from ttf.page.report.trace_page import Entry, Frame, embed_script_data

MARK = "<!-- more pages -->"
FILES, FILES_TITLE = "files", "Files"


def sources(
    reports: Mapping[str, str],
    titles: Mapping[str, str],
    publication: Publication,
    files_body: str,
    macros: ModuleType,
) -> dict[str, str]:
    """Return page -> its .qmd. reports: page -> .qmd of the report; titles: page -> its title."""
    texts = {}
    for page, text in reports.items():
        entries = [Entry(FILES_TITLE, f"{FILES}.html")]
        # The comparison of several traces has no PDF.
        if page != "index" or len(reports) == 1:
            entries.append(Entry("The report as a PDF", f"{'report' if page == 'index' else page}.pdf"))
        texts[page] = text.replace(MARK, str(macros.more_pages("Site", entries)))
    return texts | {FILES: _build_files_page(titles, publication, files_body, macros)}


def _build_files_page(titles: Mapping[str, str], publication: Publication, body: str, macros: ModuleType) -> str:
    citation = make_citation(publication, publication.title, "", "site")
    frame = Frame(FILES_TITLE, False, publication.version, citation, numbers=False)
    frame.top = [{"anchor": "content", "title": FILES_TITLE}]
    site_entries = [Entry(FILES_TITLE, f"{FILES}.html", current=True)]
    frame.groups = [("Report", [Entry(text, f"{page}.html") for page, text in titles.items()]), ("Site", site_entries)]
    section = f'<section id="content"><h1>{FILES_TITLE}</h1>\n{body}</section>'
    html = f"{macros.opening(frame)}{section}{macros.closing(frame)}"
    html += embed_script_data({}, frame.citation)
    return frame.front(f"{FILES_TITLE}. {publication.description}") + raw_block(html.replace(MARK, ""))
