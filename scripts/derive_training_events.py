"""Rule derive_training_events: make the events of training logs, and an account of all their lines."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from itertools import chain
    from pathlib import Path

    import polars as pl
    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.engine.storage.partitions import make_spill_folder
    from ttf.engine.storage.tables import write_blocks, write_product
    from ttf.raw.training_logs.event_reader import ROW_SCHEMA, read_rows
    from ttf.raw.training_logs.profiles import Profiles
    from ttf.records.record_contracts import TRAINING_EVENTS, TRAINING_LOG_LINES
    from ttf.records.training_runs import select_events, tabulate_lines

    inputs, options, output = dict(snakemake.input.items()), snakemake.params.options, snakemake.output
    with make_spill_folder(output.training_events) as folder:
        path = Path(inputs.get("raw", folder)) / "logs.parquet"
        if "raw" not in inputs:
            files, profiles = inputs["training_logs"], Profiles.from_options(options["profiles"])
            paths = [Path(file) for file in ([files] if isinstance(files, str) else files)]
            rows = (read_rows(file, profiles, options["zone"]) for file in paths)
            write_blocks(chain.from_iterable(rows), ROW_SCHEMA, path)
        write_product(select_events(scan_parquet(path)), TRAINING_EVENTS, output.training_events)
        lines = tabulate_lines(scan_parquet(path))
        write_product(lines, TRAINING_LOG_LINES, output.training_log_lines)
    without = lines.join(lines.filter(code="step"), on="log", how="anti").filter(code="lines")["log"].to_list()
    note = f"; no step in {', '.join(without[:3])}{' ...' if len(without) > 3 else ''}" if without else ""
    events = scan_parquet(output.training_events).select(pl.len()).collect().item()
    return f"{events:,} events in {lines.filter(code='lines')['rows'].sum():,} lines{note}"


run_rule(main, snakemake)
