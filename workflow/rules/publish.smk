# What leaves the study: a site for any host of static files, and an archive for a repository. Neither is made by default.
from study.publication import published_on, sources_of_study

# Tables, charts, numbers; what was run, and how each file came about.
PUBLISHED = (".csv", ".vl.json", ".svg", "metrics.json", "brief.json", f"{OWN}/config.yaml", f"{OWN}/manifest.json")
RUN_REPORT = "logs/snakemake-report.html"
ABOUT_TRACES = {name: trace.about for name, trace in STUDY.traces.items()}


rule write_site_source:
    """The pages of the site as .qmd: the report's, an index of files, the data dictionary, a search over all traces."""
    input:
        reports=[f"{OWN}/report/source/{page}.qmd" for page in PAGES],
        template=rules.write_page_template.output.template,
        bibliography=rules.write_page_template.output.bibliography,
        blocks=there(seen_from_here(ROOT / "report" / "blocks.html")),
        products=lambda _: files_to_publish(*PUBLISHED),
        indexes=lambda _: files_to_publish("index.json"),
        papers=rules.pdf.input,
        run_report=[RUN_REPORT] if Path(RUN_REPORT).exists() else [],
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
        *code_of("write_site_source", *(room.module for room in STUDY.rooms.values()), words=True),
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
        papers=rules.pdf.input,
        products=lambda _: files_to_publish(*PUBLISHED),
        # It holds run times: with it, the site is another one after every run.
        run_report=[RUN_REPORT] if Path(RUN_REPORT).exists() else [],
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
        *code_of("publish_site"),
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
        renderer=as_it_is(which("quarto") or "pandoc"),
    script:
        "../../scripts/publish_site.py"


rule archive_results:
    """One file for a repository of research data: results, workflow, configuration, environment, and what describes them."""
    input:
        pages=[f"{OWN}/report/{page}.html" for page in PAGES],
        papers=rules.pdf.input,
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
        *code_of("archive_results", *(room.module for room in STUDY.rooms.values()), words=True),
        folders=STUDY.folders,
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
        date=lambda _: published_on(config["publish"], ROOT),
    script:
        "../../scripts/archive_results.py"
