"""Rule measure_sizes: infra lives -> mean time to failure at every size, the failure rate of a node, the 1/N law."""

from ttf.entry import run_rule

OF_LIVES = ("basis", "event", "cause", "start_s", "duration_s", "gpu_count", "gpu_milli", "nodes")


def main(snakemake):
    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.over_time import over_time_chart
    from ttf.charts.saving import save_charts
    from ttf.charts.sizes import mttf_by_gpus_chart
    from ttf.infra import EVENT
    from ttf.lives import strata_in
    from ttf.stats import sizes
    from ttf.stats.mttf import mean_time_to_failure
    from ttf.stats.over_time import failure_rate_over_time, with_domains
    from ttf.stats.projection import reach_of
    from ttf.stats.survival import survival_summary
    from ttf.tables import scan_columns, write_csv

    params, output = snakemake.params, snakemake.output
    lives = scan_columns(snakemake.input.lives, [*OF_LIVES, *params.strata])
    basis = lives.head(1).select(pl.col("basis").first()).collect().item()
    if params.gives == "jobs":
        nodes = pl.read_parquet(snakemake.input.nodes)
        gpus_a_node, came_from = sizes.node_gpus(nodes, params.node_gpus)
        sums = sizes.sums_by_nodes(lives, gpus_a_node)
        above_gpus = params.above_gpus
    else:
        # A component is a node or stands in one; one of LANL's nodes has no GPU.
        gpus_a_node = lives.select(pl.col("gpu_count").max()).collect(engine="streaming").item()
        sums = sizes.sums_of_components(lives)
        came_from, above_gpus = gpus_a_node and "trace", None
    law = sizes.size_law(sums, basis)
    rate = sizes.node_failure_rate(sums, basis, gpus_a_node, came_from, above_gpus, reach_of(sums, law))
    by_gpus = sizes.mttf_by_gpus(sums, rate, gpus_a_node)
    write_csv(by_gpus, output.mttf_by_gpus)
    write_csv(rate, output.node_failure_rate)
    write_csv(law, output.size_law)
    told, cause_is = lives, "cause"
    if basis == "proxy" and "reasons" in dict(snakemake.input.items()):
        # Nothing lays a failure to a cause but the words and codes that the taxonomy reads.
        named = scan_columns(snakemake.input.lives, [*OF_LIVES, "unit_id", "life_id"])
        told, cause_is = with_domains(named, pl.scan_parquet(snakemake.input.reasons)), "domain"
    over_time = failure_rate_over_time(told, basis, gpus_a_node, cause_is)
    write_csv(over_time, output.failure_rate_over_time)
    strata = strata_in(lives, params.strata)
    # On what ground the event is one of infrastructure: by proxy it is any failure.
    ground = pl.lit(basis, pl.String).alias("basis")
    write_csv(survival_summary(lives, EVENT, strata).with_columns(ground), output.survival_summary_infra)
    write_csv(mean_time_to_failure(lives, EVENT, strata).with_columns(ground), output.mttf_infra)
    study = Study(params.unit, params.synthetic)
    drawn = {
        "mttf_by_gpus": mttf_by_gpus_chart(by_gpus, rate, study),
        "failure_rate_over_time": over_time_chart(over_time, study),
    }
    save_charts(drawn, output.specs, output.index)
    failures = rate["failures"][0]
    return f"{failures:,} failures in {rate['node_days'][0]:,.0f} node-days ({basis})"


run_rule(main, snakemake)
