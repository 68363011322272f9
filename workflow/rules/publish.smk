# What leaves the study: a site for any host of static files, and an archive for a repository. Neither is made by default.
from study.publication import published_on, sources_of_study

# Tables, charts, numbers; what was run, and how each file came about.
PUBLISHED = (".csv", ".vl.json", ".svg", "metrics.json", "results/config.yaml", "results/manifest.json")
RUN_REPORT = "logs/snakemake-report.html"
ABOUT_TRACES = {
    trace: {key: entry[key] for key in ("title", "source", "licence", "citation", "note") if key in entry}
    | {"synthetic": trace in GENERATED}
    for trace, entry in REGISTRY.items()
}


rule publish_site:
    """The page, every table and chart as a file and an index of them; with Snakemake's own report where it was made."""
    input:
        page="results/report/index.html",
        products=lambda _: files_to_publish(*PUBLISHED),
        indexes=lambda _: files_to_publish("index.json"),
        # It holds run times: with it, the site is another one after every run.
        run_report=[RUN_REPORT] if Path(RUN_REPORT).exists() else [],
        citation=local(seen_from_here(ROOT / "CITATION.cff")),
        code=code_of("publish_site"),
    output:
        site=directory("results/site"),
    log:
        "logs/publish_site.log",
    benchmark:
        "benchmarks/publish_site.tsv"
    conda:
        "../../environment.yml"
    params:
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
    script:
        "../../scripts/publish_site.py"


rule archive_results:
    """One file for a repository of research data: results, workflow, configuration, environment, and what describes them."""
    input:
        page="results/report/index.html",
        products=lambda _: files_to_publish(*PUBLISHED),
        indexes=lambda _: files_to_publish("index.json"),
        sources=lambda _: [local(seen_from_here(path)) for path in sources_of_study(ROOT)],
        citation=local(seen_from_here(ROOT / "CITATION.cff")),
        code=code_of("archive_results"),
    output:
        archive="results/archive/time-to-failure-results.tar.xz",
    log:
        "logs/archive_results.log",
    benchmark:
        "benchmarks/archive_results.tsv"
    conda:
        "../../environment.yml"
    params:
        settings=lookup("publish", within=config),
        traces=ABOUT_TRACES,
        date=lambda _: published_on(config["publish"], ROOT),
    script:
        "../../scripts/archive_results.py"


rule published:
    """The site, for `make publish`."""
    input:
        rules.publish_site.output,
    localrule: True


rule archived:
    """The archive, for `make archive`."""
    input:
        rules.archive_results.output,
    localrule: True
