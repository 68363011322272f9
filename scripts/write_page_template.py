"""Rule write_page_template: write the common parts of all pages of the study."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> None:
    import shutil
    import sys
    from pathlib import Path

    from ttf.page.render.packing import chart_program, deflate
    from ttf.page.render.template import template

    inputs, outputs = snakemake.input, snakemake.output
    folder = Path(next(path for path in inputs.files if path.endswith("page.html"))).parent
    vega = deflate(chart_program(Path(sys.prefix, "share", "time-to-failure")))
    Path(outputs.template).write_text(template(folder, vega), encoding="utf-8")
    shutil.copyfile(folder / "references.bib", outputs.bibliography)


run_rule(main, snakemake)
