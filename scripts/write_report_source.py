"""Rule write_report_source: the report's .qmd, from templates, metrics, tables and charts."""

from ttf.entry import run_rule


def main(snakemake):
    import shutil
    from pathlib import Path

    from ttf.analyses.compare_traces.page import comparison_section
    from ttf.charts.theme import dark_style
    from ttf.report.blocks import Charts
    from ttf.report.scorecard import reference_section, scorecard_section
    from ttf.report.source import environment, report_source, trace_source
    from ttf.report.trace import Trace
    from ttf.report.words import unbroken
    from ttf.rooms import contracts, places

    params, own = snakemake.params, Path(snakemake.output.report).parents[2]
    templates = Path(next(path for path in snakemake.input.templates if path.endswith("report.qmd"))).parent
    jinja = environment(templates, {place.parent for place in places(params.folders).values()})
    folders = tuple(params.folders)
    tables = contracts(folders)
    traces = [
        Trace(name, number, params.about[name], own.parents[1] / name, tables)
        for number, name in enumerate(params.study, start=1)
    ]
    charts = Charts()
    for trace, path in zip(traces, snakemake.output.traces, strict=True):
        text = trace_source(jinja, trace, charts, params.drawn_by[trace.name], len(traces), folders)
        Path(path).write_text(unbroken(text), encoding="utf-8")
    sections = {"scorecard": scorecard_section(jinja, Path(snakemake.input.scorecard), Path(snakemake.input.implied))}
    sections["ettr_reference"] = reference_section(jinja, Path(snakemake.input.ettr_reference))
    if len(traces) > 1:
        about = {trace.name: trace.about for trace in traces}
        sections["comparison"] = comparison_section(jinja, about, own / "comparison", charts)
    text = report_source(jinja, traces, params.significance, sections, f"results/studies/{own.name}")
    Path(snakemake.output.report).write_text(unbroken(text), encoding="utf-8")
    header = [(templates / name).read_text(encoding="utf-8") for name in ("header.html", "tables.html")]
    Path(snakemake.output.header).write_text("".join([*header, dark_style()]), encoding="utf-8")
    Path(snakemake.output.charts).write_text(charts.script(), encoding="utf-8")
    shutil.copyfile(templates / "footer.html", snakemake.output.footer)
    shutil.copyfile(templates / "references.bib", snakemake.output.bibliography)
    shutil.copyfile(templates / "pdf.typ", snakemake.output.printed)
    shutil.copyfile(templates / "tables.lua", snakemake.output.tables)


run_rule(main, snakemake)
