"""Rule unpack_sample: unpack the raw tables of an embedded sample."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.raw.packed_samples import unpack_sample

    tables = unpack_sample(Path(snakemake.input.packed), snakemake.params.sha256, Path(snakemake.output[0]).parent)
    return f"{tables} files (synthetic)"


run_rule(main, snakemake)
