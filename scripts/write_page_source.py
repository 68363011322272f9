"""Rule write_page_source: write the page of a trace as .qmd from templates, brief, numbers, tables and charts."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine import words
    from ttf.engine.storage.tables import read_table
    from ttf.page.report.published_studies import read_studies
    from ttf.page.report.source import open_page
    from ttf.page.report.tile_comparisons import compare_tiles
    from ttf.page.report_contracts import PUBLISHED_VALUES

    inputs, params = snakemake.input, snakemake.params
    page, _, _ = open_page(inputs, params)
    studies = read_studies(params.trace, Path(inputs.scorecard), Path(inputs.tables))
    published = read_table(inputs.published, PUBLISHED_VALUES)
    comparisons = compare_tiles(published, page.trace)
    source = Path(snakemake.output.source)
    text = page.qmd(studies, comparisons, params.significance, f"results/studies/{source.parents[2].name}")
    source.write_text(text, encoding="utf-8")
    return f"{words.count(len(text))} characters"


run_rule(main, snakemake)
