# Publication: a site for any static host, an archive for a data repository, figures for papers. None is made by default.
from ttf.study.publication import list_source_files
from ttf.engine.provenance.key import KEY, ensure_key

# Tables, charts, numbers, configuration and manifest.
PUBLISHED_ENDINGS = (".csv", ".vl.json", ".svg", "metrics.json", "brief.json")
PUBLISHED_ENDINGS += (f"{STUDY_RESULTS}/config.yaml", f"{STUDY_RESULTS}/manifest.json")
TRACE_DESCRIPTIONS = {name: describe_trace(name, published=True) for name in STUDY.names}

PUBLISHED_REPORT = f"results/{PUBLISHED}{STUDY_FOLDER}/report"
PUBLISHED_PAPERS = [f"{PUBLISHED_REPORT}/{paper}.pdf" for paper in PAPERS]


for trace in STUDY.edited_traces:
    tables = sorted(path for path in flatten_paths(list_trace_jobs()) if path.startswith(f"results/{trace}/"))
    tables = [path for path in tables if path.endswith(".csv")]

    rule:
        """Write the tables of a trace with pseudonyms and without free text, unless names are public, and without prices."""
        name:
            f"pseudonymise_{trace}"
        input:
            tables=tables,
            key=(lambda _: mark_local(str(ensure_key(KEY)))) if trace in STUDY.pseudonymised_traces else [],
        output:
            tables=[choose_edition(PUBLISHED, path) for path in tables],
        log:
            f"logs/{PUBLISHED}pseudonymise_{trace}.log",
        benchmark:
            f"benchmarks/{PUBLISHED}pseudonymise_{trace}.tsv"
        group:
            GROUP["published"]
        conda:
            ENVIRONMENT
        resources:
            **request_resources("publish_site"),
        params:
            code=hash_code("pseudonymise", *ANALYSIS_MODULES, words=True),
            folders=STUDY.folders,
            hides_prices=STUDY.hides_prices,
        script:
            "../../scripts/pseudonymise.py"


rule publish_site:
    """Build the site: pages, PDFs, and every table and chart as a file."""
    input:
        reports=[f"{PUBLISHED_REPORT}/source/{page}.qmd" for page in PAGES],
        template=f"{PUBLISHED_REPORT}/source/page.html",
        bibliography=f"{PUBLISHED_REPORT}/source/references.bib",
        blocks=mark_local(make_relative(ROOT / "report" / "blocks.html")),
        papers=PUBLISHED_PAPERS,
        products=lambda _: list_public_files(*PUBLISHED_ENDINGS),
        indexes=lambda _: list_public_files("index.json"),
        citation=mark_local(make_relative(ROOT / "CITATION.cff")),
    output:
        site=directory(f"{STUDY_RESULTS}/site"),
    log:
        f"logs/{STUDY_FOLDER}/publish_site.log",
    benchmark:
        f"benchmarks/{STUDY_FOLDER}/publish_site.tsv"
    conda:
        ENVIRONMENT
    resources:
        **request_resources("publish_site"),
    params:
        code=hash_code("publish_site", *ANALYSIS_MODULES, words=True),
        folders=STUDY.folders,
        settings=PUBLICATION,
        traces=TRACE_DESCRIPTIONS,
        pages=PAGES,
        renderer=lambda _: page_renderer(),
    script:
        "../../scripts/publish_site.py"


rule export_figures:
    """Write each chart for papers, as PDF and as SVG, and a list of their captions."""
    input:
        products=lambda _: list_public_files(".svg", ".vl.json"),
        indexes=lambda _: list_public_files("figures/index.json"),
    output:
        figures=directory(f"{STUDY_RESULTS}/figures"),
    log:
        f"logs/{STUDY_FOLDER}/export_figures.log",
    benchmark:
        f"benchmarks/{STUDY_FOLDER}/export_figures.tsv"
    conda:
        ENVIRONMENT
    resources:
        **request_resources("export_figures"),
    params:
        code=hash_code("export_figures"),
    script:
        "../../scripts/export_figures.py"


rule archive_results:
    """Build the archive for a data repository: results, workflow, configuration, environment and metadata."""
    input:
        pages=[f"{PUBLISHED_REPORT}/{page}.html" for page in PAGES],
        papers=PUBLISHED_PAPERS,
        products=lambda _: list_public_files(*PUBLISHED_ENDINGS),
        indexes=lambda _: list_public_files("index.json"),
        sources=lambda _: [mark_local(make_relative(path)) for path in list_source_files()],
        citation=mark_local(make_relative(ROOT / "CITATION.cff")),
    output:
        archive=f"{STUDY_RESULTS}/archive/time-to-failure-results.tar.xz",
    log:
        f"logs/{STUDY_FOLDER}/archive_results.log",
    benchmark:
        f"benchmarks/{STUDY_FOLDER}/archive_results.tsv"
    conda:
        ENVIRONMENT
    resources:
        **request_resources("archive_results"),
    params:
        code=hash_code("archive_results", *ANALYSIS_MODULES, words=True),
        folders=STUDY.folders,
        settings=PUBLICATION,
        traces=TRACE_DESCRIPTIONS,
        date=lambda _: find_publication_date(config["publish"], ROOT),
    script:
        "../../scripts/archive_results.py"
