"""Rule reconstruct_occupancy: placements -> which GPUs of which servers were busy when, and what that says of waits."""

from ttf.entry import run_rule


def main(snakemake):
    from ttf.memory import keep_freed_memory

    keep_freed_memory()  # before Polars is imported
    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.occupancy import CHARTS
    from ttf.charts.saving import save_charts
    from ttf.partitions import spill_beside
    from ttf.stats.reconstruction import occupancy_tables
    from ttf.tables import write_csv

    given, output = dict(snakemake.input.items()), snakemake.output
    placements, jobs = pl.scan_parquet(given["placements"]), pl.scan_parquet(given["jobs"])
    attempts = pl.scan_parquet(given["attempts"]) if "attempts" in given else None
    with spill_beside(output.occupancy) as folder:
        tables = occupancy_tables(placements, jobs, pl.read_parquet(given["nodes"]), attempts, folder)
    for name, table in tables.items():
        write_csv(table, output[name])
    study = Study(snakemake.params.unit, snakemake.params.synthetic)
    drawn = {name: draw(tables, study) for name, draw in CHARTS.items()}
    save_charts(drawn, output.specs, output.index)
    return f"{tables['occupancy_basis']['placements'].item():,} placements"


run_rule(main, snakemake)
