"""Rule bundle_vega: the program that draws a chart anew when a reader explores it, as text for the page."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    import vl_convert
    from ttf.page.packing import deflated

    Path(snakemake.output.vega).write_text(deflated(vl_convert.javascript_bundle()), encoding="ascii")


run_rule(main, snakemake)
