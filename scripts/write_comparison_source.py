"""Rule write_comparison_source: the page that compares the traces of the study as .qmd."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.analyses.catalogue import places
    from ttf.display.report_trace import Trace
    from ttf.engine import words
    from ttf.page.publication_record import describe
    from ttf.page.report.citation import cited
    from ttf.page.report.comparison import comparison_page
    from ttf.page.report.trace_page import Entry, Frame, environment
    from ttf.page.results_tables import contracts

    given, params = snakemake.input, snakemake.params
    templates = Path(next(path for path in given.templates if path.endswith("blocks.html"))).parent
    folders = tuple(params.folders)
    jinja = environment(templates, {place.parent for place in places(folders).values()})
    # Each subject's products lie in a folder of its name.
    homes = {file.parent.name: file.parent for file in map(Path, given.products) if file.name == "metrics.json"}
    tables = contracts(folders)
    traces = [Trace(name, about, homes[name], tables) for name, about in params.about.items()]
    compared = Trace("comparison", {}, homes["comparison"], tables)
    about = describe(Path(given.citation).read_text(encoding="utf-8"), params.publish, params.about)
    title = f"Comparison of {words.count(len(traces))} traces"
    others = [Entry(name, f"{page}.html", current=page == "index") for page, name in params.pages.items()]
    frame = Frame(title, False, about.version, cited(about, title, "", "comparison"), others, numbers=False)
    hrefs = {name: f"{page}.html" for name, page in params.page_by_trace.items()}
    text = comparison_page(jinja, templates, traces, hrefs, compared, frame)
    Path(snakemake.output.source).write_text(text, encoding="utf-8")
    return f"{words.count(len(text))} characters"


run_rule(main, snakemake)
