"""Rule write_site_source: write the pages of the site as .qmd, which Quarto renders too: report/site-source/."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.page.publication_record import describe
    from ttf.page.publish import pages, site
    from ttf.page.publish.dictionary import as_html, by_analysis
    from ttf.page.publish.files import Published, page_of_report, place_of, published, words_of_charts
    from ttf.page.report.blocks import macros
    from ttf.page.results_tables import contracts

    files, params = snakemake.input, snakemake.params
    record = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    folders = tuple(params.folders)
    tables = {table.path: table for table in contracts(folders).values()}
    charts = words_of_charts(Path(index) for index in files.indexes)
    folder = Path(snakemake.output.project)
    listed = [
        Published("README.md", site.readme_of(record).encode(), "README", "What is here, and what it may be used for")
    ]
    listed += [page_of_report(path, path.name) for path in map(Path, files.papers)]
    listed += [
        Published(site.RUN_REPORT, path.read_bytes(), "How the study was run", "By Snakemake: rules, times")
        for path in map(Path, files.run_report)
    ]
    listed += [published(path, place_of(path, folder.parents[1]), charts, tables) for path in map(Path, files.products)]
    bodies = {"files": site.index_of(listed, record), "tables": as_html(by_analysis(folders))}
    reports = {Path(path).stem: Path(path).read_text(encoding="utf-8") for path in files.reports}
    templates = Path(files.blocks).parent
    texts = pages.sources(reports, params.pages, record, bodies, macros(templates))
    pages.write(texts, map(Path, (files.template, files.bibliography)), folder)
    return f"{len(texts)} files in {folder}"


run_rule(main, snakemake)
