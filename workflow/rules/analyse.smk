# One rule per analysis; then the charts of a trace, drawn from its tables, and the numbers for the report.


include: "analyses.smk"


TRACES_BY_RULE |= {name: analysis.traces for name, analysis in STUDY.analyses.items()}

# Analyses in folders outside the checkout, named in the study's configuration.
for analysis in STUDY.external_analyses:

    rule:
        name:
            analysis.name
        input:
            unpack(lambda wildcards, analysis=analysis: mark_inputs(analysis.inputs(wildcards.trace))),
        output:
            **{
                name: table(path, analysis.title, name in analysis.declaration.updated)
                for name, path in analysis.outputs().items()
            },
            **{name: directory(path) for name, path in analysis.folders().items()},
        log:
            f"logs/{{trace}}/{analysis.name}.log",
        benchmark:
            f"benchmarks/{{trace}}/{analysis.name}.tsv"
        group:
            GROUP["analyses"]
        conda:
            ENVIRONMENT
        threads: analysis.declaration.threads
        resources:
            **request_resources(analysis.name),
        params:
            **analysis_params(analysis.name),
        script:
            "../../scripts/compute.py"


# One rule per set of charts, named after the format of its traces.
for kind, traces in STUDY.traces_by_chart_set.items():
    figures = "results/{edition}{trace}/figures"

    rule:
        """Draw every chart of a trace as Vega-Lite and SVG; the main charts also in a narrow version for phones."""
        name:
            f"draw_charts_{kind}"
        input:
            unpack(
                lambda wildcards: mark_inputs(
                    choose_tables(wildcards.edition, STUDY.find_chart_inputs(wildcards.trace))
                )
            ),
        output:
            index=f"{figures}/index.json",
            specs=[f"{figures}/{chart}.vl.json" for chart in STUDY.list_charts(traces[0])],
            svgs=[
                mark_for_report(f"{figures}/{chart}.svg", "chart", analysis.title)
                for chart, analysis in STUDY.list_charts(traces[0]).items()
            ],
            narrow=[f"{figures}/{chart}.narrow.svg" for chart in STUDY.list_main_charts(traces[0])],
        log:
            "logs/{edition}{trace}/draw_charts.log",
        benchmark:
            "benchmarks/{edition}{trace}/draw_charts.tsv"
        wildcard_constraints:
            trace=match_names(traces),
        group:
            EDITION_GROUP
        conda:
            ENVIRONMENT
        resources:
            **request_resources("draw_charts"),
        params:
            code=hash_code(
                "draw_charts",
                by_trace=lambda wildcards: [
                    f"{analysis.module}.charts" for analysis in STUDY.list_chart_analyses(wildcards.trace)
                ],
            ),
            charts=lambda wildcards: {
                analysis.name: [analysis.charts(wildcards.trace), analysis.settings(wildcards.trace)]
                for analysis in STUDY.list_chart_analyses(wildcards.trace)
            },
            main=lambda wildcards: STUDY.list_main_charts(wildcards.trace),
            folders=lambda wildcards: STUDY.select_external_folders(
                [analysis.name for analysis in STUDY.list_chart_analyses(wildcards.trace)]
                + STUDY.list_producers(STUDY.find_chart_inputs(wildcards.trace))
            ),
            reads=lambda wildcards: STUDY.list_producers(STUDY.find_chart_inputs(wildcards.trace)),
            unit=lambda wildcards: get_trace(wildcards).unit,
            subject=lambda wildcards: get_trace(wildcards).subject,
            synthetic=lambda wildcards: get_trace(wildcards).synthetic,
        script:
            "../../scripts/draw_charts.py"

    TRACES_BY_RULE[f"draw_charts_{kind}"] = traces


rule summarise:
    """Collect every number that the report uses, and write the brief of a trace: the first screen of its page."""
    input:
        unpack(
            lambda wildcards: mark_inputs(choose_tables(wildcards.edition, STUDY.find_summary_inputs(wildcards.trace)))
        ),
    output:
        brief="results/{edition}{trace}/brief.json",
        metrics="results/{edition}{trace}/metrics.json",
    log:
        "logs/{edition}{trace}/summarise.log",
    benchmark:
        "benchmarks/{edition}{trace}/summarise.tsv"
    group:
        EDITION_GROUP
    conda:
        ENVIRONMENT
    resources:
        **request_resources("summarise"),
    params:
        code=hash_code(
            "summarise",
            by_trace=lambda wildcards: [
                module
                for analysis in STUDY.list_analyses(wildcards.trace)
                for module in (analysis.module, *analysis.list_modules("numbers"))
            ],
        ),
        analyses=lambda wildcards: [
            analysis.name for analysis in STUDY.list_analyses(wildcards.trace) if analysis.has_module("numbers")
        ],
        folders=lambda wildcards: STUDY.select_external_folders(
            analysis.name for analysis in STUDY.list_analyses(wildcards.trace)
        ),
        about=lambda wildcards: STUDY.build_brief_options(wildcards.trace),
    script:
        "../../scripts/summarise.py"


TRACES_BY_RULE |= {"summarise": STUDY.names}
