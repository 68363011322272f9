"""Draw all charts of a trace from the tables, as Vega-Lite and as pictures."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from importlib import import_module

    from ttf.analyses import add_folders, load_contracts, load_declaration, module_name
    from ttf.display.charts.figure import Study
    from ttf.display.charts.saving import save_charts
    from ttf.engine.process.fonts import hide_system_fonts
    from ttf.engine.size_unit import GPU
    from ttf.records.inputs import Inputs, read_size_unit

    hide_system_fonts()
    params, output = snakemake.params, snakemake.output
    add_folders(params.folders)
    files, contracts = dict(snakemake.input.items()), load_contracts(params.reads)
    unit = read_size_unit(files.get("size_unit"))
    tables = {}
    for charts, _ in params.charts.values():
        tables |= {name: [contracts[table].path for table in names] for name, names in charts.items()}

    def draw_named_charts():
        for analysis, (charts, settings) in params.charts.items():
            inputs, declaration = Inputs(files, contracts, settings), load_declaration(analysis)
            size = unit if declaration.in_size_unit else GPU
            options = params.unit, params.synthetic
            study, narrow = (Study(*options, is_narrow, params.subject, size) for is_narrow in (False, True))
            build = import_module(f"{module_name(analysis)}.charts").CHARTS
            for name in charts:
                yield name, build[name](inputs, study), build[name](inputs, narrow) if name in params.main else None

    count = save_charts(draw_named_charts(), tables, output.specs, output.svgs, output.get("narrow", []), output.index)
    return f"{count} charts, {len(tables) - count} with nothing to draw"


run_rule(main, snakemake)
