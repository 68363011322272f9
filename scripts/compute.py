"""Any analysis: what its room computes, checked against the contracts of its tables, and folders of texts."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from collections.abc import Mapping
    from importlib import import_module

    from ttf.analyses import contracts_of_inputs, declaration_of, join, module_name
    from ttf.engine.process.memory import keep_freed_memory

    params, output = snakemake.params, snakemake.output
    join(params.folders)
    analysis = declaration_of(params.analysis)
    if analysis.keeps_freed_memory:
        keep_freed_memory()  # before Polars is imported
    room = import_module(f"{module_name(params.analysis)}.compute")
    from ttf.engine.provenance.digests import is_intact
    from ttf.engine.storage.on_disk import read_parquet
    from ttf.engine.storage.tables import write_folder, write_product
    from ttf.records.inputs import Inputs

    files = {name: given for name, given in snakemake.input.items() if given}  # else the trace has none
    contracts, in_unit = contracts_of_inputs(params.reads), analysis.in_size_unit
    declared = {table.name: table for table in analysis.tables}
    previous = {name: read_parquet(output[name]) for name in analysis.updated if is_intact(output[name])}
    # Another version of the workflow wrote other columns.
    previous = {name: table for name, table in previous.items() if table.schema == declared[name].schema}
    trace = snakemake.wildcards.trace
    given = Inputs(files, contracts, params.settings, trace, output[0], in_unit, previous, params.code)
    computed = room.compute(given)
    folders, rows, files = list(analysis.folders), 0, 0
    for name, product in computed.items() if isinstance(computed, Mapping) else computed:
        if name in folders:
            folders.remove(name)
            files += write_folder(product, output[name])
        else:
            rows += write_product(product, declared.pop(name), output[name], given.unit)
    if lacking := [*declared, *folders]:
        raise ValueError(f"computed no {', '.join(lacking)}")
    tables = len(analysis.tables)
    said = f"{rows:,} rows in {tables} table{'s' * (tables != 1)}"
    return f"{said}, {files} file{'s' * (files != 1)} in {', '.join(analysis.folders)}" if analysis.folders else said


run_rule(main, snakemake)
