"""Rule write_page_template: what all pages of the study have in common."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    import shutil
    from pathlib import Path

    from ttf.page.render.template import template

    given, made = snakemake.input, snakemake.output
    folder = Path(next(path for path in given.files if path.endswith("page.html"))).parent
    Path(made.template).write_text(template(folder, Path(given.vega).read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copyfile(folder / "references.bib", made.bibliography)


run_rule(main, snakemake)
