# Before any job: the configuration is checked, the raw files are found, and the modules of each script are listed.
import re
from functools import cache

import yaml

from study.config import ConfigError, dump, layers_of, load_yaml, resolve
from study.helpers import helpers
from study.infra import health_events_of, infra_failures_of, loss_log_of
from study.lock import hold
from study.raw_tables import member_of, on_disk, parts_of, raw_tables, sample_files
from study.resources import gigabytes, megabytes, minutes
from study.shares import shares_of
from study.window import window_of

ROOT = WORKFLOW.parent
# Where products lie in place of the disk (--default-storage-prefix); see docs/cluster.md.
STORE = f"{(workflow.storage_settings.default_storage_prefix or '').rstrip('/')}/"
STORED = workflow.storage_settings.default_storage_provider is not None
FORMATS = yaml.safe_load((WORKFLOW / "formats.yaml").read_text(encoding="utf-8"))
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
    """The traces of the study whose format has this in formats.yaml."""
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


def code_of(script, *modules):
    """The modules that a script imports, as inputs of its rule: an edited one reruns the rules that use it."""
    return [local(seen_from_here(file)) for file in helpers(ROOT / "scripts" / f"{script}.py", *modules)]


def format_of(wildcards):
    """What formats.yaml says of the trace's format."""
    return FORMATS[REGISTRY[wildcards.trace]["format"]]


def sources_of_infra_lives(wildcards):
    """What infra lives are derived from: jobs, their attempts and health events where there are any, or components."""
    trace = wildcards.trace
    if trace in LIFE_TRACES:
        return {"lives": "results/{trace}/lives.parquet"}
    of_attempts = {"attempts": "results/{trace}/attempts.parquet"} if trace in ATTEMPT_TRACES else {}
    of_events = {"events": source_file(HEALTH_EVENTS[trace])} if trace in HEALTH_EVENTS else {}
    return {"jobs": "results/{trace}/jobs.parquet"} | of_attempts | of_events


def code_with_format(script):
    """The modules of a script that also calls the trace's format module."""
    return lambda wildcards: code_of(script, f"ttf.traces.{REGISTRY[wildcards.trace]['format']}")


def mapping_of(wildcards):
    """What the registry says of the columns of a trace in the format table; of another trace nothing."""
    keys = ("mapping", "times", "outcomes", "unique_ids", "delimiter", "quoted", "blank")
    entry = REGISTRY[wildcards.trace]
    return {key: entry[key] for key in keys if key in entry} if "mapping" in entry else {}


def reading_of(wildcards):
    """What the registry says of how a trace is read: its mapping, or the zone of its times."""
    entry = REGISTRY[wildcards.trace]
    return mapping_of(wildcards) or {key: entry[key] for key in ("times",) if key in entry}


def reader_of(wildcards):
    """The module that reads raw tables which are no tables of lines, if the format has one."""
    reader = format_of(wildcards).get("reader")
    return [f"ttf.traces.{reader}"] if reader else []


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
    traces = [about["trace"]] if "trace" in about else REGISTRY
    format = REGISTRY[about["trace"]]["format"] if "trace" in about else None
    return format, gigabytes(file for trace in traces for files in RAW_TABLES[trace].values() for file in files)


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


def products():
    """Every product of every trace but the report, so that one somebody deleted comes back."""
    of_all = (rules.ingest, rules.describe_tables, rules.derive_lives, rules.derive_infra_lives)
    of_all += (rules.fit_mttf, rules.summarise)
    of_jobs = (rules.derive_runtimes, rules.split_outcomes, rules.correlate, rules.draw_charts)
    return (
        [of_every_trace(written(rule.output)) for rule in of_all]
        + [collect(written(rule.output), trace=JOB_TRACES) for rule in of_jobs]
        + list(COMPARISON.values())
        + list(PICTURES.values())
        + [collect(written(rules.merge_parts.output), trace=PARTS)]
        + [collect(written(rules.derive_attempts.output), trace=ATTEMPT_TRACES)]
        + [collect(written(rules.derive_placements.output), trace=PLACEMENT_TRACES)]
        + [
            collect(output, trace=about["traces"])
            for about in ANALYSES.values()
            for output in about["outputs"].values()
        ]
        + [
            collect(written(getattr(rules, f"draw_charts_{life_format}").output), trace=traces_with_format(life_format))
            for life_format in LIFE_FORMATS
        ]
    )


def study_products():
    """Everything a study gives; a product that somebody deleted comes back, also where the report has no need of it.

    The PDF is made when it is asked for; one that is there is kept as new as the page, and is in the manifest.
    """
    of_the_study = (rules.render_report, rules.write_config, rules.score_claims, rules.recompute_ettr)
    if Path(str(rules.render_pdf.output.pdf)).exists():
        of_the_study += (rules.render_pdf,)
    # As plain paths: told which rule makes one, Snakemake hashes the whole list anew for every file of it.
    return [path for rule in of_the_study for path in written(rule.output)] + products()


def paths_in(nested):
    """The paths of lists of lists of paths."""
    return {nested} if isinstance(nested, str) else {path for part in nested for path in paths_in(part)}


def files_to_publish(*endings):
    """The products with these endings: no table with a row per job or attempt, which are Parquet."""
    return sorted(
        path for path in paths_in([study_products(), written(rules.write_manifest.output)]) if path.endswith(endings)
    )


def read_by_report(_):
    """The tables, charts and numbers that the report is made of: of its products, those that can be read as text."""
    return sorted(path for path in paths_in(products()) if path.endswith((".csv", ".json")))


def tables_of_claims():
    """Trace of the study -> table that a published finding is asked of -> its path, for those that the study has."""
    made = paths_in(products())
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
