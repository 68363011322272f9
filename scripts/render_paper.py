"""Rule render_paper: print the page of a trace as PDF."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    import shutil
    import tempfile
    from pathlib import Path

    from ttf.page.report.paper import write_pdf
    from ttf.page.report.source import open_page

    page, record, templates = open_page(snakemake.input, snakemake.params)
    product = Path(snakemake.output.pdf)
    unfinished = product.with_suffix(".half")
    with tempfile.TemporaryDirectory() as work:
        shutil.copyfile(write_pdf(page, record, templates, Path(work)), unfinished)
    unfinished.replace(product)
    return f"{product}, {product.stat().st_size / 1e6:.2f} MB"


run_rule(main, snakemake)
