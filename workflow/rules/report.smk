# The report: one self-contained page per trace, made from its brief, tables, charts and numbers.
rule write_config:
    """Write the resolved configuration: defaults, files and --config, merged and checked."""
    output:
        f"results/{{edition}}{STUDY_FOLDER}/config.yaml",
    log:
        f"logs/{{edition}}{STUDY_FOLDER}/write_config.log",
    benchmark:
        f"benchmarks/{{edition}}{STUDY_FOLDER}/write_config.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("write_config"),
    params:
        code=hash_code("write_config"),
        text=lambda wildcards: dump(STUDY.published_config if wildcards.edition else STUDY.config),
    script:
        "../../scripts/write_config.py"


rule write_dictionary:
    """Write the data dictionary: a description of every column of every table."""
    output:
        f"{STUDY_RESULTS}/dictionary.csv",
    log:
        f"logs/{STUDY_FOLDER}/write_dictionary.log",
    benchmark:
        f"benchmarks/{STUDY_FOLDER}/write_dictionary.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("write_dictionary"),
    params:
        code=hash_code("write_dictionary", *ANALYSIS_MODULES, words=True),
        folders=STUDY.folders,
    script:
        "../../scripts/write_dictionary.py"


TEMPLATE_PARTS = sorted(
    make_relative(path)
    for path in (
        ROOT / "report" / "page.html",
        ROOT / "report" / "references.bib",
        *(ROOT / "report" / "page").iterdir(),
    )
)


rule write_page_template:
    """Write the template of all pages, for both renderers: style, scripts and the chart library, from no network."""
    input:
        files=[mark_local(path) for path in TEMPLATE_PARTS],
    output:
        template=f"results/{{edition}}{STUDY_FOLDER}/report/source/page.html",
        bibliography=f"results/{{edition}}{STUDY_FOLDER}/report/source/references.bib",
    log:
        f"logs/{{edition}}{STUDY_FOLDER}/write_page_template.log",
    benchmark:
        f"benchmarks/{{edition}}{STUDY_FOLDER}/write_page_template.tsv"
    # It would take a core from a job that needs two.
    priority: -10
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("write_page_template"),
    params:
        code=hash_code("write_page_template"),
    script:
        "../../scripts/write_page_template.py"


rule write_page_source:
    """Write the page of a trace as .qmd: brief, sections and appendix."""
    input:
        **page_inputs("page"),
        scorecard=rules.score_claims.output.scorecard,
        tables=rules.score_claims.output.tables,
        published=rules.score_claims.output.published,
    output:
        source=f"results/{{edition}}{STUDY_FOLDER}/report/source/{{page}}.qmd",
    log:
        f"logs/{{edition}}{STUDY_FOLDER}/write_page_source_{{page}}.log",
    benchmark:
        f"benchmarks/{{edition}}{STUDY_FOLDER}/write_page_source_{{page}}.tsv"
    wildcard_constraints:
        page=match_names(STUDY.pages),
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("write_page_source"),
    params:
        **page_params("page"),
        code=hash_code("write_page_source", *PAGE_MODULES, words=True),
        significance=lookup("correlation/significance", within=config),
    script:
        "../../scripts/write_page_source.py"


if len(STUDY.names) > 1:

    rule write_comparison_source:
        """Compare the traces, by quantities that are defined alike, in a table and in a page as .qmd."""
        input:
            # In the order of the study.
            metrics=lambda wildcards: [
                choose_edition(wildcards.edition, f"results/{trace}/metrics.json") for trace in STUDY.names
            ],
            briefs=lambda wildcards: [
                choose_edition(wildcards.edition, f"results/{trace}/brief.json") for trace in STUDY.names
            ],
            templates=[mark_local(path) for path in COMPARISON_TEMPLATES],
            citation=mark_local(make_relative(ROOT / "CITATION.cff")),
        output:
            source=f"results/{{edition}}{STUDY_FOLDER}/report/source/index.qmd",
            table=mark_for_report(
                f"results/{{edition}}{STUDY_FOLDER}/comparison.csv", "table", "Comparison of the traces", trace="all"
            ),
        log:
            f"logs/{{edition}}{STUDY_FOLDER}/write_comparison_source.log",
        benchmark:
            f"benchmarks/{{edition}}{STUDY_FOLDER}/write_comparison_source.tsv"
        group:
            GROUP["report"]
        conda:
            ENVIRONMENT
        resources:
            **request_resources("write_comparison_source"),
        params:
            code=hash_code("write_comparison_source", words=True),
            about={name: describe_trace(name) for name in STUDY.names},
            pages=PAGES,
            page_by_trace={trace: page for page, trace in STUDY.pages.items()},
            publish=PUBLICATION,
        script:
            "../../scripts/write_comparison_source.py"


rule render_page:
    """Render a page by Quarto if it is on the PATH, else by Pandoc, from the same source and template."""
    input:
        source=f"results/{{edition}}{STUDY_FOLDER}/report/source/{{page}}.qmd",
        template=rules.write_page_template.output.template,
        bibliography=rules.write_page_template.output.bibliography,
    output:
        page=f"results/{{edition}}{STUDY_FOLDER}/report/{{page}}.html",
    log:
        f"logs/{{edition}}{STUDY_FOLDER}/render_page_{{page}}.log",
    benchmark:
        f"benchmarks/{{edition}}{STUDY_FOLDER}/render_page_{{page}}.tsv"
    wildcard_constraints:
        page=match_names(PAGES),
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("render_page"),
    params:
        code=hash_code("render_page"),
        renderer=lambda _: page_renderer(),
    script:
        "../../scripts/render_page.py"


rule render_paper:
    """Typeset the page of a trace as a PDF by Typst: the brief on page 1, then the open part of each section."""
    input:
        **page_inputs("paper"),
    output:
        pdf=f"results/{{edition}}{STUDY_FOLDER}/report/{{paper}}.pdf",
    log:
        f"logs/{{edition}}{STUDY_FOLDER}/render_paper_{{paper}}.log",
    benchmark:
        f"benchmarks/{{edition}}{STUDY_FOLDER}/render_paper_{{paper}}.tsv"
    wildcard_constraints:
        paper=match_names(PAPERS),
    conda:
        ENVIRONMENT
    resources:
        **request_resources("render_paper"),
    params:
        **page_params("paper"),
        code=hash_code("render_paper", *PAGE_MODULES, words=True),
    script:
        "../../scripts/render_paper.py"


rule pdf:
    """Make the report as PDFs, one per trace."""
    input:
        [f"{STUDY_RESULTS}/report/{paper}.pdf" for paper in PAPERS],
    localrule: True
