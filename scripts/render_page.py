"""Rule render_page: render a page by Quarto if it is on the PATH, else by Pandoc."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.page.render.render import render

    page = Path(snakemake.output.page)
    renderer = render(Path(snakemake.input.source), page)
    return f"{page}, {page.stat().st_size / 1e6:.2f} MB, by {renderer}"


run_rule(main, snakemake)
