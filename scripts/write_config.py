"""Rule write_config: write the resolved configuration next to the results."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> None:
    from pathlib import Path

    Path(snakemake.output[0]).write_text(snakemake.params.text, encoding="utf-8")


run_rule(main, snakemake)
