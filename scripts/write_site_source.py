"""Rule write_site_source: report/site-source/ of a study, a Quarto project with a page for each trace and theme."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.publish import website
    from ttf.publish.about import describe

    files, params = snakemake.input, snakemake.params
    about = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    texts = {Path(path).name: Path(path).read_text(encoding="utf-8") for path in (files.report, *files.traces)}
    beside = (files.header, files.footer, files.bibliography, files.vega, files.charts)
    extra = {Path(path).name: Path(path) for path in beside}
    folder = Path(snakemake.output.project)
    pages = website.write(texts, about.title, extra, folder)
    return f"{pages} pages in {folder}"


run_rule(main, snakemake)
