"""Every number that the report's sentences use, with its unit, n and source table; of a trace its brief besides."""

from ttf.entry import run_rule


def main(snakemake):
    import json
    from importlib import import_module
    from pathlib import Path

    from ttf.analyses import contracts_of, join
    from ttf.analyses.fit_mttf.numbers import of_mttf_range
    from ttf.brief.brief import summed_up
    from ttf.inputs import Inputs
    from ttf.numbers.metrics import Metrics
    from ttf.numbers.stages import of_stages
    from ttf.stages import TABLES

    params = snakemake.params
    join(params.folders)
    files, contracts = dict(snakemake.input.items()), contracts_of(params.analyses) | {of.name: of for of in TABLES}
    metrics = Metrics()
    of_stages(metrics, Inputs(files, contracts, {}))
    for analysis, settings in params.analyses.items():
        room = import_module(f"ttf.analyses.{analysis}.numbers")
        room.numbers(metrics, Inputs(files, contracts, settings))
    of_mttf_range(metrics)
    if params.about:
        brief = summed_up(metrics, Inputs(files, contracts, {}), params.about)
        Path(snakemake.output.brief).write_text(brief.text(), encoding="utf-8")
    text = json.dumps(metrics, indent=1, ensure_ascii=False, allow_nan=False)
    Path(snakemake.output.metrics).write_text(text + "\n", encoding="utf-8")
    return f"{len(metrics):,} numbers"


run_rule(main, snakemake)
