"""Rule write_comparison_source: write the page that compares the traces of the study, as .qmd."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.analyses.catalogue import find_analysis_folders
    from ttf.display.report_trace import Trace
    from ttf.engine import words
    from ttf.page.publication_record import describe
    from ttf.page.report.citation import make_citation
    from ttf.page.report.comparison import comparison_page
    from ttf.page.report.trace_page import Entry, Frame, environment
    from ttf.page.results_tables import load_all_contracts

    inputs, params = snakemake.input, snakemake.params
    templates = Path(next(path for path in inputs.templates if path.endswith("blocks.html"))).parent
    folders = tuple(params.folders)
    jinja = environment(templates, {path.parent for path in find_analysis_folders(folders).values()})
    # Each subject's products lie in a folder of its name.
    metrics = [file for file in map(Path, inputs.products) if file.name == "metrics.json"]
    folder_by_subject = {file.parent.name: file.parent for file in metrics}
    tables = load_all_contracts(folders)
    traces = [Trace(name, record, folder_by_subject[name], tables) for name, record in params.about.items()]
    compared = Trace("comparison", {}, folder_by_subject["comparison"], tables)
    record = describe(Path(inputs.citation).read_text(encoding="utf-8"), params.publish, params.about)
    title = f"Comparison of {words.count(len(traces))} traces"
    entries = [Entry(name, f"{page}.html", current=page == "index") for page, name in params.pages.items()]
    frame = Frame(title, False, record.version, make_citation(record, title, "", "comparison"), entries, numbers=False)
    hrefs = {name: f"{page}.html" for name, page in params.page_by_trace.items()}
    text = comparison_page(jinja, templates, traces, hrefs, compared, frame)
    Path(snakemake.output.source).write_text(text, encoding="utf-8")
    return f"{words.count(len(text))} characters"


run_rule(main, snakemake)
