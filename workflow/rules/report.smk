# The report: one self-contained page made from tables, charts and metrics; it computes nothing.


rule write_config:
    """The configuration this study was run with: defaults, files and --config merged and checked."""
    output:
        f"{OWN}/config.yaml",
    log:
        f"logs/{HOME}/write_config.log",
    benchmark:
        f"benchmarks/{HOME}/write_config.tsv"
    group:
        "report"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("write_config"),
    params:
        *code_of("write_config"),
        text=dump(STUDY.config),
    script:
        "../../scripts/write_config.py"


rule bundle_vega:
    """The program that draws the charts in the page, out of the packages of the environment: it never comes from a network."""
    output:
        vega=f"{OWN}/report/source/vega.js",
    log:
        f"logs/{HOME}/bundle_vega.log",
    benchmark:
        f"benchmarks/{HOME}/bundle_vega.tsv"
    group:
        "report"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("bundle_vega"),
    params:
        *code_of("bundle_vega"),
    script:
        "../../scripts/bundle_vega.py"


TEMPLATES = sorted(
    seen_from_here(path)
    for folder in (ROOT / "report", *(room.place for room in STUDY.rooms.values()))
    for path in folder.rglob("*")
    if path.suffix in (".qmd", ".html", ".bib", ".typ") or path.name == "tables.lua"
)


rule write_report_source:
    """The report as .qmd: the templates under report/ filled in with every trace's metrics, tables and charts."""
    input:
        products=lambda _: given_to_report(),
        ettr_reference=rules.recompute_ettr.output.reference,
        scorecard=rules.score_claims.output.scorecard,
        implied=rules.score_claims.output.implied,
        templates=[local(path) for path in TEMPLATES],
    output:
        report=f"{OWN}/report/source/report.qmd",
        traces=of_every_trace(f"{OWN}/report/source/_{{trace}}.qmd"),
        header=f"{OWN}/report/source/header.html",
        footer=f"{OWN}/report/source/footer.html",
        bibliography=f"{OWN}/report/source/references.bib",
        printed=f"{OWN}/report/source/pdf.typ",
        tables=f"{OWN}/report/source/tables.lua",
        charts=f"{OWN}/report/source/charts.js",
    log:
        f"logs/{HOME}/write_report_source.log",
    benchmark:
        f"benchmarks/{HOME}/write_report_source.tsv"
    group:
        "report"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("write_report_source"),
    params:
        *code_of(
            "write_report_source",
            *(module for room in STUDY.rooms.values() for module in (room.module, *room.module_of("page"))),
            words=True,
        ),
        study=STUDY.names,
        about={
            name: trace.about | {"analyses": [room.name for room in STUDY.rooms_of(name)]}
            for name, trace in STUDY.traces.items()
        },
        drawn_by={trace: f"draw_charts_{kind}" for kind, traces in STUDY.drawn_alike.items() for trace in traces},
        folders=STUDY.folders,
        significance=lookup("correlation/significance", within=config),
    script:
        "../../scripts/write_report_source.py"


rule render_report:
    """The page: by Quarto where it is on the PATH, else by Pandoc, from the same source."""
    input:
        report=f"{OWN}/report/source/report.qmd",
        traces=of_every_trace(f"{OWN}/report/source/_{{trace}}.qmd"),
        header=f"{OWN}/report/source/header.html",
        footer=f"{OWN}/report/source/footer.html",
        bibliography=f"{OWN}/report/source/references.bib",
        vega=f"{OWN}/report/source/vega.js",
        charts=f"{OWN}/report/source/charts.js",
        filter=local(seen_from_here(ROOT / "report" / "pandoc.lua")),
        style=local(seen_from_here(ROOT / "report" / "pandoc.css")),
    output:
        page=f"{OWN}/report/index.html",
    log:
        f"logs/{HOME}/render_report.log",
    benchmark:
        f"benchmarks/{HOME}/render_report.tsv"
    group:
        "report"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("render_report"),
    params:
        *code_of("render_report"),
    script:
        "../../scripts/render_report.py"


rule render_pdf:
    """The report as a PDF with the charts as they are published: by Quarto where it is on the PATH, else by Pandoc and Typst."""
    input:
        report=f"{OWN}/report/source/report.qmd",
        traces=of_every_trace(f"{OWN}/report/source/_{{trace}}.qmd"),
        bibliography=f"{OWN}/report/source/references.bib",
        printed=f"{OWN}/report/source/pdf.typ",
        tables=f"{OWN}/report/source/tables.lua",
        charts=[
            f"results/{STUDY.place(trace)}/figures/{chart}.svg"
            for trace in STUDY.subjects
            for chart in STUDY.charts(trace)
        ],
        filter=local(seen_from_here(ROOT / "report" / "pandoc.lua")),
    output:
        pdf=f"{OWN}/report/report.pdf",
    log:
        f"logs/{HOME}/render_pdf.log",
    benchmark:
        f"benchmarks/{HOME}/render_pdf.tsv"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("render_pdf"),
    params:
        *code_of("render_pdf"),
    script:
        "../../scripts/render_pdf.py"
