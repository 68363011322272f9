"""Rule bundle_vega: the program that draws the charts in the page."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    import vl_convert

    Path(snakemake.output.vega).write_text(vl_convert.javascript_bundle(), encoding="utf-8")


run_rule(main, snakemake)
