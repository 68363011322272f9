"""Rule describe_tables: describe the accepted rows, and the schema that the quarantined rows suggest."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    import yaml
    from ttf.engine.storage.on_disk import read_parquet, scan_parquet
    from ttf.engine.storage.tables import read_table, write_product
    from ttf.formats.protocol import load_reading
    from ttf.raw.extra_table_reader import SCHEMAS
    from ttf.raw.quality.file_account import raw_files
    from ttf.raw.quality.statistics import table_statistics
    from ttf.raw.quality.suggested_schema import schema_text, suggested_schema
    from ttf.raw.quality.suggestions import suggest_changes
    from ttf.raw.raw_contracts import RAW_FILES, ROW_ACCOUNT, ROW_ACCOUNT_BY_PART, STATISTICS
    from ttf.raw.raw_files import table_paths
    from ttf.raw.raw_tables import table_schemas

    reader_options = snakemake.params.reader_options
    has_mapping = "mapping" in reader_options["entry"]
    text = (
        schema_text(load_reading(reader_options["reader"]).schema(reader_options["entry"]))
        if has_mapping
        else reader_options["schema"]
    )
    format_schemas = table_schemas(yaml.safe_load(text))
    schemas = format_schemas | SCHEMAS
    files = table_paths(snakemake.input, snakemake.params.members)
    tables = {table: scan_parquet(Path(snakemake.input.raw, f"{table}.parquet")) for table in files}
    suggestions = suggest_changes(read_parquet(snakemake.input.quarantine), schemas, files)
    # The tables of ttf.raw.extra_tables have no schema that could be changed.
    suggestions = [suggestion for suggestion in suggestions if suggestion.table in format_schemas]
    account = read_table(snakemake.input.account, ROW_ACCOUNT)
    part_accounts = [read_table(path, ROW_ACCOUNT_BY_PART) for path in snakemake.input.by_part]
    write_product(raw_files(snakemake.params.entries, account, *part_accounts), RAW_FILES, snakemake.output.raw_files)
    write_product(table_statistics(tables, schemas), STATISTICS, snakemake.output.statistics)
    suggested = suggested_schema(text, snakemake.wildcards.trace, suggestions, has_mapping)
    Path(snakemake.output.suggested).write_text(suggested, encoding="utf-8")
    changes = sum(suggestion.is_change for suggestion in suggestions)
    return f"{len(tables):,} tables described; {changes:,} changes of the schema suggested"


run_rule(main, snakemake)
