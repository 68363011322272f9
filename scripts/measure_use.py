"""Rule measure_use: telemetry and job log -> how much of GPUs, CPUs and memory was used, by the jobs that held them."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.charts.use import CHARTS
    from ttf.formats.philly.derive import held_gpus
    from ttf.tables import write_csv
    from ttf.traces.philly_telemetry import gpu_use_by_kind, host_use

    folder, output = Path(snakemake.input.raw), snakemake.output
    raw = {table: pl.scan_parquet(folder / f"{table}.parquet") for table in snakemake.params.tables}
    held = held_gpus(raw)
    tables = {
        "gpu_use": gpu_use_by_kind(held, raw.get("gpu_util")),
        "host_use": host_use(held, raw.get("cpu_util"), raw.get("mem_util")),
    }
    for name, table in tables.items():
        write_csv(table, output[name])
    study = Study(snakemake.params.unit, snakemake.params.synthetic)
    drawn = {name: draw(tables, study) for name, draw in CHARTS.items()}
    save_charts(drawn, output.specs, output.index)
    return f"{tables['gpu_use']['n'].max():,} GPU minutes"


run_rule(main, snakemake)
