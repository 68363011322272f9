"""Rule publish_site: write results/studies/<name>/site/ for any host of static files."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    import shutil
    from pathlib import Path

    from ttf.display.charts.saving import static_picture
    from ttf.engine.process.fonts import hide_system_fonts
    from ttf.engine.provenance import seal
    from ttf.page.publication_record import describe
    from ttf.page.publish import site
    from ttf.page.publish.files import find_contract, published_path, read_published_content
    from ttf.page.render.pictures import render_pdf, render_png
    from ttf.page.render.render import render
    from ttf.page.results_tables import load_all_contracts

    hide_system_fonts()
    files, params = snakemake.input, snakemake.params
    folder, source = Path(snakemake.output.site), Path(files.source)
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted(source.glob("*.qmd")):
        renderer = render(page, folder / f"{page.stem}.html")
    tables = {table.path: table for table in load_all_contracts(tuple(params.folders)).values()}
    for path in map(Path, files.products):
        relative_path = published_path(path, folder.parent)
        target = folder / relative_path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(read_published_content(path, find_contract(relative_path, tables)))
        if path.suffix == ".svg":
            picture = static_picture(path)
            target.with_suffix(".png").write_bytes(render_png(picture))
            target.with_suffix(".pdf").write_bytes(render_pdf(picture))
    for path in map(Path, files.papers):
        shutil.copyfile(path, folder / path.name)
    for path in map(Path, files.run_report):
        text = site.PAGE_OF_STUDY.sub("index.html", path.read_text(encoding="utf-8"))
        (folder / site.RUN_REPORT).write_text(text, encoding="utf-8")
    record = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    (folder / "README.md").write_text(site.make_readme(record), encoding="utf-8")
    (folder / ".nojekyll").touch()  # makes GitHub Pages serve the files unchanged
    (folder / ".snakemake_timestamp").touch()  # Snakemake would add it to the files of the list
    seal.write_list(folder)
    products = [file for file in folder.rglob("*") if file.is_file()]
    megabytes = sum(file.stat().st_size for file in products) / 1e6
    return f"{len(products)} files, {megabytes:.1f} MB, in {folder}, by {renderer}"


run_rule(main, snakemake)
