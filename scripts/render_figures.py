"""Rule render_figures: every chart of a trace, or of the comparison, as a picture."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.charts.picture import picture_of
    from ttf.fonts import hide_system_fonts

    hide_system_fonts()
    for svg in map(Path, snakemake.output.svgs):
        svg.write_text(picture_of(svg.with_suffix(".vl.json").read_text(encoding="utf-8")), encoding="utf-8")
    return f"{len(snakemake.output.svgs)} pictures"


run_rule(main, snakemake)
