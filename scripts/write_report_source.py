"""Rule write_report_source: the report's .qmd, from templates, metrics, tables and charts."""

from ttf.entry import run_rule


def main(snakemake):
    import shutil
    from pathlib import Path

    import vl_convert
    from ttf.report.source import environment, report_source, trace_source
    from ttf.report.trace import Trace

    templates = Path(next(path for path in snakemake.input.templates if path.endswith("report.qmd"))).parent
    jinja = environment(templates)
    results = Path(snakemake.output.report).parents[2]
    params = snakemake.params
    comparison = results / "comparison" if snakemake.input.comparison else None
    traces = [
        Trace(name, number, params.about[name], results / name) for number, name in enumerate(params.study, start=1)
    ]
    for trace, path in zip(traces, snakemake.output.traces, strict=True):
        text = trace_source(jinja, trace, params.cutoffs_s)
        Path(path).write_text(text, encoding="utf-8")
    Path(snakemake.output.report).write_text(
        report_source(jinja, traces, params.significance, comparison), encoding="utf-8"
    )
    for name in ("header", "footer"):
        shutil.copyfile(templates / f"{name}.html", snakemake.output[name])
    shutil.copyfile(templates / "references.bib", snakemake.output.bibliography)
    Path(snakemake.output.vega).write_text(vl_convert.javascript_bundle(), encoding="utf-8")


run_rule(main, snakemake)
