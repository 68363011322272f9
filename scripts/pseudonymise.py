"""Rule pseudonymise: write the tables of a trace for publication, without the names of people, machines, and prices."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine.storage.tables import read_without_renaming, write_csv
    from ttf.page.publish.pseudonyms import hide_prices, pseudonymise
    from ttf.page.results_tables import load_all_contracts

    files, products = snakemake.input, snakemake.output.tables
    tables = {Path(table.path): table for table in load_all_contracts(tuple(snakemake.params.folders)).values()}
    key = Path(files.key).read_bytes() if files.key else None
    for source, product in zip(files.tables, products, strict=True):
        frame, table = read_without_renaming(source, tables[Path(*Path(source).parts[2:])])
        frame = pseudonymise(frame, table, key) if key else frame
        write_csv(hide_prices(frame, table) if snakemake.params.hides_prices else frame, product)
    return f"{len(products)} tables"


run_rule(main, snakemake)
