"""Rule ask_again: the questions of study 1 as it asked them, and beside them the same asked well."""

from ttf.entry import run_rule


def main(snakemake):
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.charts.study1 import CHARTS
    from ttf.replication.study1 import ask_again
    from ttf.stats.features import FEATURES
    from ttf.tables import read_csv, scan_columns, write_csv

    given, params, output = snakemake.input, snakemake.params, snakemake.output
    study = Study(params.unit, params.synthetic)
    tables = [read_csv(path) for path in (given.correlations, given.runtime_by_group, given.mttf)]
    of_features = [feature.column for feature in FEATURES]
    jobs = scan_columns(given.jobs, ["outcome", "runtime_s", "start_s", "trace_end_s", *of_features])
    table = ask_again(jobs, *tables, study.units, params.significance)
    write_csv(table, output.study1)
    drawn = {name: draw(table, study, params.significance) for name, draw in CHARTS.items()}
    save_charts(drawn, output.specs, output.index)
    return f"{table.height:,} questions, {(table['verdict'] == 'kept').sum():,} answered alike"


run_rule(main, snakemake)
