"""Rule judge_lifetimes: how the failure rate changes with age, where a constant one misleads, and a plot per model."""

from ttf.entry import run_rule

READ = ("event", "stratum_by", "stratum", "time_s", "at_risk", "events", "survival")


def main(snakemake):
    from ttf.charts.figure import Study
    from ttf.charts.probability import probability_plots
    from ttf.charts.saving import save_charts
    from ttf.stats.verdict import lifetime_verdict
    from ttf.tables import read_csv, scan_columns, write_csv

    params, output = snakemake.params, snakemake.output
    curves = scan_columns(snakemake.input.curves, READ)
    models = read_csv(snakemake.input.models)
    verdict = lifetime_verdict(models, curves)
    write_csv(verdict, output.lifetime_verdict)
    study = Study(params.unit, params.synthetic)
    drawn = {
        "probability_plots": probability_plots(curves, models, "all", study),
        "probability_plots_by_stratum": probability_plots(curves, models, params.stratum_by, study),
    }
    save_charts(drawn, output.specs, output.index)
    misleads = int(verdict["misleads"].sum())
    return f"a constant mean time to failure misleads in {misleads:,} of {verdict.height:,} strata and causes"


run_rule(main, snakemake)
