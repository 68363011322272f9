"""The page of a trace from the inputs and parameters of its rule, for the screen and for paper."""

from pathlib import Path
from types import SimpleNamespace

from ttf.analyses.catalogue import find_analysis_folders
from ttf.display.report_trace import Trace
from ttf.page.publication_record import Publication, describe
from ttf.page.report.citation import make_citation
from ttf.page.report.templates import environment
from ttf.page.report.trace_page import Entry, Frame, TracePage
from ttf.page.results_tables import load_all_contracts


def open_page(inputs: SimpleNamespace, params: SimpleNamespace) -> tuple[TracePage, Publication, Path]:
    """Return the page, its publication metadata, and the folder of the templates."""
    templates = Path(next(path for path in inputs.templates if path.endswith("blocks.html"))).parent
    folders = tuple(params.folders)
    jinja = environment(templates, {path.parent for path in find_analysis_folders(folders).values()})
    trace = Trace(params.trace, params.about, Path(inputs.metrics).parent, load_all_contracts(folders))
    cff = Path(inputs.citation).read_text(encoding="utf-8")
    publication = describe(cff, params.publish, {params.trace: params.about})
    pages = params.pages if len(params.pages) > 1 else {}
    # Short names, because titles of traces would fill the sidebar.
    page_links = [
        Entry(title if page == "index" else page, f"{page}.html", current=page == params.page)
        for page, title in pages.items()
    ]
    citation = make_citation(publication, trace.title, trace.brief.period, trace.name, not pages)
    frame = Frame(trace.title, trace.info["synthetic"], publication.version, citation, page_links)
    frame.pseudonyms = trace.info.get("pseudonyms", False)
    return TracePage(jinja, templates, trace, frame, folders), publication, templates
