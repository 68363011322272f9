"""Rule fetch: download a raw table from its address in the registry and check it before it gets its name."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    import sys
    from pathlib import Path

    from ttf.raw.fetch import Download, fetch

    def print_progress(line: str) -> None:
        print(f"  {snakemake.wildcards.trace}: fetch: {line}", file=sys.stderr, flush=True)

    return fetch(Path(snakemake.output.file), Download(**snakemake.params.download), print_progress)


run_rule(main, snakemake)
