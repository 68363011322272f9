"""Every number that the report's sentences use: a cell of a table; of a trace its brief besides."""

from ttf.entry import run_rule


def main(snakemake):
    import json
    from importlib import import_module
    from pathlib import Path

    from ttf.analyses import contracts_of_inputs, join
    from ttf.inputs import Inputs
    from ttf.numbers.metrics import Metrics
    from ttf.numbers.stages import NUMBERS
    from ttf.page.brief import summed_up
    from ttf.size_unit import GPU

    params = snakemake.params
    join(params.folders)
    given = Inputs(dict(snakemake.input.items()), contracts_of_inputs(params.analyses), {}, in_size_unit=True)
    metrics = Metrics()
    metrics.add(NUMBERS, given)
    for analysis in params.analyses:
        in_unit = import_module(f"ttf.analyses.{analysis}").ANALYSIS.in_size_unit
        metrics.unit = given.unit if in_unit else GPU
        metrics.add(import_module(f"ttf.analyses.{analysis}.numbers").NUMBERS, given)
    if params.about:
        metrics.unit = given.unit
        brief = summed_up(metrics, given, params.about)
        Path(snakemake.output.brief).write_text(brief.text(), encoding="utf-8")
    text = json.dumps(metrics, indent=1, ensure_ascii=False, allow_nan=False)
    Path(snakemake.output.metrics).write_text(text + "\n", encoding="utf-8")
    return f"{len(metrics):,} numbers"


run_rule(main, snakemake)
