"""Rule ingest_part: check the raw tables of one part of a trace and write them as typed Parquet, for merge_parts."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine.process.memory import keep_freed_memory

    keep_freed_memory()  # before Polars is imported
    from ttf.engine.storage.tables import write_parquet, write_product
    from ttf.formats.protocol import load_schemas_and_readers
    from ttf.raw.ingest import ingest_part
    from ttf.raw.raw_contracts import ROW_ACCOUNT

    schemas, readers = load_schemas_and_readers(**snakemake.params.reader_options)
    files = {table: Path(snakemake.input[table]) / member for table, member in snakemake.params.members.items()}
    folder = Path(snakemake.output.raw)
    folder.mkdir(parents=True)
    account, quarantine = ingest_part(files, schemas, folder, snakemake.params.hopeless_share, readers)
    write_product(account, ROW_ACCOUNT, snakemake.output.account)
    write_parquet(quarantine, snakemake.output.quarantine)
    rows = f"{account['rows_read'].sum():,} rows, {account['rows_quarantined'].sum():,} quarantined"
    return f"{snakemake.wildcards.part}: {rows}"


run_rule(main, snakemake)
