# The report: a self-contained page for each trace, made from its brief, tables, charts and numbers; it computes nothing.
rule write_config:
    """The configuration this study was run with: defaults, files and --config merged and checked."""
    output:
        f"{OWN}/config.yaml",
    log:
        f"logs/{HOME}/write_config.log",
    benchmark:
        f"benchmarks/{HOME}/write_config.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("write_config"),
    params:
        code=code_of("write_config"),
        text=as_it_is(dump(STUDY.config)),
    script:
        "../../scripts/write_config.py"


rule write_dictionary:
    """What every column of every table is: for notebooks, and whatever else reads the results."""
    output:
        f"{OWN}/dictionary.csv",
    log:
        f"logs/{HOME}/write_dictionary.log",
    benchmark:
        f"benchmarks/{HOME}/write_dictionary.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("write_dictionary"),
    params:
        code=code_of("write_dictionary", *(room.module for room in STUDY.rooms.values()), words=True),
        folders=STUDY.folders,
    script:
        "../../scripts/write_dictionary.py"


rule bundle_vega:
    """The program that draws the charts in the page, out of the packages of the environment: it never comes from a network."""
    output:
        vega=f"{OWN}/report/source/vega.txt",
    log:
        f"logs/{HOME}/bundle_vega.log",
    benchmark:
        f"benchmarks/{HOME}/bundle_vega.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("bundle_vega"),
    params:
        code=code_of("bundle_vega"),
    script:
        "../../scripts/bundle_vega.py"


OF_THE_TEMPLATE = sorted(
    seen_from_here(path)
    for path in (
        ROOT / "report" / "page.html",
        ROOT / "report" / "references.bib",
        *(ROOT / "report" / "page").iterdir(),
    )
)


rule write_page_template:
    """What all pages have in common: style, scripts and the program of the charts, as a template of both renderers."""
    input:
        vega=rules.bundle_vega.output.vega,
        files=[there(path) for path in OF_THE_TEMPLATE],
    output:
        template=f"{OWN}/report/source/page.html",
        bibliography=f"{OWN}/report/source/references.bib",
    log:
        f"logs/{HOME}/write_page_template.log",
    benchmark:
        f"benchmarks/{HOME}/write_page_template.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("write_page_template"),
    params:
        code=code_of("write_page_template"),
    script:
        "../../scripts/write_page_template.py"


rule write_page_source:
    """The page of a trace as .qmd: its brief, its sections and its appendix, from brief, numbers, tables and charts."""
    input:
        **of_page("page"),
        scorecard=rules.score_claims.output.scorecard,
        implied=rules.score_claims.output.implied,
    output:
        source=f"{OWN}/report/source/{{page}}.qmd",
    log:
        f"logs/{HOME}/write_page_source_{{page}}.log",
    benchmark:
        f"benchmarks/{HOME}/write_page_source_{{page}}.tsv"
    wildcard_constraints:
        page=any_of(STUDY.pages),
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("write_page_source"),
    params:
        **about_page("page"),
        code=code_of("write_page_source", *MODULES_OF_PAGES, words=True),
        significance=lookup("correlation/significance", within=config),
    script:
        "../../scripts/write_page_source.py"


if len(STUDY.names) > 1:

    rule write_comparison_source:
        """The page that compares the traces, as .qmd: a row for each, of what is defined alike."""
        input:
            products=lambda _: [path for trace in STUDY.subjects for path in given_to_page(trace)],
            templates=[there(path) for path in OF_THE_COMPARISON],
            citation=there(seen_from_here(ROOT / "CITATION.cff")),
        output:
            source=f"{OWN}/report/source/index.qmd",
        log:
            f"logs/{HOME}/write_comparison_source.log",
        benchmark:
            f"benchmarks/{HOME}/write_comparison_source.tsv"
        group:
            GROUP["report"]
        conda:
            ENVIRONMENT
        resources:
            **asks_for("write_comparison_source"),
        params:
            code=code_of("write_comparison_source", words=True),
            about={name: of_registry(name) for name in STUDY.names},
            pages=PAGES,
            page_of={trace: page for page, trace in STUDY.pages.items()},
            folders=STUDY.folders,
            publish=lookup("publish", within=config),
        script:
            "../../scripts/write_comparison_source.py"


rule render_page:
    """A page: by Quarto where it is on the PATH, else by Pandoc, from the same source and template."""
    input:
        source=f"{OWN}/report/source/{{page}}.qmd",
        template=rules.write_page_template.output.template,
        bibliography=rules.write_page_template.output.bibliography,
    output:
        page=f"{OWN}/report/{{page}}.html",
    log:
        f"logs/{HOME}/render_page_{{page}}.log",
    benchmark:
        f"benchmarks/{HOME}/render_page_{{page}}.tsv"
    wildcard_constraints:
        page=any_of(PAGES),
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("render_page"),
    params:
        code=code_of("render_page"),
        renderer=lambda _: page_renderer(),
    script:
        "../../scripts/render_page.py"


rule render_paper:
    """The page of a trace on paper, set by Typst: the brief on page 1, then the open part of each section."""
    input:
        **of_page("paper"),
    output:
        pdf=f"{OWN}/report/{{paper}}.pdf",
    log:
        f"logs/{HOME}/render_paper_{{paper}}.log",
    benchmark:
        f"benchmarks/{HOME}/render_paper_{{paper}}.tsv"
    wildcard_constraints:
        paper=any_of(PAPERS),
    conda:
        ENVIRONMENT
    resources:
        **asks_for("render_paper"),
    params:
        **about_page("paper"),
        code=code_of("render_paper", *MODULES_OF_PAGES, words=True),
    script:
        "../../scripts/render_paper.py"


rule pdf:
    """The report on paper: a PDF for each trace."""
    input:
        [f"{OWN}/report/{paper}.pdf" for paper in PAPERS],
    localrule: True
