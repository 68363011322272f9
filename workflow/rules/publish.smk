# What leaves the study: a site for any host of static files, and an archive for a repository. Neither is made by default.
from study.publication import published_on, sources_of_study, without_paths
from ttf.engine.provenance.key import KEY, made_key

# Tables, charts, numbers; what was run, and how each file came about.
PUBLISHED = (".csv", ".vl.json", ".svg", "metrics.json", "brief.json", f"{OWN}/config.yaml", f"{OWN}/manifest.json")
# With names in it: it has every table.
RUN_REPORT = "logs/snakemake-report.html"
OF_THE_RUN = [RUN_REPORT] if Path(RUN_REPORT).exists() and not STUDY.pseudonymised else []
ABOUT_TRACES = {name: of_registry(name, published=True) for name in STUDY.names}

# What is published of the pages: those of the study, or those that name nobody.
PUBLIC_PAGES = [f"{PUBLIC}/{HOME}/report/{page}.html" for page in PAGES]
PUBLIC_PAPERS = [f"{PUBLIC}/{HOME}/report/{paper}.pdf" for paper in PAPERS]


for trace in STUDY.pseudonymised:
    tables = sorted(path for path in paths_in(jobs_of_traces()) if path.startswith(f"results/{trace}/"))
    tables = [path for path in tables if path.endswith(".csv")]

    rule:
        """The tables of a trace with other names for its users, accounts and nodes, and without what people wrote."""
        name:
            f"pseudonymise_{trace}"
        input:
            tables=tables,
            key=lambda _: there(str(made_key(KEY))),
        output:
            tables=[public(path) for path in tables],
        log:
            f"logs/{HOME}/published/pseudonymise_{trace}.log",
        benchmark:
            f"benchmarks/{HOME}/published/pseudonymise_{trace}.tsv"
        group:
            GROUP["published"]
        conda:
            ENVIRONMENT
        resources:
            **asks_for("publish_site"),
        params:
            code=code_of("pseudonymise", *(room.module for room in STUDY.rooms.values()), words=True),
            folders=STUDY.folders,
        script:
            "../../scripts/pseudonymise.py"


if STUDY.pseudonymised:

    use rule write_config as write_config_published with:
        output:
            public(f"{OWN}/config.yaml"),
        log:
            f"logs/{HOME}/published/write_config.log",
        benchmark:
            f"benchmarks/{HOME}/published/write_config.tsv"
        params:
            text=as_it_is(dump(without_paths(STUDY.config))),

    use rule write_page_template as write_page_template_published with:
        output:
            template=f"{PUBLIC}/{HOME}/report/source/page.html",
            bibliography=f"{PUBLIC}/{HOME}/report/source/references.bib",
        log:
            f"logs/{HOME}/published/write_page_template.log",
        benchmark:
            f"benchmarks/{HOME}/published/write_page_template.tsv"

    use rule write_page_source as write_page_source_published with:
        input:
            **of_page("page", public),
            scorecard=rules.score_claims.output.scorecard,
            implied=rules.score_claims.output.implied,
        output:
            source=f"{PUBLIC}/{HOME}/report/source/{{page}}.qmd",
        log:
            f"logs/{HOME}/published/write_page_source_{{page}}.log",
        benchmark:
            f"benchmarks/{HOME}/published/write_page_source_{{page}}.tsv"
        params:
            about=lambda wildcards: of_registry(TRACE_OF[wildcards.page], published=True),

    use rule render_page as render_page_published with:
        input:
            source=f"{PUBLIC}/{HOME}/report/source/{{page}}.qmd",
            template=rules.write_page_template_published.output.template,
            bibliography=rules.write_page_template_published.output.bibliography,
        output:
            page=f"{PUBLIC}/{HOME}/report/{{page}}.html",
        log:
            f"logs/{HOME}/published/render_page_{{page}}.log",
        benchmark:
            f"benchmarks/{HOME}/published/render_page_{{page}}.tsv"

    use rule render_paper as render_paper_published with:
        input:
            **of_page("paper", public),
        output:
            pdf=f"{PUBLIC}/{HOME}/report/{{paper}}.pdf",
        log:
            f"logs/{HOME}/published/render_paper_{{paper}}.log",
        benchmark:
            f"benchmarks/{HOME}/published/render_paper_{{paper}}.tsv"
        params:
            about=lambda wildcards: of_registry(TRACE_OF[wildcards.paper], published=True),


if STUDY.pseudonymised and len(STUDY.names) > 1:

    use rule write_comparison_source as write_comparison_source_published with:
        input:
            products=lambda _: [path for trace in STUDY.subjects for path in given_to_page(trace, public)],
            templates=[there(path) for path in OF_THE_COMPARISON],
            citation=there(seen_from_here(ROOT / "CITATION.cff")),
        output:
            source=f"{PUBLIC}/{HOME}/report/source/index.qmd",
        log:
            f"logs/{HOME}/published/write_comparison_source.log",
        benchmark:
            f"benchmarks/{HOME}/published/write_comparison_source.tsv"


rule write_site_source:
    """The pages of the site as .qmd: the report's, an index of files, the data dictionary, a search over all traces."""
    input:
        reports=[f"{PUBLIC}/{HOME}/report/source/{page}.qmd" for page in PAGES],
        template=rules.write_page_template.output.template,
        bibliography=rules.write_page_template.output.bibliography,
        blocks=there(seen_from_here(ROOT / "report" / "blocks.html")),
        products=lambda _: files_to_publish(*PUBLISHED),
        indexes=lambda _: files_to_publish("index.json"),
        papers=PUBLIC_PAPERS,
        run_report=OF_THE_RUN,
        citation=there(seen_from_here(ROOT / "CITATION.cff")),
    output:
        project=directory(f"{OWN}/report/site-source"),
    log:
        f"logs/{HOME}/write_site_source.log",
    benchmark:
        f"benchmarks/{HOME}/write_site_source.tsv"
    conda:
        ENVIRONMENT
    resources:
        **asks_for("write_site_source"),
    params:
        code=code_of("write_site_source", *(room.module for room in STUDY.rooms.values()), words=True),
        folders=STUDY.folders,
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
        pages=PAGES,
    script:
        "../../scripts/write_site_source.py"


rule publish_site:
    """The pages, the report on paper, every table and chart as a file; with Snakemake's own report where it was made."""
    input:
        source=rules.write_site_source.output.project,
        papers=PUBLIC_PAPERS,
        products=lambda _: files_to_publish(*PUBLISHED),
        # It holds run times: with it, the site is another one after every run.
        run_report=OF_THE_RUN,
        citation=there(seen_from_here(ROOT / "CITATION.cff")),
    output:
        site=directory(f"{OWN}/site"),
    log:
        f"logs/{HOME}/publish_site.log",
    benchmark:
        f"benchmarks/{HOME}/publish_site.tsv"
    conda:
        ENVIRONMENT
    resources:
        **asks_for("publish_site"),
    params:
        code=code_of("publish_site", *(room.module for room in STUDY.rooms.values()), words=True),
        folders=STUDY.folders,
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
        renderer=lambda _: page_renderer(),
    script:
        "../../scripts/publish_site.py"


rule archive_results:
    """One file for a repository of research data: results, workflow, configuration, environment, and what describes them."""
    input:
        pages=PUBLIC_PAGES,
        papers=PUBLIC_PAPERS,
        products=lambda _: files_to_publish(*PUBLISHED),
        indexes=lambda _: files_to_publish("index.json"),
        sources=lambda _: [there(seen_from_here(path)) for path in sources_of_study(ROOT)],
        citation=there(seen_from_here(ROOT / "CITATION.cff")),
    output:
        archive=f"{OWN}/archive/time-to-failure-results.tar.xz",
    log:
        f"logs/{HOME}/archive_results.log",
    benchmark:
        f"benchmarks/{HOME}/archive_results.tsv"
    conda:
        ENVIRONMENT
    resources:
        **asks_for("archive_results"),
    params:
        code=code_of("archive_results", *(room.module for room in STUDY.rooms.values()), words=True),
        folders=STUDY.folders,
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
        date=lambda _: published_on(config["publish"], ROOT),
    script:
        "../../scripts/archive_results.py"
