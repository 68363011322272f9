"""Rule write_site_source: write the pages of the site as .qmd, which Quarto renders too: report/site-source/."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine.process.fonts import hide_system_fonts
    from ttf.page.publication_record import describe
    from ttf.page.publish import pages, site
    from ttf.page.publish.dictionary import group_by_analysis, to_html_page
    from ttf.page.publish.files import PackedFile, describe_file, describe_report_page, published_path, read_chart_texts
    from ttf.page.report.blocks import macros
    from ttf.page.results_tables import load_all_contracts

    hide_system_fonts()
    files, params = snakemake.input, snakemake.params
    record = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    folders = tuple(params.folders)
    tables = {table.path: table for table in load_all_contracts(folders).values()}
    charts = read_chart_texts(Path(index) for index in files.indexes)
    folder = Path(snakemake.output.project)
    readme = site.make_readme(record).encode()
    listed = [PackedFile("README.md", readme, "README", "What is here, and what it may be used for")]
    listed += [describe_report_page(path, path.name) for path in map(Path, files.papers)]
    listed += [
        PackedFile(site.RUN_REPORT, path.read_bytes(), "How the study was run", "By Snakemake: rules, times")
        for path in map(Path, files.run_report)
    ]
    listed += [
        describe_file(path, published_path(path, folder.parents[1]), charts, tables)
        for path in map(Path, files.products)
    ]
    bodies = {"files": site.file_index(listed, record), "tables": to_html_page(group_by_analysis(folders))}
    reports = {Path(path).stem: Path(path).read_text(encoding="utf-8") for path in files.reports}
    texts = pages.sources(reports, params.pages, record, bodies, macros(Path(files.blocks).parent))
    pages.write(texts, map(Path, (files.template, files.bibliography)), folder)
    return f"{len(texts)} files in {folder}"


run_rule(main, snakemake)
