"""Rule derive_training_events: make the events of training logs, and an account of all their lines."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    import polars as pl
    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.engine.storage.tables import write_product
    from ttf.raw.training_logs.event_reader import read_rows
    from ttf.raw.training_logs.profiles import Profiles
    from ttf.records.record_contracts import TRAINING_EVENTS, TRAINING_LOG_LINES
    from ttf.records.training_runs import select_events, tabulate_lines

    inputs, options, output = dict(snakemake.input.items()), snakemake.params.options, snakemake.output
    if "raw" in inputs:
        rows = scan_parquet(Path(inputs["raw"]) / "logs.parquet").collect()
    else:
        files, profiles = inputs["training_logs"], Profiles.from_options(options["profiles"])
        paths = [Path(file) for file in ([files] if isinstance(files, str) else files)]
        rows = pl.concat(read_rows(path, profiles, options["zone"]) for path in paths)
    events, lines = select_events(rows), tabulate_lines(rows)
    write_product(events, TRAINING_EVENTS, output.training_events)
    write_product(lines, TRAINING_LOG_LINES, output.training_log_lines)
    without = lines.join(lines.filter(code="step"), on="log", how="anti").filter(code="lines")["log"].to_list()
    note = f"; no step in {', '.join(without[:3])}{' ...' if len(without) > 3 else ''}" if without else ""
    return f"{events.height:,} events in {lines.filter(code='lines')['rows'].sum():,} lines{note}"


run_rule(main, snakemake)
