"""Rule check_philly: can the Philly log's times be Pacific, and how far is the list of machines wrong?"""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.charts.saving import save_charts
    from ttf.formats.philly.derive import zone_evidence
    from ttf.tables import write_csv
    from ttf.traces.philly_checks import listed_machines

    zones = zone_evidence(pl.read_parquet(snakemake.input.jobs))
    machines = listed_machines(pl.read_parquet(snakemake.input.nodes))
    write_csv(zones, snakemake.output.zone_evidence)
    write_csv(machines, snakemake.output.listed_machines)
    save_charts({}, [], snakemake.output.index)
    return f"{zones.height:,} starts of the resource manager, {machines['nodes'].sum():,} machines"


run_rule(main, snakemake)
