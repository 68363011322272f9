"""Write every number of the report's sentences, each a cell of a table; for a trace also its brief."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    import json
    from importlib import import_module
    from pathlib import Path

    from ttf.analyses import add_folders, load_declaration, load_input_contracts, module_name
    from ttf.display.metrics import Metrics
    from ttf.engine.size_unit import GPU
    from ttf.page.brief.brief import summarise_trace
    from ttf.page.data_numbers import NUMBERS
    from ttf.records.inputs import Inputs

    params = snakemake.params
    add_folders(params.folders)
    inputs = Inputs(dict(snakemake.input.items()), load_input_contracts(params.analyses), {}, in_size_unit=True)
    metrics = Metrics()
    metrics.add(NUMBERS, inputs)
    for analysis in params.analyses:
        metrics.unit = inputs.unit if load_declaration(analysis).in_size_unit else GPU
        metrics.add(import_module(f"{module_name(analysis)}.numbers").NUMBERS, inputs)
    metrics.unit = inputs.unit
    brief = summarise_trace(metrics, inputs, params.about)
    Path(snakemake.output.brief).write_text(brief.text(), encoding="utf-8")
    text = json.dumps(metrics, indent=1, ensure_ascii=False, allow_nan=False)
    Path(snakemake.output.metrics).write_text(text + "\n", encoding="utf-8")
    return f"{len(metrics):,} numbers"


run_rule(main, snakemake)
