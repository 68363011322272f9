"""Run any analysis, check its tables against their contracts, and write its folders of texts."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from collections.abc import Mapping
    from importlib import import_module

    from ttf.analyses import add_folders, load_declaration, load_input_contracts, module_name
    from ttf.engine.process.memory import keep_freed_arrays

    params, output = snakemake.params, snakemake.output
    add_folders(params.folders)
    analysis = load_declaration(params.analysis)
    keep_freed_arrays()
    module = import_module(f"{module_name(params.analysis)}.compute")
    from ttf.engine.provenance.digests import is_unchanged
    from ttf.engine.storage.on_disk import read_parquet
    from ttf.engine.storage.tables import write_folder, write_product
    from ttf.records.inputs import Inputs

    files = {name: inputs for name, inputs in snakemake.input.items() if inputs}  # empty if the trace has no such file
    contracts, in_size_unit = load_input_contracts(params.reads), analysis.in_size_unit
    declared = {table.name: table for table in analysis.tables}
    previous = {name: read_parquet(output[name]) for name in analysis.updated if is_unchanged(output[name])}
    # Another version of the workflow wrote other columns.
    previous = {name: table for name, table in previous.items() if table.schema == declared[name].schema}
    trace = snakemake.wildcards.trace
    inputs = Inputs(files, contracts, params.settings, trace, output[0], in_size_unit, previous, params.code)
    computed = module.compute(inputs)
    folders, rows, files = list(analysis.folders), 0, 0
    for name, product in computed.items() if isinstance(computed, Mapping) else computed:
        if name in folders:
            folders.remove(name)
            files += write_folder(product, output[name])
        else:
            rows += write_product(product, declared.pop(name), output[name], inputs.unit)
    if missing := [*declared, *folders]:
        raise ValueError(f"computed no {', '.join(missing)}")
    tables = len(analysis.tables)
    summary = f"{rows:,} rows in {tables} table{'s' * (tables != 1)}"
    if analysis.folders:
        summary += f", {files} file{'s' * (files != 1)} in {', '.join(analysis.folders)}"
    return summary


run_rule(main, snakemake)
