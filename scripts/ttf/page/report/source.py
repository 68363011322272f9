"""The page of a trace from what its rules are given: the same for the screen and for paper."""

from pathlib import Path
from types import SimpleNamespace

from ttf.analyses.catalogue import places
from ttf.display.report_trace import Trace
from ttf.page.publication_record import Publication, describe
from ttf.page.report.citation import cited
from ttf.page.report.trace_page import Entry, Frame, TracePage, environment
from ttf.page.results_tables import contracts


def opened(given: SimpleNamespace, params: SimpleNamespace) -> tuple[TracePage, Publication, Path]:
    """The page, what is said of its publication, and the folder of the templates."""
    templates = Path(next(path for path in given.templates if path.endswith("blocks.html"))).parent
    folders = tuple(params.folders)
    jinja = environment(templates, {place.parent for place in places(folders).values()})
    trace = Trace(params.trace, params.about, Path(given.metrics).parent, contracts(folders))
    about = describe(Path(given.citation).read_text(encoding="utf-8"), params.publish, {params.trace: params.about})
    pages = params.pages if len(params.pages) > 1 else {}
    # By their short names: titles of traces fill the sidebar.
    others = [
        Entry(title if page == "index" else page, f"{page}.html", current=page == params.page)
        for page, title in pages.items()
    ]
    citation = cited(about, trace.title, trace.brief.period, trace.name)
    frame = Frame(trace.title, trace.about["synthetic"], about.version, citation, others)
    frame.pseudonyms = trace.about.get("pseudonyms", False)
    return TracePage(jinja, templates, trace, frame, folders), about, templates
