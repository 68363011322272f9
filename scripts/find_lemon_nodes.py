"""Rule find_lemon_nodes: placements and infra lives -> nodes that fail more than their use explains."""

from ttf.entry import run_rule

# Placements looked at together; of these the ones within the window are held.
PARTITION_ROWS = 1 << 23


def main(snakemake):
    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.lemons import lemon_funnel, lemon_signals
    from ttf.charts.saving import save_charts
    from ttf.memory import keep_freed_arrays
    from ttf.partitions import partitions_of, spill_beside
    from ttf.stats import lemons
    from ttf.stats.node_runs import LIVES_READ, basis_of, halves_of, last_window
    from ttf.tables import read_columns, scan_columns, write_csv

    keep_freed_arrays()
    given, params, output = dict(snakemake.input.items()), snakemake.params, snakemake.output
    rate = params.false_discovery
    if "placements" in given:
        lives = scan_columns(given["lives"], LIVES_READ)
        placements = pl.scan_parquet(given["placements"])
        days = params.window_days if basis_of(lives) == "proxy" else params.infra_window_days
        window = last_window(placements, days)
        with spill_beside(output.lemon_nodes) as spilled:
            partitions = partitions_of([placements], PARTITION_ROWS, spilled)
            windows = [window, *halves_of(window)]
            found = lemons.lemon_nodes(placements, lives, windows, rate, partitions)
    else:
        lives = read_columns(given["lives"], ("unit_id", "event", "duration_s", params.fleet_by))
        parts = [lives, *lemons.halves_of_lives(lives)]
        found = [lemons.lemon_components(part, params.fleet_by, rate) for part in parts]
    nodes, effect = found[0], lemons.lemon_effect(*found)
    write_csv(nodes, output.lemon_nodes)
    write_csv(effect, output.lemon_effect)
    study = Study(params.unit, params.synthetic)
    drawn = {"lemons": lemon_funnel(nodes, study, rate), "lemon_signals": lemon_signals(nodes, study)}
    save_charts(drawn, output.specs, output.index)
    return f"{nodes.height:,} nodes, {int(nodes['lemon'].sum() or 0):,} lemons"


run_rule(main, snakemake)
