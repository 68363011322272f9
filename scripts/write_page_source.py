"""Rule write_page_source: the page of a trace as .qmd, from templates, brief, numbers, tables and charts."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.publish.about import describe
    from ttf.report import words
    from ttf.report.citation import cited
    from ttf.report.page import Entry, Frame, TracePage, environment
    from ttf.report.scorecard import scored_of
    from ttf.report.trace import Trace
    from ttf.rooms import contracts, places

    given, params = snakemake.input, snakemake.params
    templates = Path(next(path for path in given.templates if path.endswith("blocks.html"))).parent
    folders = tuple(params.folders)
    jinja = environment(templates, {place.parent for place in places(folders).values()})
    trace = Trace(params.trace, params.about, Path(given.metrics).parent, contracts(folders))
    about = describe(Path(given.citation).read_text(encoding="utf-8"), params.publish, {params.trace: params.about})
    citation = cited(about, trace.title, trace.brief.period, trace.name)
    pages = params.pages if len(params.pages) > 1 else {}
    others = [Entry(title, f"{page}.html", current=page == params.page) for page, title in pages.items()]
    frame = Frame(trace.title, trace.about["synthetic"], about.version, citation, others)
    page = TracePage(jinja, templates, trace, frame, folders)
    scored = scored_of(trace.name, Path(given.scorecard), Path(given.implied))
    text = page.qmd(scored, params.significance, home=params.home)
    Path(snakemake.output.source).write_text(text, encoding="utf-8")
    return f"{words.count(len(text))} characters"


run_rule(main, snakemake)
