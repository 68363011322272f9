"""Rule fetch: a raw table from where the registry says it is, checked before it gets its name."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    import sys
    from pathlib import Path

    from ttf.raw.fetch import Download, fetch

    def report(line: str) -> None:
        print(f"  {snakemake.wildcards.trace}: fetch: {line}", file=sys.stderr, flush=True)

    return fetch(Path(snakemake.output.file), Download(**snakemake.params.download), report)


run_rule(main, snakemake)
