"""Rule reconstruct_occupancy: placements -> which GPUs of which servers were busy when, and what that says of waits."""

from ttf.entry import run_rule

# What is read of jobs.parquet, of jobs with GPUs; eligible_s where the format has it.
JOBS = ["account", "submit_s", "start_s", "end_s", "gpu_milli", "size", "outcome", "trace_end_s"]


def main(snakemake):
    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.occupancy import CHARTS
    from ttf.charts.saving import save_charts
    from ttf.jobs import whole_gpus
    from ttf.memory import keep_freed_arrays
    from ttf.stats import occupancy
    from ttf.stats.delay_causes import delay_causes
    from ttf.stats.holdings import holdings
    from ttf.stats.server_sharing import server_sharing
    from ttf.stats.servers import sweep_servers
    from ttf.tables import write_csv

    keep_freed_arrays()
    given, output = dict(snakemake.input.items()), snakemake.output
    jobs = pl.scan_parquet(given["jobs"])
    attempts = pl.scan_parquet(given["attempts"]) if "attempts" in given else None
    nodes = pl.read_parquet(given["nodes"])
    held = holdings(pl.scan_parquet(given["placements"]), jobs, nodes, attempts)
    servers = sweep_servers(held)
    tables = {"occupancy_basis": occupancy.basis(held, servers), "server_sharing": server_sharing(servers)}
    over = occupancy.cluster(held, servers)
    del servers
    tables["occupancy"], tables["fragmentation"] = occupancy.occupancy(over)
    extra = [name for name in ("eligible_s",) if name in jobs.collect_schema().names()]
    read = jobs.filter(whole_gpus() > 0).select(*JOBS, *extra).collect(engine="streaming")
    tables["load_over_time"] = occupancy.load_over_time(over, read)
    tables["delay_causes"] = delay_causes(read, held, over)
    for name, table in tables.items():
        write_csv(table, output[name])
    study = Study(snakemake.params.unit, snakemake.params.synthetic)
    drawn = {name: draw(tables, study) for name, draw in CHARTS.items()}
    save_charts(drawn, output.specs, output.index)
    return f"{tables['occupancy_basis']['placements'].item():,} placements"


run_rule(main, snakemake)
