"""Rule publish_site: write results/studies/<name>/site/ for any host of static files."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    import shutil
    import tempfile
    from pathlib import Path

    from ttf.display.charts.saving import static_picture
    from ttf.engine.process.fonts import hide_system_fonts
    from ttf.engine.provenance import seal
    from ttf.page.publication_record import describe
    from ttf.page.publish import pages, site
    from ttf.page.publish.files import (
        PackedFile,
        describe_file,
        describe_report_page,
        published_path,
        read_chart_texts,
    )
    from ttf.page.render.pictures import render_pdf, render_png
    from ttf.page.render.render import render
    from ttf.page.report.templates import macros
    from ttf.page.results_tables import load_all_contracts

    hide_system_fonts()
    files, params = snakemake.input, snakemake.params
    folder = Path(snakemake.output.site)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {table.path: table for table in load_all_contracts(tuple(params.folders)).values()}
    charts = read_chart_texts(Path(index) for index in files.indexes)
    record = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    readme = site.make_readme(record).encode()
    listed = [PackedFile("README.md", readme, "README", "What is here, and what it may be used for")]
    listed += [describe_report_page(path, path.name) for path in map(Path, files.papers)]
    for path in map(Path, files.products):
        listed.append(describe_file(path, published_path(path, folder.parent), charts, tables))
        if path.suffix == ".svg":
            picture, target = static_picture(path), folder / listed[-1].path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.with_suffix(".png").write_bytes(render_png(picture))
            target.with_suffix(".pdf").write_bytes(render_pdf(picture))
    for file in listed:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
    reports = {Path(path).stem: Path(path).read_text(encoding="utf-8") for path in files.reports}
    index = site.file_index(listed, record)
    texts = pages.sources(reports, params.pages, record, index, macros(Path(files.blocks).parent))
    with tempfile.TemporaryDirectory() as work:
        for path in map(Path, (files.template, files.bibliography)):
            shutil.copyfile(path, Path(work, path.name))
        for name, text in texts.items():
            source = Path(work, f"{name}.qmd")
            source.write_text(text, encoding="utf-8")
            renderer = render(source, folder / f"{name}.html")
    (folder / ".nojekyll").touch()  # makes GitHub Pages serve the files unchanged
    (folder / ".snakemake_timestamp").touch()  # Snakemake would add it to the files of the list
    seal.write_list(folder)
    products = [file for file in folder.rglob("*") if file.is_file()]
    megabytes = sum(file.stat().st_size for file in products) / 1e6
    return f"{len(products)} files, {megabytes:.1f} MB, in {folder}, by {renderer}"


run_rule(main, snakemake)
