"""Rule pseudonymise: write the tables of a trace for publication, without the names of people and machines."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.engine.storage.tables import read_as_written, write_csv
    from ttf.page.publish.pseudonyms import pseudonymised
    from ttf.page.results_tables import contracts

    files, products = snakemake.input, snakemake.output.tables
    tables = {Path(table.path): table for table in contracts(tuple(snakemake.params.folders)).values()}
    key = Path(files.key).read_bytes()
    for source, product in zip(files.tables, products, strict=True):
        frame, table = read_as_written(source, tables[Path(*Path(source).parts[2:])])
        write_csv(pseudonymised(frame, table, key), product)
    return f"{len(products)} tables"


run_rule(main, snakemake)
