"""Rule measure_drift: what moved between windows of the submission time, or against another trace."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.charts.drift import drift_chart
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.quality.drift import between, by_window, drift_table
    from ttf.tables import write_csv

    jobs = pl.read_parquet(snakemake.input.jobs)
    windows, trace = snakemake.params.windows, snakemake.wildcards.trace
    comparisons = by_window(jobs, windows["by"], snakemake.params.parts) if "by" in windows else []
    if "against" in windows:
        other = pl.read_parquet(snakemake.input.against)
        comparisons += between(other, jobs, (windows["against"], trace))
    table = drift_table(comparisons)
    output = snakemake.output
    write_csv(table, output.drift)
    drawn = drift_chart(table, Study(snakemake.params.unit, snakemake.params.synthetic))
    save_charts({"drift": drawn}, output.specs, output.index)
    moved = int((table["p_adjusted"] < 0.05).sum())
    return f"{table.height:,} comparisons, {moved:,} differ beyond chance"


run_rule(main, snakemake)
