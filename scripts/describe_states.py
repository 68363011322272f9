"""Rule describe_states: jobs by state and by size, by number and by GPU time, and the summary row of the cluster."""

from ttf.entry import run_rule

JOBS = ["status_raw", "outcome", "gpu_milli", "size", "runtime_s", "queue_s", "submit_s", "start_s", "trace_end_s"]
LIVES = ["state", "gpu_milli", "duration_s", "event", "basis"]


def main(snakemake):
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.charts.states import size_mix_chart, states_chart
    from ttf.stats.states import cluster_summary, size_mix, states
    from ttf.tables import scan_columns, write_csv

    output, params = snakemake.output, snakemake.params
    jobs = scan_columns(snakemake.input.jobs, JOBS)
    by_state = states(jobs, scan_columns(snakemake.input.lives, LIVES), params.attempts)
    mix = size_mix(jobs)
    write_csv(by_state, output.states)
    write_csv(mix, output.size_mix)
    write_csv(cluster_summary(jobs), output.cluster_summary)
    study = Study(params.unit, params.synthetic)
    drawn = {"states": states_chart(by_state, study), "size_mix": size_mix_chart(mix, study)}
    save_charts(drawn, output.specs, output.index)
    return f"{by_state.filter(kind='state').height:,} states, {mix.height:,} sizes"


run_rule(main, snakemake)
