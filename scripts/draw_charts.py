"""All charts of a trace, or of the comparison, from the tables alone: as Vega-Lite and as pictures."""

from ttf.entry import run_rule


def main(snakemake):
    from importlib import import_module

    from ttf.analyses import contracts_of, join
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.fonts import hide_system_fonts
    from ttf.inputs import Inputs

    hide_system_fonts()
    params, output = snakemake.params, snakemake.output
    join(params.folders)
    files, contracts = dict(snakemake.input.items()), contracts_of(params.reads)
    study, tables = Study(params.unit, params.synthetic), {}
    for charts, _ in params.charts.values():
        tables |= {name: [contracts[table].path for table in names] for name, names in charts.items()}

    def drawn():
        for analysis, (charts, settings) in params.charts.items():
            given = Inputs(files, contracts, settings)
            build = import_module(f"ttf.analyses.{analysis}.charts").CHARTS
            yield from ((name, build[name](given, study)) for name in charts)

    shown = save_charts(drawn(), tables, output.specs, output.svgs, output.index)
    return f"{shown} charts, {len(tables) - shown} with nothing to draw"


run_rule(main, snakemake)
