"""Rule describe_tables: what the kept rows hold, an independent check of them, and the schema the others suggest."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    import yaml
    from ttf.formats.protocol import reading_in
    from ttf.given_reader import SCHEMAS
    from ttf.on_disk import read_parquet, scan_parquet
    from ttf.quality.statistics import table_statistics
    from ttf.quality.suggested_schema import schema_text, suggested_schema
    from ttf.quality.suggestions import suggest
    from ttf.quality.validation import validate
    from ttf.raw_files import tables_in
    from ttf.raw_tables import table_schemas
    from ttf.stages import STATISTICS, VALIDATION
    from ttf.tables import write_product

    read_by = snakemake.params.read_by
    from_entry = "mapping" in read_by["entry"]
    text = schema_text(reading_in(read_by["reader"]).schema(read_by["entry"])) if from_entry else read_by["schema"]
    shipped = table_schemas(yaml.safe_load(text))
    schemas = shipped | SCHEMAS
    files = tables_in(snakemake.input, snakemake.params.members)
    folder = Path(snakemake.input.raw)
    tables = {table: scan_parquet(folder / f"{table}.parquet") for table in files}
    checks = validate(tables, schemas)
    suggestions = suggest(read_parquet(snakemake.input.quarantine), schemas, files)
    # The tables of ttf.given have no schema that could be changed.
    suggestions = [suggestion for suggestion in suggestions if suggestion.table in shipped]
    write_product(table_statistics(tables, schemas), STATISTICS, snakemake.output.statistics)
    write_product(checks, VALIDATION, snakemake.output.validation)
    suggested = suggested_schema(text, snakemake.wildcards.trace, suggestions, from_entry)
    Path(snakemake.output.suggested).write_text(suggested, encoding="utf-8")
    failed = int((checks["rows_failed"] != 0).fill_null(True).sum())
    changes = sum(suggestion.is_change for suggestion in suggestions)
    return (
        f"{checks.height:,} checks of the kept rows, {failed:,} not passed; {changes:,} changes of the schema suggested"
    )


run_rule(main, snakemake)
