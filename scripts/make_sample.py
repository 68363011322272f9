"""Rule make_sample: a synthetic trace in the layout of a format."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    # One of a closed list: the registry's schema admits no other.
    sample = importlib.import_module(f"ttf.formats.{snakemake.params.format}.sample")
    rows = sample.write_sample(Path(snakemake.output[0]).parent, **snakemake.params.generate)
    return f"{sum(rows.values()):,} rows in {len(rows)} tables (synthetic)"


run_rule(main, snakemake)
