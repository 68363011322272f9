"""Rule ingest: raw tables -> typed, checked Parquet with the row account, the anomalies and the quarantine."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    import yaml
    from ttf.ingest import anomalies, ingest
    from ttf.quality.suggestions import suggest, suggestion_words
    from ttf.raw_tables import table_schemas
    from ttf.tables import write_csv, write_parquet

    reader = snakemake.params.reader
    # One of a closed list: formats.yaml names it.
    module = importlib.import_module(f"ttf.traces.{reader}") if reader else None
    if snakemake.params.entry:
        document = module.schema_document(snakemake.params.entry)
    else:
        document = yaml.safe_load(Path(snakemake.input.schema).read_text(encoding="utf-8"))
    schemas = table_schemas(document)
    files = {table: [Path(path) for path in paths] for table, paths in snakemake.params.files.items()}
    readers = module.READERS if module else None
    folder = Path(snakemake.output.raw)
    folder.mkdir(parents=True)
    account, quarantine = ingest(files, schemas, folder, snakemake.params.max_share, readers)
    write_csv(account, snakemake.output.account)
    suggested = suggestion_words(suggest(quarantine, schemas, files))
    write_csv(anomalies(quarantine, account, suggested), snakemake.output.anomalies)
    write_parquet(quarantine, snakemake.output.quarantine)
    return f"{account['rows_read'].sum():,} rows in {account.height} tables, {quarantine.height:,} put aside"


run_rule(main, snakemake)
