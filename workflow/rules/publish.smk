# What leaves the study: a site for any host of static files, and an archive for a repository. Neither is made by default.
from study.publication import published_on, sources_of_study

# Tables, charts, numbers; what was run, and how each file came about.
PUBLISHED = (".csv", ".vl.json", ".svg", "metrics.json", f"{OWN}/config.yaml", f"{OWN}/manifest.json")
RUN_REPORT = "logs/snakemake-report.html"
ABOUT_TRACES = {name: trace.about for name, trace in STUDY.traces.items()}


rule write_site_source:
    """The report as a Quarto website, a page for each trace and theme: `quarto render` in its folder makes the site."""
    input:
        report=f"{OWN}/report/source/report.qmd",
        traces=of_every_trace(f"{OWN}/report/source/_{{trace}}.qmd"),
        header=f"{OWN}/report/source/header.html",
        footer=f"{OWN}/report/source/footer.html",
        bibliography=f"{OWN}/report/source/references.bib",
        vega=f"{OWN}/report/source/vega.js",
        charts=f"{OWN}/report/source/charts.js",
        citation=local(seen_from_here(ROOT / "CITATION.cff")),
    output:
        project=directory(f"{OWN}/report/site-source"),
    log:
        f"logs/{HOME}/write_site_source.log",
    benchmark:
        f"benchmarks/{HOME}/write_site_source.tsv"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("write_site_source"),
    params:
        *code_of("write_site_source"),
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
    script:
        "../../scripts/write_site_source.py"


rule publish_site:
    """The page, the PDF, every table and chart as a file and an index of them; with Snakemake's own report where it was made.

    Where Quarto is on the PATH also a page for each trace and theme, with search, under pages/.
    """
    input:
        page=f"{OWN}/report/index.html",
        pdf=rules.pdf.input,
        pages=rules.write_site_source.output.project,
        products=lambda _: files_to_publish(*PUBLISHED),
        indexes=lambda _: files_to_publish("index.json"),
        # It holds run times: with it, the site is another one after every run.
        run_report=[RUN_REPORT] if Path(RUN_REPORT).exists() else [],
        citation=local(seen_from_here(ROOT / "CITATION.cff")),
    output:
        site=directory(f"{OWN}/site"),
    log:
        f"logs/{HOME}/publish_site.log",
    benchmark:
        f"benchmarks/{HOME}/publish_site.tsv"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("publish_site"),
    params:
        *code_of("publish_site", *(room.module for room in STUDY.rooms.values()), words=True),
        folders=STUDY.folders,
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
    script:
        "../../scripts/publish_site.py"


rule archive_results:
    """One file for a repository of research data: results, workflow, configuration, environment, and what describes them."""
    input:
        page=f"{OWN}/report/index.html",
        pdf=rules.pdf.input,
        products=lambda _: files_to_publish(*PUBLISHED),
        indexes=lambda _: files_to_publish("index.json"),
        sources=lambda _: [local(seen_from_here(path)) for path in sources_of_study(ROOT)],
        citation=local(seen_from_here(ROOT / "CITATION.cff")),
    output:
        archive=f"{OWN}/archive/time-to-failure-results.tar.xz",
    log:
        f"logs/{HOME}/archive_results.log",
    benchmark:
        f"benchmarks/{HOME}/archive_results.tsv"
    conda:
        "../../environment.yml"
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
