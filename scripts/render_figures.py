"""Rule render_figures: every chart of a trace, or of the comparison, as a picture."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    import vl_convert

    # In this order, in this one process: the ids of clip paths count up with every chart.
    for svg in map(Path, snakemake.output.svgs):
        spec = svg.with_suffix(".vl.json").read_text(encoding="utf-8")
        # No chart may load anything, so no address is allowed.
        svg.write_text(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]) + "\n", encoding="utf-8")
    return f"{len(snakemake.output.svgs)} pictures"


run_rule(main, snakemake)
