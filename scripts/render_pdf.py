"""Rule render_pdf: the report on paper, from the same source as the page."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.fonts import hide_system_fonts
    from ttf.report.render import render_pdf

    hide_system_fonts()
    pdf, files = Path(snakemake.output.pdf), snakemake.input
    renderer = render_pdf(Path(files.report).parent, map(Path, files.charts), pdf, Path(files.filter))
    return f"{pdf}, {pdf.stat().st_size / 1e6:.1f} MB, by {renderer}"


run_rule(main, snakemake)
