"""Rule merge_parts: merge the parts of a trace into its typed tables, with row account, anomalies and quarantine."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine.storage.on_disk import read_parquet
    from ttf.engine.storage.tables import read_table, write_parquet, write_product
    from ttf.formats.protocol import load_schemas_and_readers
    from ttf.raw.ingest import Part, anomalies, merge
    from ttf.raw.quality.suggestions import suggest_changes, words_by_anomaly
    from ttf.raw.raw_contracts import ANOMALIES, ROW_ACCOUNT, ROW_ACCOUNT_BY_PART

    schemas, readers = load_schemas_and_readers(**snakemake.params.reader_options)
    raw_files = {table: iter(paths) for table, paths in snakemake.input.items() if table in schemas}
    products = (snakemake.input.parts, snakemake.input.accounts, snakemake.input.quarantines)
    parts = [
        Part(
            name=name,
            files={table: Path(next(raw_files[table])) / member for table, member in members.items()},
            folder=Path(raw),
            account=read_table(account, ROW_ACCOUNT),
            quarantine=read_parquet(quarantine),
        )
        for (name, members), raw, account, quarantine in zip(snakemake.params.parts.items(), *products, strict=True)
    ]
    folder = Path(snakemake.output.raw)
    folder.mkdir(parents=True)
    account, quarantine, part_accounts = merge(parts, schemas, folder, snakemake.params.max_share, readers)
    write_product(account, ROW_ACCOUNT, snakemake.output.account)
    write_product(part_accounts, ROW_ACCOUNT_BY_PART, snakemake.output.by_part)
    files = {table: [part.files[table] for part in parts if table in part.files] for table in account["table"]}
    suggested = words_by_anomaly(suggest_changes(quarantine, schemas, files))
    write_product(anomalies(quarantine, account, suggested, files), ANOMALIES, snakemake.output.anomalies)
    write_parquet(quarantine, snakemake.output.quarantine)
    rows = f"{account['rows_read'].sum():,} rows in {len(parts):,} parts"
    return f"{rows}, {account['rows_quarantined'].sum():,} quarantined"


run_rule(main, snakemake)
