"""Rule publish_site: results/studies/<name>/site/, ready for any host of static files."""

from ttf.entry import run_rule


def main(snakemake):
    import shutil
    import tempfile
    from pathlib import Path

    from ttf.fonts import hide_system_fonts
    from ttf.publish import site, website
    from ttf.publish.about import describe
    from ttf.publish.dictionary import as_html, by_analysis
    from ttf.publish.files import Published, png_of, published, words_of_charts
    from ttf.rooms import contracts

    hide_system_fonts()
    files, params = snakemake.input, snakemake.params
    about = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    folders = tuple(params.folders)
    tables = {table.path: table for table in contracts(folders).values()}
    charts = words_of_charts(Path(index) for index in files.indexes)
    shown = []
    folder = Path(snakemake.output.site)
    own = folder.parent
    for path in map(Path, files.products):
        place = path.relative_to(own if path.is_relative_to(own) else own.parents[1])
        file = published(path, place.as_posix(), charts, tables)
        shown.append(file)
        if path.suffix == ".svg":
            drawn = png_of(file.content.decode("utf-8"))
            shown.append(Published(file.path.removesuffix(".svg") + ".png", drawn, file.name, file.what))
    shown.append(
        Published("README.md", site.readme_of(about).encode(), "README", "What lies here, and where it is from")
    )
    run_report = [Path(path) for path in files.run_report]
    quarto = shutil.which("quarto")
    page = site.with_links(Path(files.page).read_text(encoding="utf-8"), about, bool(run_report), bool(quarto))
    shown.append(Published("index.html", page.encode(), "The report", "One page that needs no network"))
    pdf = Path(files.pdf)
    shown.append(published(pdf, pdf.name, {}, {}))
    for path in run_report:
        text = site.PAGE_OF_STUDY.sub("index.html", path.read_text(encoding="utf-8"))
        what = "How the study was run: rules, their code and their run times"
        shown.append(Published(site.RUN_REPORT, text.encode(), "Snakemake's report", what))
    page = site.page_of("Tables and their columns", about, as_html(by_analysis(folders)))
    shown.append(Published("tables.html", page.encode(), "Data dictionary", "Every table and every column of it"))
    shown.sort(key=lambda file: file.path)

    hidden = Published(".nojekyll", b"", "", "")  # makes GitHub Pages serve the files as they are
    index = Published("files.html", site.index_of(shown, about).encode(), "", "")
    for file in (*shown, index, hidden):
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).write_bytes(file.content)
    if quarto:
        with tempfile.TemporaryDirectory() as work:
            project = Path(work) / "project"
            shutil.copytree(files.pages, project)
            shutil.copytree(website.rendered(quarto, project), folder / "pages")
    size = sum(len(file.content) for file in shown)
    pages = "with" if quarto else "without Quarto, so without"
    return f"{len(shown) + 1} files, {size / 1e6:.1f} MB, in {folder}, {pages} a page for each trace and theme"


run_rule(main, snakemake)
