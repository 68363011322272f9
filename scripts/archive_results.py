"""Rule archive_results: pack results, workflow, configuration and environment into one self-describing file."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    import os
    from pathlib import Path

    from snakemake import __version__ as snakemake_version
    from ttf.engine.provenance import seal
    from ttf.engine.storage.tables import read_as_written
    from ttf.page.publication_record import checked_date, describe
    from ttf.page.publish.archive import deposit, tar_of
    from ttf.page.publish.crate import METADATA, crate
    from ttf.page.publish.files import Published, page_of_report, product_of, published, table_at, words_of_charts
    from ttf.page.publish.site import readme_of
    from ttf.page.publish.table_copies import Filled, more_tables
    from ttf.page.results_tables import contracts

    files, params = snakemake.input, snakemake.params
    date = checked_date(params.date)
    root = Path(snakemake.scriptdir).parent
    record = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    tables = {table.path: table for table in contracts(tuple(params.folders)).values()}
    charts = words_of_charts(Path(index) for index in files.indexes)
    results_folder = Path(snakemake.output.archive).parents[1]

    def archive_path(path):
        return product_of(path, results_folder).as_posix()

    packed = [page_of_report(path, archive_path(path)) for path in map(Path, [*files.pages, *files.papers])]
    packed += [published(path, archive_path(path), charts, tables) for path in map(Path, files.products)]
    packed += [published(Path(path), Path(os.path.relpath(path, root)).as_posix(), {}, {}) for path in files.sources]
    if formats := params.settings.get("tables", ()):
        filled = [
            Filled(archive_path(path), *reversed(read_as_written(path, contract)))
            for path in map(Path, files.products)
            if path.suffix == ".csv" and (contract := table_at(archive_path(path), tables))
        ]
        table_copies = more_tables(formats, filled, date)
        packed += [Published(path, content, Path(path).stem, title) for path, content, title in table_copies]
    readme = readme_of(record, results_folder.as_posix().removeprefix("results/") + "/").encode()
    packed.append(Published("results/README.md", readme, "README", "What the results are"))
    zenodo = deposit(record, date).encode()
    packed.append(Published(".zenodo.json", zenodo, "Zenodo", "What to say of the archive when it is deposited"))
    packed.sort(key=lambda file: file.path)
    manifest = next((seal.unsealed(Path(path)) for path in files.products if Path(path).name == "manifest.json"), None)
    metadata = crate(packed, record, date, snakemake_version, manifest)
    packed.append(Published(METADATA, metadata.encode(), "", ""))
    packed.append(Published(seal.NAME, seal.list_of((file.path, file.content) for file in packed), "", ""))

    target = Path(snakemake.output.archive)
    target.write_bytes(tar_of(packed, target.name.removesuffix(".tar.xz"), date))
    return f"{len(packed)} files, {target.stat().st_size / 1e6:.1f} MB, in {target}"


run_rule(main, snakemake)
