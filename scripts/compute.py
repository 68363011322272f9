"""Any analysis: what its room computes, checked against the contracts of its tables and written."""

from ttf.entry import run_rule


def main(snakemake):
    from collections.abc import Mapping
    from importlib import import_module

    from ttf.analyses import contracts_of, join
    from ttf.memory import keep_freed_memory

    params, output = snakemake.params, snakemake.output
    join(params.folders)
    analysis = import_module(f"ttf.analyses.{params.analysis}").ANALYSIS
    if analysis.keeps_freed_memory:
        keep_freed_memory()  # before Polars is imported
    room = import_module(f"ttf.analyses.{params.analysis}.compute")
    from ttf.inputs import Inputs
    from ttf.tables import write_product

    files, trace = dict(snakemake.input.items()), snakemake.wildcards.trace
    given = Inputs(files, contracts_of(params.reads), params.settings, trace, output[0])
    computed, declared, rows = room.compute(given), {table.name: table for table in analysis.tables}, 0
    for name, product in computed.items() if isinstance(computed, Mapping) else computed:
        rows += write_product(product, declared.pop(name), output[name])
    if declared:
        raise ValueError(f"computed no {', '.join(declared)}")
    tables = len(analysis.tables)
    return f"{rows:,} rows in {tables} table{'s' * (tables != 1)}"


run_rule(main, snakemake)
