# The study, read and checked before any job; then what only Snakemake knows: storage, its own report, its jobs.
import re
from functools import cache

from ttf.study.configuration.config import dump
from ttf.study.running.products import find_deleted_products, flatten_paths, select_first_products, select_targets
from ttf.study.publication import find_publication_date
from ttf.study.running.start import load_study
from ttf.study.study import SMALL_GB, match_names
from ttf.engine.checkout import CHECKOUT as ROOT
from ttf.engine.errors import StudyError
from ttf.engine.storage.links import path_for_snakemake
from ttf.engine.storage.plain_files import make_relative
from ttf.page.render.render import renderer_version

# Snakemake fills in braces in this path, so the braces of a folder's name are doubled.
ENVIRONMENT = str(ROOT / "environment.yml").replace("{", "{{").replace("}", "}}")
# The store that holds products instead of the disk (--default-storage-prefix); see docs/cluster.md.
STORE_PREFIX = f"{(workflow.storage_settings.default_storage_prefix or '').rstrip('/')}/"
IS_STORED = workflow.storage_settings.default_storage_provider is not None

# A scheduler receives the jobs of a group together (--jobs limits how many). On one machine, groups would cost a tenth
# of the planning time.
IS_DISTRIBUTED = workflow.resource_settings.nodes is not None or is_used_as_module(workflow)
GROUP = {name: name if IS_DISTRIBUTED else None for name in ("parts", "analyses", "report", "published")}
EDITION_GROUP = (lambda wildcards: "published" if wildcards.edition else "analyses") if IS_DISTRIBUTED else None

STUDY = load_study(workflow, IS_STORED)
STUDY_FOLDER, STUDY_RESULTS = STUDY.study_folder, f"results/{STUDY.study_folder}"
COMPARISON = f"{STUDY_RESULTS}/comparison.csv"
config = STUDY.config  # a workflow that uses this one as a module keeps its own config
# The metadata of the results, with the year that citations name.
PUBLICATION = config["publish"] | {"year": find_publication_date(config["publish"], ROOT)[:4]}


def get_trace(wildcards):
    return STUDY.traces[wildcards.trace]


def hash_code(script, *modules, by_trace=None, words=False):
    """Return the digest of a script's code, a parameter by which Snakemake reruns its rule; comments do not count.

    It covers the modules that the script imports, `modules`, and those that `by_trace` returns for the wildcards of a
    job. words: whether the sentences of declarations count.
    """
    if by_trace is None:
        return STUDY.hash_code(script, *modules, words=words)
    # Traces of one format share a digest.
    digest = cache(lambda *named: STUDY.hash_code(script, *modules, *named, words=words))
    return lambda wildcards: digest(*by_trace(wildcards))


@cache
def page_renderer():
    """Return name and version of the renderer: a new version reruns the pages, a new folder does not.

    None if only the jobs have a renderer (--sdm conda), or if it does not run; then the job reports the error.
    """
    try:
        return renderer_version()
    except (ModuleNotFoundError, StudyError):
        return None


def mark_local(path):
    return local(path_for_snakemake(path))


def mark_inputs(files):
    """Mark the files that no rule makes, in a mapping or a list, as inputs on the disk.

    Files of external analyses are `ancient`: a parameter of the rule says when they changed.
    """
    if isinstance(files, dict):
        return {name: mark_inputs(path) for name, path in files.items()}
    if isinstance(files, list):
        return [mark_inputs(path) for path in files]
    if files in STUDY.generated_files or files.startswith("results/"):
        return files
    return ancient(mark_local(files)) if files in STUDY.external_files else mark_local(files)


def choose_threads(max_threads):
    """Return the threads of a job; 1 for a small trace, where two parallel jobs beat one job on all cores."""

    def count_threads(wildcards):
        _, raw_gb = STUDY.measure_raw_tables(wildcards.trace, wildcards.get("part"))
        return max_threads if raw_gb > SMALL_GB else 1

    return count_threads


def request_resources(name):
    """Return the memory and the time that a job requests from a scheduler; they grow with each attempt."""

    def select_trace(wildcards):
        trace = TRACE_BY_PAGE.get(wildcards.get("page", wildcards.get("paper")))
        page_trace = {"trace": trace} if trace else {}
        return page_trace | {key: value for key, value in wildcards.items() if key in ("trace", "part")}

    return {
        "mem_mb": lambda wildcards, attempt: STUDY.estimate_memory_mb(name, attempt, **select_trace(wildcards)),
        "runtime": lambda wildcards, attempt: STUDY.estimate_runtime_min(attempt, **select_trace(wildcards)),
    }


# Values of the wildcard {edition}, a folder below results/, logs/ and benchmarks/: empty for the study itself, and
# PUBLISHED, which differs where names or prices are left out. The same rules make both editions; those of PUBLISHED
# read edited tables.
PUBLISHED = f"{STUDY_FOLDER}/published/" if STUDY.edited_traces else ""


def choose_edition(edition, path):
    """Return the path of a product in an edition; both have the same products of traces that are not edited."""
    trace, file = path.removeprefix("results/").split("/", 1)
    is_edited = trace in STUDY.edited_traces or path in (f"{STUDY_RESULTS}/config.yaml", COMPARISON)
    return f"results/{edition}{trace}/{file}" if is_edited else path


def choose_tables(edition, files):
    """Return a rule's inputs with the tables of an edition."""
    tables = {name: path for name, path in files.items() if isinstance(path, str) and path.endswith(".csv")}
    return files | {name: choose_edition(edition, path) for name, path in tables.items() if path.startswith("results/")}


def mark_for_report(path, kind, theme, trace="{trace}"):
    """Mark a table or a chart for Snakemake's own report, except Parquet files."""
    if path.endswith(".parquet"):
        return path
    labels = {"trace": trace, "what": Path(path).name.split(".")[0].replace("_", " "), "kind": kind}
    return report(path, caption=f"../report/{kind}.rst", category=theme, labels=labels)


def analysis_params(name):
    analysis = STUDY.analyses[name]
    modules = [STUDY.analyses[input_name].module for input_name in analysis.input_analyses]
    return {
        "code": hash_code("compute", f"{analysis.module}.compute", *modules),
        "analysis": name,
        "folders": STUDY.select_external_folders([name, *analysis.input_analyses]),
        "reads": analysis.input_analyses,
        "settings": lambda wildcards: analysis.settings(wildcards.trace),
    }


def optional_input(path):
    """Return an input function that gives no file for traces without this one."""
    return lambda wildcards: (
        file if (file := path.format(trace=wildcards.trace)) in STUDY.list_paths(wildcards.trace) else []
    )


def registry_file(name):
    """Return an input function for a file that the registry names besides the raw tables."""
    return lambda wildcards: mark_inputs(STUDY.find_file(wildcards.trace, name) or [])


def get_size_unit(wildcards):
    return STUDY.find_size_unit(wildcards.trace)


def table(path, theme, is_updated=False):
    """Mark a table of an analysis; is_updated: the job finds the table of its last run."""
    output = mark_for_report(path, "table", theme)
    return update(output) if is_updated else output


def expand_traces(pattern):
    return collect(pattern, trace=STUDY.names)


def get_plain_paths(outputs):
    """Return the outputs of a rule as the rule file writes them, of the study's own edition.

    Snakemake adds the constraint of a wildcard behind its name and, for products in a store, the path of their copy.
    """
    paths = [path.storage_object.query.removeprefix(STORE_PREFIX) if path.is_storage else str(path) for path in outputs]
    return [re.sub(r"\{(\w+),[^}]*\}", r"{\1}", path).replace("{edition}", "") for path in paths]


# Rule -> the traces that it makes products for; the targets, the report and the manifest request them.
TRACES_BY_RULE = {}


@cache
def get_rule_products(name):
    return get_plain_paths(getattr(rules, name).output)


def list_jobs(subjects):
    """Return a list of products for each job of these traces, without the report."""
    return [
        [path.format(trace=trace) for path in get_rule_products(name)]
        for name, traces in TRACES_BY_RULE.items()
        for trace in traces
        if trace in subjects
    ]


@cache
def list_trace_jobs():
    return list_jobs(STUDY.names)


def list_study_jobs():
    """Return a list of products for each job of the study.

    They include the PDF only if it exists, or if it, the site or the archive is a target.
    """
    with_papers = () if STUDY.edited_traces else ("publish_site", "archive_results")
    with_pdf = {workflow.modifier.modify_rulename(name) for name in ("pdf", *with_papers)}
    pages = [[f"{STUDY_RESULTS}/report/{page}.html"] for page in PAGES]
    compared = [[COMPARISON]] if len(STUDY.names) > 1 else []
    study_rules = (rules.write_config, rules.write_dictionary, rules.score_claims)
    papers = [f"{STUDY_RESULTS}/report/{paper}.pdf" for paper in PAPERS]
    if Path(papers[0]).exists() or with_pdf.intersection(workflow.dag_settings.targets):
        pages += [[paper] for paper in papers]
    # Plain paths: for paths that know their rule, Snakemake would hash the whole list again for every file.
    return pages + compared + [get_plain_paths(rule.output) for rule in study_rules] + list_trace_jobs()


def select_all_targets():
    """Return the targets that request all products; a missing manifest requests one product of each job itself."""
    is_missing = not IS_STORED and not Path(*get_plain_paths(rules.write_manifest.output)).exists()
    return find_deleted_products(list_study_jobs()) if is_missing else select_targets(list_study_jobs(), IS_STORED)


def list_public_files(*endings):
    # The manifest has prices, and names raw files, whose names may identify a person.
    manifest = [] if STUDY.edited_traces else [get_plain_paths(rules.write_manifest.output)]
    paths = flatten_paths([*list_study_jobs(), *manifest])
    return sorted(
        choose_edition(PUBLISHED, path) for path in paths if path.endswith(endings) and not path.endswith(".narrow.svg")
    )


def list_page_files(trace):
    """Return the tables, charts and numbers that the page of a trace reads."""
    return sorted(path for path in flatten_paths(list_jobs([trace])) if path.endswith((".csv", ".json", ".svg")))


def list_page_inputs(trace):
    """Return a few inputs that stand for all files of a page: the numbers are made after all tables.

    Snakemake computes a checksum of every input for every output. In a store, a job needs every file it reads.
    """
    if IS_STORED:
        return list_page_files(trace)
    return [f"results/{trace}/{name}" for name in ("metrics.json", "brief.json", "figures/index.json")]


def list_extra_inputs(name, wildcards):
    return list_page_files(STUDY.pages[wildcards["page"]]) if name == "write_page_source" else ()


# Page -> its title, the comparison first. PAPERS: page on paper -> its trace.
PAGES = ({"index": "Comparison"} if len(STUDY.names) > 1 else {}) | {
    page: STUDY.traces[trace].description.get("title", trace) for page, trace in STUDY.pages.items()
}
PAPERS = {"report" if page == "index" else page: trace for page, trace in STUDY.pages.items()}
TRACE_BY_PAGE = STUDY.pages | PAPERS
ANALYSIS_MODULES = [analysis.module for analysis in STUDY.analyses.values()]
PAGE_MODULES = [
    *ANALYSIS_MODULES,
    *(name for analysis in STUDY.analyses.values() for name in analysis.list_modules("page")),
]
TEMPLATES = sorted(
    make_relative(path)
    for folder in (ROOT / "report", *(analysis.folder for analysis in STUDY.analyses.values()))
    for path in folder.rglob("*")
    if path.suffix in (".qmd", ".typ") or path.name in ("blocks.html", "comparison.html")
)
COMPARISON_TEMPLATES = [path for path in TEMPLATES if Path(path).name in ("blocks.html", "comparison.html")]
PAPER_TEMPLATES = [path for path in TEMPLATES if Path(path).name != "comparison.html"]
PAGE_TEMPLATES = [path for path in PAPER_TEMPLATES if Path(path).suffix != ".typ"]


def describe_trace(trace, published=False):
    """Return the registry's description of a trace and its analyses; published: also whether names are pseudonyms."""
    names = {"pseudonyms": True} if published and trace in STUDY.pseudonymised_traces else {}
    analyses = [analysis.name for analysis in STUDY.list_analyses(trace)]
    return STUDY.traces[trace].description | {"analyses": analyses} | names


def page_inputs(wildcard):
    """Return the inputs of a page; wildcard: `page` for the screen, `paper` for paper."""
    return dict(
        metrics=lambda wildcards: choose_edition(
            wildcards.edition, f"results/{TRACE_BY_PAGE[wildcards[wildcard]]}/metrics.json"
        ),
        products=lambda wildcards: [
            choose_edition(wildcards.edition, path) for path in list_page_inputs(TRACE_BY_PAGE[wildcards[wildcard]])
        ],
        templates=[mark_local(path) for path in (PAPER_TEMPLATES if wildcard == "paper" else PAGE_TEMPLATES)],
        citation=mark_local(make_relative(ROOT / "CITATION.cff")),
    )


def page_params(wildcard):
    return dict(
        page=lambda wildcards: wildcards[wildcard],
        pages=PAGES,
        trace=lambda wildcards: TRACE_BY_PAGE[wildcards[wildcard]],
        about=lambda wildcards: describe_trace(TRACE_BY_PAGE[wildcards[wildcard]], published=wildcards.edition),
        folders=STUDY.folders,
        publish=PUBLICATION,
    )


wildcard_constraints:
    edition=f"({PUBLISHED})?",
    trace=match_names(STUDY.names),
