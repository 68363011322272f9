"""Rule draw_charts: tables -> every chart of the report, as Vega-Lite JSON."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.charts.catalogue import TABLES, builder
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.tables import read_csv

    tables = {name: read_csv(path) for name, path in snakemake.input.items() if name in TABLES}
    study = Study(snakemake.params.unit, snakemake.params.synthetic)
    output = snakemake.output
    names = [Path(spec).name.removesuffix(".vl.json") for spec in output.specs]
    drawn = {name: builder(name)(tables, study) for name in names}
    shown = save_charts(drawn, output.specs, output.index)
    return f"{shown} charts, {len(drawn) - shown} with nothing to draw"


run_rule(main, snakemake)
