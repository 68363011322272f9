"""Rule write_page_source: write the page of a trace as .qmd from templates, brief, numbers, tables and charts."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine import words
    from ttf.page.report.scorecard_section import read_findings
    from ttf.page.report.source import open_page

    inputs, params = snakemake.input, snakemake.params
    page, _, _ = open_page(inputs, params)
    scorecard = read_findings(params.trace, Path(inputs.scorecard), Path(inputs.implied))
    source = Path(snakemake.output.source)
    text = page.qmd(scorecard, params.significance, f"results/studies/{source.parents[2].name}")
    source.write_text(text, encoding="utf-8")
    return f"{words.count(len(text))} characters"


run_rule(main, snakemake)
