"""Rule write_config: the resolved configuration beside the results."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from pathlib import Path

    Path(snakemake.output[0]).write_text(snakemake.params.text, encoding="utf-8")


run_rule(main, snakemake)
