"""Rule make_sample: a synthetic trace in the layout of the PAI 2020 tables."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.sample import write_sample

    folder = Path(snakemake.output.task).parent
    rows = write_sample(folder, snakemake.params.tasks, snakemake.params.seed)
    return f"{sum(rows.values()):,} rows in {len(rows)} tables (synthetic)"


run_rule(main, snakemake)
