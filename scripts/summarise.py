"""Every number that the report's sentences use: a cell of a table; of a trace its brief besides."""

from ttf.entry import run_rule


def main(snakemake):
    import json
    from importlib import import_module
    from pathlib import Path

    from ttf.analyses import contracts_of, join
    from ttf.inputs import Inputs
    from ttf.numbers.metrics import Metrics
    from ttf.numbers.stages import NUMBERS
    from ttf.page.brief import summed_up
    from ttf.stages import TABLES

    params = snakemake.params
    join(params.folders)
    files, contracts = dict(snakemake.input.items()), contracts_of(params.analyses) | {of.name: of for of in TABLES}
    metrics = Metrics()
    metrics.add(NUMBERS, Inputs(files, contracts, {}))
    for analysis in params.analyses:
        in_unit = import_module(f"ttf.analyses.{analysis}").ANALYSIS.in_size_unit
        given = Inputs(files, contracts, {}, in_size_unit=in_unit)
        metrics.unit = given.unit
        metrics.add(import_module(f"ttf.analyses.{analysis}.numbers").NUMBERS, given)
    if params.about:
        given = Inputs(files, contracts, {}, in_size_unit=True)
        metrics.unit = given.unit
        brief = summed_up(metrics, given, params.about)
        Path(snakemake.output.brief).write_text(brief.text(), encoding="utf-8")
    text = json.dumps(metrics, indent=1, ensure_ascii=False, allow_nan=False)
    Path(snakemake.output.metrics).write_text(text + "\n", encoding="utf-8")
    return f"{len(metrics):,} numbers"


run_rule(main, snakemake)
