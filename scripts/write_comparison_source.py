"""Rule write_comparison_source: compare the traces of the study, in a table and in the page as .qmd."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.display.report_trace import Trace
    from ttf.engine import words
    from ttf.engine.storage.tables import write_product
    from ttf.page.publication_record import describe
    from ttf.page.report.citation import make_citation
    from ttf.page.report.comparison import comparison_page, comparison_rows
    from ttf.page.report.trace_page import Entry, Frame
    from ttf.page.report_contracts import COMPARISON

    inputs, params, output = snakemake.input, snakemake.params, snakemake.output
    # In the order of the metrics.
    folders = [Path(file).parent for file in inputs.metrics]
    described = zip(params.about.items(), folders, strict=True)
    traces = [Trace(name, record, folder, {}) for (name, record), folder in described]
    rows = write_product(COMPARISON.frame(comparison_rows(traces)), COMPARISON, output.table)
    record = describe(Path(inputs.citation).read_text(encoding="utf-8"), params.publish, params.about)
    title = f"Comparison of {words.count(len(traces))} traces"
    entries = [Entry(name, f"{page}.html", current=page == "index") for page, name in params.pages.items()]
    frame = Frame(title, False, record.version, make_citation(record, title, "", "comparison"), entries, numbers=False)
    hrefs = {name: f"{page}.html" for name, page in params.page_by_trace.items()}
    templates = Path(inputs.templates[0]).parent
    Path(output.source).write_text(comparison_page(templates, traces, hrefs, frame), encoding="utf-8")
    return words.plural(rows, "row")


run_rule(main, snakemake)
