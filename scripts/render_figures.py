"""Rule render_figures: every chart of a trace, or of the comparison, as a picture."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    import vl_convert

    # In this order, in this one process: the ids of clip paths count up with every chart.
    for spec, svg in zip(snakemake.input.specs, snakemake.output.svgs, strict=True):
        # No chart may load anything, so no address is allowed.
        drawn = vl_convert.vegalite_to_svg(Path(spec).read_text(encoding="utf-8"), allowed_base_urls=[])
        Path(svg).write_text(drawn + "\n", encoding="utf-8")
    return f"{len(snakemake.output.svgs)} pictures"


run_rule(main, snakemake)
