# The study: read and checked before any job. Below it what only Snakemake knows: storage, its own report, its jobs.
import re
from functools import cache

from study.config import dump
from study.study_analysis import OF_STUDY
from study.products import asked_of, deleted_of, one_of_each, paths_in
from study.start import study_of
from study.study import SMALL_GB, any_of, seen_from_here
from ttf.engine.errors import StudyError
from ttf.engine.storage.links import linked
from ttf.page.render.render import renderer

ROOT = WORKFLOW.parent
# Snakemake fills in what stands in the braces of this path, once it is whole: those of a folder's name are doubled.
ENVIRONMENT = str(ROOT / "environment.yml").replace("{", "{{").replace("}", "}}")
# Where products lie in place of the disk (--default-storage-prefix); see docs/cluster.md.
STORE = f"{(workflow.storage_settings.default_storage_prefix or '').rstrip('/')}/"
STORED = workflow.storage_settings.default_storage_provider is not None

# Where jobs are sent elsewhere, those of a group are sent together, so many at a time (--jobs); where all run here,
# groups would be a tenth of a plan.
SENT = workflow.resource_settings.nodes is not None or in_module(workflow)
GROUP = {name: name if SENT else None for name in ("parts", "analyses", "report", "published")}

STUDY = study_of(workflow, ROOT, STORED)
HOME, OWN = STUDY.own, f"results/{STUDY.own}"
config = STUDY.config  # another workflow that uses this one keeps its own


def trace_of(wildcards):
    return STUDY.traces[wildcards.trace]


def code_of(script, *modules, by_trace=None, words=False):
    """A digest of the modules that a script imports, a parameter of its rule, of which Snakemake keeps account; of the
    named modules too, and those that `by_trace` names for the wildcards of a job. A comment reruns nothing.
    words: the sentences of declarations count.
    """
    if by_trace is None:
        return STUDY.code(script, *modules, words=words)
    # Traces of one format have the same.
    digest = cache(lambda *named: STUDY.code(script, *modules, *named, words=words))
    return lambda wildcards: digest(*by_trace(wildcards))


def as_it_is(value):
    """A parameter in whose texts Snakemake is not to look for wildcards."""
    return lambda _: value


@cache
def page_renderer():
    """Name and version of the renderer: another one renders the pages again, the same one in another folder does not.

    None where only the jobs have one (--sdm conda), or it does not run: the job says so.
    """
    try:
        return renderer()
    except (ModuleNotFoundError, StudyError):
        return None


def there(path):
    """An input that lies on the disk, also where products do not."""
    return local(linked(path))


def given(files):
    """Files as inputs, by name or in lists: raw files, and others that no rule makes or downloads, lie on the disk, also
    where products do not. Of analyses outside the checkout it is their parameters that say when they changed.
    """
    if isinstance(files, dict):
        return {name: given(path) for name, path in files.items()}
    if isinstance(files, list):
        return [given(path) for path in files]
    if files in STUDY.to_make or files.startswith("results/"):
        return files
    return ancient(there(files)) if files in STUDY.own_files else there(files)


def threads_by_size(most):
    """As many threads as help: of a small trace two jobs side by side are done before one that has all cores."""
    return lambda wildcards: most if STUDY.raw_of(wildcards.trace, wildcards.get("part"))[1] > SMALL_GB else 1


def asks_for(name):
    """The memory and the time that a job of the rule asks for where it is sent elsewhere, more with each attempt."""

    def of(wildcards):
        page = TRACE_OF.get(wildcards.get("page", wildcards.get("paper")))
        of_page = {"trace": page} if page else {}
        return of_page | {key: value for key, value in wildcards.items() if key in ("trace", "part")}

    return {
        "mem_mb": lambda wildcards, attempt: STUDY.megabytes(name, attempt, **of(wildcards)),
        "runtime": lambda wildcards, attempt: STUDY.minutes(attempt, **of(wildcards)),
    }


# Where products lie; and once more those of traces whose names are not published, made from tables that name nobody.
PUBLIC = f"{OWN}/published" if STUDY.pseudonymised else "results"
EDITIONS = {"": "results", "_published": PUBLIC} if STUDY.pseudonymised else {"": "results"}


def of_edition(edition, traces):
    """Those of the traces that an edition has products of its own of."""
    return [trace for trace in traces if not edition or trace in STUDY.pseudonymised]


def under(root, files):
    """Inputs of a rule with the tables of their trace below another folder than results/."""
    tables = {name: path for name, path in files.items() if isinstance(path, str) and path.endswith(".csv")}
    return files | {
        name: f"{root}/{path.removeprefix('results/')}" for name, path in tables.items() if path.startswith("results/")
    }


def public(path):
    """The product that is published in place of one."""
    trace, below = path.removeprefix("results/").split("/", 1)
    hidden = trace in STUDY.pseudonymised or path == f"{OWN}/config.yaml"
    return f"{PUBLIC}/{trace}/{below}" if hidden else path


def in_report(path, kind, theme, trace="{trace}"):
    """Mark an output, a table or a chart, for Snakemake's own report, under a heading; of Parquet it would be too much,
    and of what is published twice.
    """
    if path.endswith(".parquet") or path.startswith(f"{OWN}/published/"):
        return path
    labels = {"trace": trace, "what": Path(path).name.split(".")[0].replace("_", " "), "kind": kind}
    return report(path, caption=f"../report/{kind}.rst", category=theme, labels=labels)


def told(name):
    """The parameters of the rule of an analysis."""
    room = STUDY.rooms[name]
    return {
        "code": code_of("compute", f"{room.module}.compute", *(STUDY.rooms[other].module for other in room.reads)),
        "analysis": name,
        "folders": STUDY.folders_of([name, *room.reads]),
        "reads": room.reads,
        "settings": lambda wildcards: room.settings(wildcards.trace),
    }


def if_there(path):
    """An input that not every trace has."""
    return lambda wildcards: (
        file if (file := path.format(trace=wildcards.trace)) in STUDY.paths(wildcards.trace) else []
    )


def of_each_trace(path):
    """The files of all traces of the study that have one."""
    return lambda _: [file for trace in STUDY.traces if (file := path.format(trace=trace)) in STUDY.paths(trace)]


def source(name):
    """A file that the registry names beside the raw tables."""
    return lambda wildcards: given(STUDY.file(wildcards.trace, name) or [])


def size_unit(wildcards):
    """The table that says in which unit the sizes of jobs are told."""
    return STUDY.size_unit(wildcards.trace)


def table(path, theme, is_updated=False):
    """A table of an analysis; is_updated: its last run's is there when it runs."""
    shown = in_report(path, "table", theme)
    return update(shown) if is_updated else shown


def of_every_trace(pattern):
    return collect(pattern, trace=STUDY.names)


def written(outputs):
    """The outputs of a rule as plain paths, as its file writes them.

    Snakemake puts what a wildcard may be behind its name and, where products lie in a store, the place of their copy.
    """
    paths = [path.storage_object.query.removeprefix(STORE) if path.is_storage else str(path) for path in outputs]
    return [re.sub(r"\{(\w+),[^}]*\}", r"{\1}", path) for path in paths]


# Name of a rule -> the traces that its products are of; the targets, the report and the manifest ask for them.
RULES_OF_TRACES = {}


@cache
def products_of(name):
    return written(getattr(rules, name).output)


def jobs_of(subjects):
    """The products of every job of these traces, those of a job in one list; all but the report."""
    return [
        [path.format(trace=trace) for path in products_of(name)]
        for name, traces in RULES_OF_TRACES.items()
        for trace in traces
        if trace in subjects
    ]


@cache
def jobs_of_traces():
    return jobs_of(STUDY.subjects)


def jobs_of_study():
    """The products of every job of the study, as above.

    The PDF is made when it, or what has it, is a target; one that is there is kept as new as the page. The manifest has it.
    """
    published = () if STUDY.pseudonymised else ("publish_site", "archive_results")
    with_pdf = {workflow.modifier.modify_rulename(name) for name in ("pdf", *published)}
    pages = [[f"{OWN}/report/{page}.html"] for page in PAGES]
    of_the_study = (rules.write_config, rules.write_dictionary, rules.score_claims, rules.recompute_ettr)
    papers = [f"{OWN}/report/{paper}.pdf" for paper in PAPERS]
    if Path(papers[0]).exists() or with_pdf.intersection(workflow.dag_settings.targets):
        pages += [[paper] for paper in papers]
    # As plain paths: knowing which rule makes one, Snakemake hashes the whole list anew for every file of it.
    return pages + [written(rule.output) for rule in of_the_study] + jobs_of_traces()


def everything_asked():
    """What asks for all products of the study; a manifest that is still to be made asks for one of each job itself."""
    made_anew = not STORED and not Path(*written(rules.write_manifest.output)).exists()
    return deleted_of(jobs_of_study()) if made_anew else asked_of(jobs_of_study(), STORED)


def files_to_publish(*endings):
    """The products with these endings: no table with a row per job, which are Parquet, and no drawing for a phone."""
    # The manifest names raw files, which may be called after somebody.
    manifest = [] if STUDY.pseudonymised else [written(rules.write_manifest.output)]
    paths = paths_in([*jobs_of_study(), *manifest])
    return sorted(public(path) for path in paths if path.endswith(endings) and not path.endswith(".narrow.svg"))


def read_by_page(subject, public=str):
    """The tables, charts and numbers of a trace, or of the comparison: of its products, those that can be read as text."""
    kinds = (".csv", ".json", ".svg")
    return sorted(public(path) for path in paths_in(jobs_of([subject])) if path.endswith(kinds))


def given_to_page(subject, public=str):
    """What stands for all that the page of a trace, or the comparison, reads: its numbers come after all of its tables.

    Snakemake takes a checksum of every input for every output. Where jobs share no disk, each is given what it reads.
    """
    if STORED:
        return read_by_page(subject, public)
    names = ("metrics.json", *(["brief.json"] if subject != OF_STUDY else []), "figures/index.json")
    return [public(f"results/{STUDY.place(subject)}/{name}") for name in names]


def read_beside(name, wildcards):
    """What a job reads besides its inputs: see given_to_page."""
    if name == "write_page_source":
        return read_by_page(STUDY.pages[wildcards["page"]])
    return paths_in(map(read_by_page, STUDY.subjects)) if name == "write_comparison_source" else ()


# Page -> its title, the comparison first. PAPERS: of those of a trace the page on paper -> its trace.
PAGES = ({"index": "Comparison"} if len(STUDY.names) > 1 else {}) | {
    page: STUDY.traces[trace].about.get("title", trace) for page, trace in STUDY.pages.items()
}
PAPERS = {"report" if page == "index" else page: trace for page, trace in STUDY.pages.items()}
TRACE_OF = STUDY.pages | PAPERS
MODULES_OF_PAGES = [module for room in STUDY.rooms.values() for module in (room.module, *room.module_of("page"))]
TEMPLATES = sorted(
    seen_from_here(path)
    for folder in (ROOT / "report", *(room.place for room in STUDY.rooms.values()))
    for path in folder.rglob("*")
    if path.suffix in (".qmd", ".typ") or path.name in ("blocks.html", "comparison.html")
)
OF_THE_COMPARISON = [path for path in TEMPLATES if Path(path).stem in ("blocks", "comparison")]
OF_THE_PAPER = [path for path in TEMPLATES if Path(path).stem != "comparison"]
OF_A_PAGE = [path for path in OF_THE_PAPER if Path(path).suffix != ".typ"]


def of_registry(trace, published=False):
    """What the registry says of a trace, and its analyses; published: and whether its names are pseudonyms."""
    hidden = {"pseudonyms": True} if published and trace in STUDY.pseudonymised else {}
    return STUDY.traces[trace].about | {"analyses": [room.name for room in STUDY.rooms_of(trace)]} | hidden


def of_page(wildcard, public=str):
    """The inputs of the page of a trace, on the screen or on paper: `wildcard` names which."""
    return dict(
        metrics=lambda wildcards: public(f"results/{TRACE_OF[wildcards[wildcard]]}/metrics.json"),
        products=lambda wildcards: given_to_page(TRACE_OF[wildcards[wildcard]], public),
        templates=[there(path) for path in (OF_THE_PAPER if wildcard == "paper" else OF_A_PAGE)],
        citation=there(seen_from_here(ROOT / "CITATION.cff")),
    )


def about_page(wildcard):
    """What its script is told."""
    return dict(
        page=lambda wildcards: wildcards[wildcard],
        pages=PAGES,
        trace=lambda wildcards: TRACE_OF[wildcards[wildcard]],
        about=lambda wildcards: of_registry(TRACE_OF[wildcards[wildcard]]),
        folders=STUDY.folders,
        publish=lookup("publish", within=config),
    )


wildcard_constraints:
    trace=any_of(STUDY.subjects),
