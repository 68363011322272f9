"""Rule bundle_vega: write the program that redraws a chart when a reader explores it, as text for the page."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> None:
    import sys
    from pathlib import Path

    from ttf.page.render.packing import chart_program, deflate

    text = deflate(chart_program(Path(sys.prefix, "share", "time-to-failure")))
    Path(snakemake.output.vega).write_text(text, encoding="ascii")


run_rule(main, snakemake)
