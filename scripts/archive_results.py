"""Rule archive_results: pack results, workflow, configuration and environment into one self-describing file."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from dataclasses import replace
    from pathlib import Path

    from snakemake import __version__ as snakemake_version
    from ttf.display.charts.saving import static_picture
    from ttf.engine.process.fonts import hide_system_fonts
    from ttf.engine.provenance import seal
    from ttf.engine.provenance.digests import manifest_name
    from ttf.page.monitoring import open_metrics
    from ttf.page.publication_record import check_date, describe
    from ttf.page.publish.archive import pack_tar
    from ttf.page.publish.crate import METADATA, make_crate
    from ttf.page.publish.files import (
        PackedFile,
        describe_file,
        describe_report_page,
        original_product,
        read_chart_texts,
    )
    from ttf.page.publish.site import make_readme
    from ttf.page.render.pictures import render_pdf
    from ttf.page.results_tables import load_all_contracts

    hide_system_fonts()
    files, params = snakemake.input, snakemake.params
    date = check_date(params.date)
    record = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    tables = {table.path: table for table in load_all_contracts(tuple(params.folders)).values()}
    charts = read_chart_texts(Path(index) for index in files.indexes)
    results_folder = Path(snakemake.output.archive).parents[1]

    def path_in_archive(path):
        return original_product(path, results_folder).as_posix()

    packed = [describe_report_page(path, path_in_archive(path)) for path in map(Path, [*files.pages, *files.papers])]
    products = [
        (path, describe_file(path, path_in_archive(path), charts, tables)) for path in map(Path, files.products)
    ]
    packed += [file for _, file in products]
    packed += [
        replace(file, path=f"{file.path[:-3]}pdf", content=render_pdf(static_picture(path)))
        for path, file in products
        if path.suffix == ".svg"
    ]
    packed += [describe_file(Path(path), manifest_name(path), {}, {}) for path in files.sources]
    folders = {path.parent.name: path.parent for path in map(Path, files.products) if path.name == "metrics.json"}
    folders = {name: folders[name] for name in params.traces if name in folders}
    metrics = open_metrics.render_metrics(results_folder.name, folders).encode()
    metrics_path = (results_folder / open_metrics.FILE).as_posix()
    packed.append(PackedFile(metrics_path, metrics, "metrics", "The main numbers as OpenMetrics text"))
    readme = make_readme(record, results_folder.as_posix().removeprefix("results/") + "/").encode()
    packed.append(PackedFile("results/README.md", readme, "README", "What the results are"))
    packed.sort(key=lambda file: file.path)
    packed.append(PackedFile(METADATA, make_crate(packed, record, date, snakemake_version).encode(), "", ""))
    packed.append(PackedFile(seal.NAME, seal.make_list((file.path, file.content) for file in packed), "", ""))

    target = Path(snakemake.output.archive)
    target.write_bytes(pack_tar(packed, target.name.removesuffix(".tar.xz"), date))
    return f"{len(packed)} files, {target.stat().st_size / 1e6:.1f} MB, in {target}"


run_rule(main, snakemake)
