"""Rule ingest: check raw tables and write them as typed Parquet, with row account, anomalies and quarantine."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine.process.memory import keep_freed_memory

    keep_freed_memory()  # before Polars is imported
    from ttf.engine.storage.tables import write_parquet, write_product
    from ttf.formats.protocol import load_schemas_and_readers
    from ttf.raw.ingest import anomalies, ingest
    from ttf.raw.quality.suggestions import suggest_changes, words_by_anomaly
    from ttf.raw.raw_contracts import ANOMALIES, ROW_ACCOUNT
    from ttf.raw.raw_files import table_paths

    schemas, readers = load_schemas_and_readers(**snakemake.params.reader_options)
    files = table_paths(snakemake.input, snakemake.params.members)
    folder = Path(snakemake.output.raw)
    folder.mkdir(parents=True)
    account, quarantine = ingest(files, schemas, folder, snakemake.params.max_share, readers)
    write_product(account, ROW_ACCOUNT, snakemake.output.account)
    suggested = words_by_anomaly(suggest_changes(quarantine, schemas, files))
    write_product(anomalies(quarantine, account, suggested, files), ANOMALIES, snakemake.output.anomalies)
    write_parquet(quarantine, snakemake.output.quarantine)
    tables = f"{account.height} table{'s' * (account.height != 1)}"
    return f"{account['rows_read'].sum():,} rows in {tables}, {account['rows_quarantined'].sum():,} quarantined"


run_rule(main, snakemake)
