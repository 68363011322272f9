"""Rule classify_failures: the reason of every failed attempt, by the rules of the taxonomy."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.charts.taxonomy import taxonomy_chart
    from ttf.log_tails import read_tails
    from ttf.tables import write_csv, write_parquet
    from ttf.taxonomy import (
        REASON_COLUMNS,
        classify,
        every_attempt,
        in_tails,
        most_characters,
        taxonomy_table,
        unmatched_table,
    )

    inputs, output, taxonomy = dict(snakemake.input.items()), snakemake.output, snakemake.params.taxonomy
    attempts = pl.read_parquet(inputs["attempts"]) if "attempts" in inputs else None
    every = every_attempt(pl.read_parquet(inputs["jobs"]), attempts)
    tails = read_tails(Path(inputs["log_tails"]), most_characters(taxonomy)) if "log_tails" in inputs else []
    of_logs, lines = in_tails(tails, every, taxonomy)
    classified = classify(every.filter("failed"), taxonomy, of_logs)
    table = taxonomy_table(classified)
    write_parquet(classified.select(REASON_COLUMNS), output.reasons)
    write_csv(table, output.taxonomy)
    write_csv(unmatched_table(classified, of_logs), output.unmatched)
    write_csv(lines, output.log_tails)
    drawn = taxonomy_chart(table, Study(snakemake.params.unit, snakemake.params.synthetic))
    save_charts({"taxonomy": drawn}, output.specs, output.index)
    return f"{classified.height:,} failed attempts, {classified['reason'].count():,} with a reason"


run_rule(main, snakemake)
