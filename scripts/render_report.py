"""Rule render_report: the one page, by Quarto where it is on the PATH, else by Pandoc."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.fonts import hide_system_fonts
    from ttf.report.render import render

    hide_system_fonts()
    page = Path(snakemake.output.page)
    renderer = render(
        Path(snakemake.input.report).parent, page, Path(snakemake.input.filter), Path(snakemake.input.style)
    )
    return f"{page}, {page.stat().st_size / 1e6:.1f} MB, by {renderer}"


run_rule(main, snakemake)
