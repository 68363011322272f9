"""Rule archive_results: results, workflow, configuration and environment in one file that says what it is."""

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
    about = describe(Path(files.citation).read_text(encoding="utf-8"), params.settings, params.traces)
    tables = {table.path: table for table in contracts(tuple(params.folders)).values()}
    charts = words_of_charts(Path(index) for index in files.indexes)
    own = Path(snakemake.output.archive).parents[1]

    def place(path):
        return product_of(path, own).as_posix()

    packed = [page_of_report(path, place(path)) for path in map(Path, [*files.pages, *files.papers])]
    packed += [published(path, place(path), charts, tables) for path in map(Path, files.products)]
    packed += [published(Path(path), Path(os.path.relpath(path, root)).as_posix(), {}, {}) for path in files.sources]
    if asked := params.settings.get("tables", ()):
        filled = [
            Filled(place(path), *reversed(read_as_written(path, contract)))
            for path in map(Path, files.products)
            if path.suffix == ".csv" and (contract := table_at(place(path), tables))
        ]
        more = more_tables(asked, filled, date)
        packed += [Published(path, content, Path(path).stem, what) for path, content, what in more]
    readme = readme_of(about, own.as_posix().removeprefix("results/") + "/").encode()
    packed.append(Published("results/README.md", readme, "README", "What the results are"))
    zenodo = deposit(about, date).encode()
    packed.append(Published(".zenodo.json", zenodo, "Zenodo", "What to say of the archive when it is deposited"))
    packed.sort(key=lambda file: file.path)
    manifest = next((seal.unsealed(Path(path)) for path in files.products if Path(path).name == "manifest.json"), None)
    metadata = crate(packed, about, date, snakemake_version, manifest)
    packed.append(Published(METADATA, metadata.encode(), "", ""))
    packed.append(Published(seal.NAME, seal.list_of((file.path, file.content) for file in packed), "", ""))

    target = Path(snakemake.output.archive)
    target.write_bytes(tar_of(packed, target.name.removesuffix(".tar.xz"), date))
    return f"{len(packed)} files, {target.stat().st_size / 1e6:.1f} MB, in {target}"


run_rule(main, snakemake)
