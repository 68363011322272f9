"""Rule write_page_template: write the common parts of all pages of the study."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> None:
    import shutil
    from pathlib import Path

    from ttf.page.render.template import template

    inputs, outputs = snakemake.input, snakemake.output
    folder = Path(next(path for path in inputs.files if path.endswith("page.html"))).parent
    Path(outputs.template).write_text(template(folder, Path(inputs.vega).read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copyfile(folder / "references.bib", outputs.bibliography)


run_rule(main, snakemake)
