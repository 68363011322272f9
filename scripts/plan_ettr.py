"""Rule plan_ettr: what to expect of a job run at every size, from the failure rate of a node and habits."""

from ttf.entry import run_rule

OF_LIVES = ("unit_id", "life_id", "submit_s", "start_s", "event", "gpu_milli")


def main(snakemake):
    from ttf.charts.contour import contour_chart
    from ttf.charts.ettr import ettr_by_gpus
    from ttf.charts.figure import Study
    from ttf.charts.planner import planner
    from ttf.charts.saving import save_charts
    from ttf.stats.contour import ettr_contour
    from ttf.stats.job_runs import queue_of
    from ttf.stats.plans import Habits, assumptions, mitigation_table, node_rate, plan_tables
    from ttf.tables import read_csv, scan_columns, write_csv

    params, output = snakemake.params, snakemake.output
    asked = params.ettr
    rates = read_csv(snakemake.input.rate)
    rate = node_rate(rates, read_csv(snakemake.input.by_gpus))
    queue = queue_of(scan_columns(snakemake.input.lives, OF_LIVES), asked.get("queue_s"))
    habits = [
        Habits(interval, asked["checkpoint_write_s"], asked["restart_s"], queue["value"], asked["productive_s"])
        for interval in asked["checkpoint_intervals_s"]
    ]
    sizes = sorted({*asked["gpus"], asked["run_gpus"]})
    table, outlook = plan_tables(rate, habits, sizes, asked["simulations"], asked["seed"])
    write_csv(table, output.ettr)
    write_csv(outlook, output.ettr_outlook)
    write_csv(mitigation_table(rate, habits[0], sizes), output.mitigations)
    assumed = assumptions(rates, habits[0], queue, asked["run_gpus"])
    write_csv(assumed, output.ettr_assumptions)
    contour = ettr_contour(rate, habits[0], asked["run_gpus"])
    write_csv(contour, output.ettr_contour)
    study = Study(params.unit, params.synthetic)
    drawn = {
        "ettr_by_gpus": ettr_by_gpus(table, rates, asked["run_gpus"], study),
        "ettr_contour": contour_chart(contour, rate, habits[0], study),
        "ettr_planner": planner(rates, rate, habits[0], asked["run_gpus"], study),
    }
    save_charts(drawn, output.specs, output.index)
    return f"{table.height:,} plans"


run_rule(main, snakemake)
