# Before any job: the configuration is checked, the raw files are found, and the modules of each script are listed.
import os
import re
from functools import cache

import yaml

from study.config import ConfigError, dump, layers_of, load_yaml, resolve
from study.formats import declarations, load_formats, meaning_of, reading_of, status_words
from study.helpers import helpers, stamps
from study.infra import health_events_of, infra_failures_of, loss_log_of
from study.lock import hold
from study.raw_tables import member_of, on_disk, parts_of, raw_tables, sample_files
from study.resources import gigabytes, megabytes, minutes
from study.shares import shares_of
from study.table_schema import schema_of
from study.window import window_of

ROOT = WORKFLOW.parent
# Where products lie in place of the disk (--default-storage-prefix); see docs/cluster.md.
STORE = f"{(workflow.storage_settings.default_storage_prefix or '').rstrip('/')}/"
STORED = workflow.storage_settings.default_storage_provider is not None
FORMATS = load_formats()
# Raw tables below this are read in a moment by one thread.
SMALL_GB = 0.05
MEASURED = yaml.safe_load((WORKFLOW / "resources.yaml").read_text(encoding="utf-8"))

try:
    resolved = resolve(
        layers_of(workflow),
        load_yaml(ROOT / "config" / "traces.yaml", "config/traces.yaml"),
        {name: format["tables"] for name, format in FORMATS.items()},
    )
    # Trace -> table -> its files; of a trace in parts also part -> table -> its file.
    RAW_TABLES = {trace: raw_tables(trace, entry, FORMATS) for trace, entry in resolved["registry"].items()}
    PARTS = {
        trace: parts for trace, entry in resolved["registry"].items() if (parts := parts_of(trace, entry, FORMATS))
    }
    # Trace -> name -> the files of a synthetic trace, its tables and those beside them.
    SAMPLES = {
        trace: sample_files(trace, entry, FORMATS)
        for trace, entry in resolved["registry"].items()
        if "generate" in entry
    }
    # Trace -> its file of health events, of the traces that have one.
    HEALTH_EVENTS = {
        trace: file
        for trace, entry in resolved["registry"].items()
        if (file := health_events_of(trace, entry, FORMATS[entry["format"]], sum(SAMPLES.get(trace, {}).values(), [])))
    }
    # Trace -> the schema of its raw tables, with its comments: its format's, or the one that its registry entry names;
    # none where it follows from the entry.
    SCHEMAS = {
        trace: schema_of(trace, entry, declarations()[entry["format"]]) for trace, entry in resolved["registry"].items()
    }
    # Trace -> its loss log, of the traces that have one.
    LOSS_LOGS = {
        trace: file
        for trace, entry in resolved["registry"].items()
        if (file := loss_log_of(trace, entry, FORMATS[entry["format"]]))
    }
except ConfigError as error:
    # One plain message in place of a traceback through the Snakefile.
    print(f"error in the configuration\n{error}", file=sys.stderr)
    sys.exit(1)

config.clear()
config.update(resolved)
REGISTRY = config["registry"]
GENERATED = list(SAMPLES)


def traces_with(key, value):
    """The traces of the study whose format declares this."""
    return [trace for trace, entry in REGISTRY.items() if FORMATS[entry["format"]].get(key) == value]


def traces_with_format(name):
    return [trace for trace, entry in REGISTRY.items() if entry["format"] == name]


JOB_TRACES = traces_with("gives", "jobs")
LIFE_TRACES = traces_with("gives", "lives")
LIFE_FORMATS = sorted({REGISTRY[trace]["format"] for trace in LIFE_TRACES})
ATTEMPT_TRACES = traces_with("attempts", True)
PLACEMENT_TRACES = traces_with("placements", True)
# Trace -> the shares of the work on its large tables, of the traces whose work is shared.
SHARES = {
    trace: range(number)
    for trace in traces_with("large", True)
    if (number := shares_of(REGISTRY[trace], RAW_TABLES[trace], config["scatter"])) > 1
}


def any_of(names):
    """A regular expression that matches just these names; where there are none, nothing."""
    return "|".join(names) or "(?!)"


@cache
def seen_from_here(path):
    """A file of the checkout as a path from where the command is typed, or in full if it lies elsewhere."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def code_of(script, *modules, by_trace=None):
    """The modules that a script imports, each with what it holds, as parameters of its rule, of which Snakemake keeps
    account: an edited one reruns the rules that use it. A file that is only newer reruns nothing.

    Beside them the named modules, and those that `by_trace` names for the wildcards of a job.
    """
    entry = ROOT / "scripts" / f"{script}.py"
    always = stamps(ROOT, helpers(entry, *modules))
    if by_trace is None:
        return always
    return [
        *always,
        lambda wildcards: [
            stamp for stamp in stamps(ROOT, helpers(entry, *modules, *by_trace(wildcards))) if stamp not in always
        ],
    ]


def format_of(wildcards):
    """The declaration of the trace's format."""
    return FORMATS[REGISTRY[wildcards.trace]["format"]]


def sources_of_infra_lives(wildcards):
    """What infra lives are derived from: jobs, their attempts and health events where there are any, or components."""
    trace = wildcards.trace
    if trace in LIFE_TRACES:
        return {"lives": "results/{trace}/lives.parquet"}
    of_attempts = {"attempts": "results/{trace}/attempts.parquet"} if trace in ATTEMPT_TRACES else {}
    of_events = {"events": source_file(HEALTH_EVENTS[trace])} if trace in HEALTH_EVENTS else {}
    return {"jobs": "results/{trace}/jobs.parquet"} | of_attempts | of_events


def format_module_of(wildcards):
    """The module of the code of the trace's format."""
    return [format_of(wildcards)["code"]]


def reader_of(wildcards):
    """The module that reads raw tables which are no tables of lines, if the format has one."""
    return [format_of(wildcards)["reader"]] if "reader" in format_of(wildcards) else []


def read_by(wildcards):
    """What the rules that read raw tables are told of them: reader, schema, and what the registry says."""
    about, entry = format_of(wildcards), REGISTRY[wildcards.trace]
    return {"reader": about.get("reader"), "entry": reading_of(entry), "schema": SCHEMAS[wildcards.trace]}


def adopted_schema_of(wildcards):
    """The schema that the registry names for a trace, a file like its raw tables."""
    entry = REGISTRY[wildcards.trace]
    return local(entry["schema"]) if "schema" in entry else []


def source_file(path):
    """A raw file as an input: one that no rule makes or downloads lies on the disk, also where products do not."""
    return path if path in TO_MAKE else local(path)


def raw_files_of(wildcards):
    """Table -> the files that it is read from; several tables may be in one archive."""
    return {
        table: [source_file(on_disk(file)) for file in files] for table, files in RAW_TABLES[wildcards.trace].items()
    }


def raw_files_of_part(wildcards):
    """Table -> the file that it is read from, of a part of a trace."""
    files = PARTS[wildcards.trace][wildcards.part]
    return {table: source_file(on_disk(file)) for table, file in files.items()}


def members_of(wildcards):
    """Table -> what each of its files, in order, is in its archive; nothing where the file itself is the table."""
    return {table: [member_of(file) for file in files] for table, files in RAW_TABLES[wildcards.trace].items()}


def members_of_parts(wildcards):
    """Part -> table -> what its file is in its archive, as above."""
    return {
        part: {table: member_of(file) for table, file in files.items()}
        for part, files in PARTS[wildcards.trace].items()
    }


def shares_of_work(wildcards):
    """What each share found, to be put together; nothing where one process does it all."""
    of_shares = written(rules.derive_share.output)
    return collect(of_shares, trace=wildcards.trace, share=SHARES.get(wildcards.trace, []))


def products_of_parts(wildcards, name):
    """One product of every part of the trace, in the order of the parts."""
    return [f"results/{wildcards.trace}/parts/{part}/{name}" for part in PARTS[wildcards.trace]]


def raw_of(wildcards):
    """(format, gigabytes) of the raw tables that a job goes back to: of its part, its trace, or all traces of the study."""
    about = dict(wildcards.items())
    if "part" in about:
        return REGISTRY[about["trace"]]["format"], gigabytes(PARTS[about["trace"]][about["part"]].values())
    # The pictures of the comparison are in a folder like a trace's.
    of_one = about.get("trace") in REGISTRY
    traces = [about["trace"]] if of_one else REGISTRY
    format = REGISTRY[about["trace"]]["format"] if of_one else None
    return format, gigabytes(file for trace in traces for files in RAW_TABLES[trace].values() for file in files)


def threads_by_size(most):
    """As many threads as help: of a small trace two jobs side by side are done before one that has all cores."""
    return lambda wildcards: most if raw_of(wildcards)[1] > SMALL_GB else 1


def asks_for(rule):
    """The memory and the time that a job of the rule asks for where it is sent elsewhere, more of it with each attempt."""
    return {
        "mem_mb": lambda wildcards, attempt: megabytes(MEASURED, rule, *raw_of(wildcards), attempt),
        "runtime": lambda wildcards, attempt: minutes(MEASURED, raw_of(wildcards)[1], attempt),
    }


def strata_of(format):
    """What the lives of a format are told apart by, besides `all`."""
    return format.get("strata", ["gpu_type", "gpu_count", "account"])


def covariates_of(format):
    """What the hazard of the lives of a format is explained by: of jobs their strata and nodes, of components theirs."""
    return strata_of(format) if format["gives"] == "lives" else ["gpu_count", "nodes", "gpu_type", "account"]


def charts_of_lives(life_format):
    """The charts of a component trace, in the order of the report."""
    strata = strata_of(FORMATS[life_format])
    return ["survival", *(f"survival_by_{name}" for name in strata), *(f"mttf_by_{name}" for name in strata)]


# What Snakemake's own report puts under one heading: an analysis goes under its own name, unless it stands here.
THEMES = {
    "anomalies": "Data quality",
    "drift": "Data quality",
    "philly_checks": "Data quality",
    "outcome": "Outcomes",
    "outcomes": "Outcomes",
    "states": "Outcomes",
    "taxonomy": "Outcomes",
    "runtime": "Run times and requests",
    "workload": "Run times and requests",
    "use": "Run times and requests",
    "failure": "What goes with failure",
    "correlations": "What goes with failure",
    "hazards": "What goes with failure",
    "survival": "Survival and mean time to failure",
    "mttf": "Survival and mean time to failure",
    "lifetime": "Survival and mean time to failure",
    "lifetimes": "Survival and mean time to failure",
    "sizes": "Survival and mean time to failure",
    "ettr": "Effective training time",
    "ettr_measured": "Effective training time",
    "lost_work": "What failures cost, and where",
    "lemons": "What failures cost, and where",
    **dict.fromkeys(["utilisation", "gpu_use", "gpu_use_by_servers", "host_use"], "How busy the machines were"),
    "epochs": "Epochs to the lowest loss",
    **dict.fromkeys(
        ["queueing", "delay", "long", "retries", "unsuccessful", "runtime_to_failure"], "Delays and retries"
    ),
    "occupancy": "How full the cluster was",
    "scorecard": "Published findings",
}


def theme_of(name):
    """The heading of an analysis, or of one of the charts and tables whose names begin as in THEMES."""
    known = name if name in THEMES else name.split("_")[0]
    return THEMES.get(known, name.replace("_", " ").capitalize())


def in_report(path, kind, theme=None, trace="{trace}"):
    """Mark an output, a table or a chart, for Snakemake's own report; a theme that is not given is that of its name."""
    name = Path(path).name.split(".")[0]
    labels = {"trace": trace, "what": name.replace("_", " "), "kind": kind}
    return report(path, caption=f"../report/{kind}.rst", category=theme or theme_of(name), labels=labels)


# Name of an analysis -> the traces that have it, and what is written of each.
ANALYSES = {}


def analysis(name, traces, tables, charts=(), frames=()):
    """Make an analysis known to the targets, the numbers and the report; returns the output of its rule.

    That is each of `tables` and each of `frames` (Parquet files with a row per job or attempt) by its name, and of the
    charts specs and the index, for `save_charts`. Its numbers: ttf/numbers/analyses.py; its tables in the report:
    ttf/report/analyses.py; its text: report/trace.qmd.
    """
    folder = "results/{trace}"
    outputs = {table: f"{folder}/tables/{table}.csv" for table in tables} | {
        **{frame: f"{folder}/{frame}.parquet" for frame in frames},
        "index": f"{folder}/figures/{name}.index.json",
        "specs": [f"{folder}/figures/{chart}.vl.json" for chart in charts],
    }
    ANALYSES[name] = {"traces": list(traces), "tables": {table: outputs[table] for table in tables}, "outputs": outputs}
    return outputs | {table: in_report(outputs[table], "table", theme_of(name)) for table in tables}


def analyses_of(trace):
    """The names of the analyses that a trace has, in the order of the rule files."""
    return [name for name, about in ANALYSES.items() if trace in about["traces"]]


def charts_of(trace):
    """The charts of a trace, those of a job in one tuple: its own, then those of each analysis.

    Each with its heading in Snakemake's own report.
    """
    own = charts_of_lives(REGISTRY[trace]["format"]) if trace in LIFE_TRACES else CHARTS
    of_analyses = (
        tuple((Path(spec).name.removesuffix(".vl.json"), theme_of(name)) for spec in ANALYSES[name]["outputs"]["specs"])
        for name in analyses_of(trace)
    )
    return tuple((name, theme_of(name)) for name in own), *filter(None, of_analyses)


def written(outputs):
    """The outputs of a rule as plain paths, as its file writes them.

    Snakemake puts what a wildcard may be behind its name and, where products lie in a store, the place of their copy.
    """
    paths = [path.storage_object.query.removeprefix(STORE) if path.is_storage else str(path) for path in outputs]
    return [re.sub(r"\{(\w+),[^}]*\}", r"{\1}", path) for path in paths]


@cache
def rules_by_output():
    """Output -> the name of its rule."""
    return {path: rule.name for rule in workflow.rules for path in written(rule.output)}


def tables_of_summary(wildcards):
    """The tables behind the numbers of the report: a component trace has no jobs, and not every trace each analysis."""
    of_analyses = {}
    for name in analyses_of(wildcards.trace):
        of_analyses |= ANALYSES[name]["tables"]
    if wildcards.trace in LIFE_TRACES:
        return TABLES_OF_LIVES | of_analyses | {"lives": "results/{trace}/lives.parquet"}
    return (
        TABLES_OF_CHARTS
        | of_analyses
        | {
            "agreement": "results/{trace}/tables/runtime_agreement.csv",
            "jobs": "results/{trace}/jobs.parquet",
            "nodes": "results/{trace}/nodes.parquet",
        }
    )


def tables_beside_jobs(wildcards):
    """The raw tables of whole jobs and of machines, where a format has them beside its jobs."""
    has_load = "machine_metric" in format_of(wildcards)["tables"]
    return {"raw": "results/{trace}/raw"} if has_load else {}


def clock_of(wildcards):
    """The time zone whose clock tells the hour of a submission; None where times count from an origin not told."""
    times = REGISTRY[wildcards.trace].get("times", {})
    if times.get("format") == "seconds":
        return None
    return times.get("zone") or format_of(wildcards).get("zone", "UTC")


def drawers(_):
    """Trace -> index of charts -> the rule that drew them; asked when all rules are known."""
    return {
        trace: {"index.json": "draw_charts" if trace in JOB_TRACES else f"draw_charts_{entry['format']}"}
        | {f"{name}.index.json": rules_by_output()[ANALYSES[name]["outputs"]["index"]] for name in analyses_of(trace)}
        for trace, entry in REGISTRY.items()
    }


def settings_of(section, *keys):
    """These keys of a section of the configuration, those that have a value."""
    return {key: config[section][key] for key in keys if key in config[section]}


def of_every_trace(pattern):
    return collect(pattern, trace=config["study"])


def of_each(outputs, traces):
    """The outputs of a rule, a list for each of these traces."""
    return [[path.format(trace=trace) for path in outputs] for trace in traces]


@cache
def jobs_of_traces():
    """The products of every job of every trace, those of a job in one list; all but the report."""
    of_all = (rules.ingest, rules.describe_tables, rules.derive_lives, rules.derive_infra_lives)
    of_all += (rules.fit_mttf, rules.summarise)
    of_jobs = (rules.derive_runtimes, rules.split_outcomes, rules.correlate, rules.draw_charts)
    traces_of_rules = [
        *((rule, config["study"]) for rule in of_all),
        *((rule, JOB_TRACES) for rule in of_jobs),
        (rules.merge_parts, PARTS),
        (rules.derive_attempts, ATTEMPT_TRACES),
        (rules.derive_placements, PLACEMENT_TRACES),
        *((getattr(rules, f"draw_charts_{format}"), traces_with_format(format)) for format in LIFE_FORMATS),
    ]
    of_rules = [of_each(written(rule.output), traces) for rule, traces in traces_of_rules]
    of_analyses = [of_each(paths_in(about["outputs"].values()), about["traces"]) for about in ANALYSES.values()]
    compared = [paths_in(COMPARISON.values())] if COMPARISON else []
    return sum(of_rules + of_analyses, []) + compared + list(PICTURES.values())


WITH_PDF = {"pdf", "published", "archived"}


def jobs_of_study():
    """The products of every job of the study, as above.

    The PDF is made when it, or what has it, is asked for; one that is there is kept as new as the page. The manifest has it.
    """
    of_the_study = (rules.render_report, rules.write_config, rules.score_claims, rules.recompute_ettr)
    if Path(str(rules.render_pdf.output.pdf)).exists() or WITH_PDF.intersection(workflow.dag_settings.targets):
        of_the_study += (rules.render_pdf,)
    # As plain paths: told which rule makes one, Snakemake hashes the whole list anew for every file of it.
    return [written(rule.output) for rule in of_the_study] + jobs_of_traces()


def paths_in(nested):
    """The paths of lists of lists of paths, each once."""
    if isinstance(nested, str):
        return [nested]
    return list(dict.fromkeys(path for part in nested for path in paths_in(part)))


def one_of_each(jobs):
    """A product of each job, which stands for all of them: Snakemake looks up each file that it is asked for."""
    return list(dict.fromkeys(products[0] for products in jobs))


def asked_of(jobs):
    """What asks for all products of these jobs: one of each, and those beside it that somebody deleted."""
    if STORED:
        return paths_in(jobs)
    deleted = [path for first, *others in jobs if os.path.exists(first) for path in others if not os.path.exists(path)]
    return one_of_each(jobs) + deleted


def files_to_publish(*endings):
    """The products with these endings: no table with a row per job or attempt, which are Parquet."""
    return sorted(
        path for path in paths_in([*jobs_of_study(), written(rules.write_manifest.output)]) if path.endswith(endings)
    )


def read_by_report():
    """The tables, charts and numbers that the report is made of: of its products, those that can be read as text."""
    return sorted(path for path in paths_in(jobs_of_traces()) if path.endswith((".csv", ".json")))


def given_to_report(_):
    """What stands for all that the report reads: the numbers of a trace come after all of its tables.

    Snakemake takes a checksum of every input for every output. Where jobs share no disk, each is given what it reads.
    """
    if STORED:
        return read_by_report()
    of_traces = [
        f"results/{trace}/{name}" for trace in config["study"] for name in ("metrics.json", "figures/index.json")
    ]
    return of_traces + ([COMPARISON["metrics"]] if COMPARISON else [])


def given_to_pictures(jobs):
    """One of the charts that each job draws, which stands for them as above."""
    charts = [[f"results/{{trace}}/figures/{name}.vl.json" for name, _ in job] for job in jobs]
    return paths_in(charts) if STORED else one_of_each(charts)


def read_beside(job):
    """The products that a job reads, of which its inputs are those that stand for them."""
    if job.rule.name == "write_report_source":
        return read_by_report()
    pictures = [str(path) for path in job.output if path.endswith(".svg")]
    return [path.replace(".svg", ".vl.json") for path in pictures]


@cache
def tables_of_claims():
    """Trace of the study -> table that a published finding is asked of -> its path, for those that the study has."""
    made = set(paths_in(jobs_of_traces()))
    asked = {}
    for claim in CLAIMS:
        table = claim.get("quantity", {}).get("table")
        traces = [claim["trace"], *claim.get("quantity", {}).get("also", [])]
        if not table or not set(traces) <= set(config["study"]):
            continue
        for trace in traces:
            folder = f"results/{trace}"
            path = f"{folder}/{table}.csv" if table.startswith("quality") else f"{folder}/tables/{table}.csv"
            if path in made:
                asked.setdefault(trace, {})[table] = path
    return asked


wildcard_constraints:
    trace=any_of(config["study"]),
