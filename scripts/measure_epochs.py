"""Rule measure_epochs: the loss log and the jobs -> by which of their epochs jobs came to their lowest loss."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.charts.epochs import CHARTS
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.stats import epochs
    from ttf.tables import write_csv

    output = snakemake.output
    best = epochs.of_jobs(epochs.read_loss_log(snakemake.input.losses), pl.read_parquet(snakemake.input.jobs))
    tables = {"epochs": epochs.epochs_table(best), "epochs_summary": epochs.epochs_summary(best)}
    for name, table in tables.items():
        write_csv(table, output[name])
    study = Study(snakemake.params.unit, snakemake.params.synthetic)
    drawn = {name: draw(tables, study) for name, draw in CHARTS.items()}
    save_charts(drawn, output.specs, output.index)
    return f"{best['epochs'].sum():,} epochs of {best.height:,} jobs"


run_rule(main, snakemake)
