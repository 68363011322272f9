"""Rule fetch: a raw table from where the registry says it is, checked before it gets its name."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.fetch import Wanted, fetch, to_stderr

    trace = snakemake.wildcards.trace
    wanted = Wanted(**snakemake.params.download)
    return fetch(Path(snakemake.output.file), wanted, report=lambda line: to_stderr(f"{trace}: fetch: {line}"))


run_rule(main, snakemake)
