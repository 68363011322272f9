"""Rule make_sample: a synthetic trace in the layout of a format."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    # The format is one of a closed list: the registry's schema admits no other.
    format_ = importlib.import_module(f"ttf.sample.{snakemake.params.format}")
    rows = format_.write_sample(Path(snakemake.output[0]).parent, **snakemake.params.generate)
    return f"{sum(rows.values()):,} rows in {len(rows)} tables (synthetic)"


run_rule(main, snakemake)
