"""Run a whole study in this process without Snakemake: the scripts of the rules, in their order.

On a small trace this is about ten times as fast as the workflow, so tests can try many inputs.
The jobs mirror workflow/rules. The products have the same bytes (tests/workflow/test_surroundings.py).
"""

import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ttf.engine.errors import StudyError
from ttf.engine.process import entry
from ttf.study.configuration.config import DEFAULTS, dump
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.publication import find_publication_date
from ttf.study.study import Study

# The checkout. `run_in_child` can set it to a copy.
ROOT = Path(os.environ.get("TTF_CHECKOUT", Path(__file__).parents[2]))


class Named(dict):
    """Files or parameters as Snakemake passes them to a script: by name, by position, or by iteration."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str | int) -> Any:
        return [*self][name] if isinstance(name, int) else super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        for files in self.values():
            yield from [files] if isinstance(files, str) else files


class Params(Named):
    """Parameters: iteration yields each value whole, even if it is a list."""

    def __iter__(self) -> Iterator[Any]:
        yield from self.values()


@dataclass
class Job:
    """A job of a rule: its script and the files and parameters that Snakemake would pass."""

    script: str
    input: Mapping[str, Any]
    output: Mapping[str, Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    wildcards: Mapping[str, str] = field(default_factory=dict)
    rule: str = ""

    @property
    def name(self) -> str:
        return " ".join([self.rule or self.script, *self.wildcards.values()])


@dataclass
class Result:
    """Outcome of a study. refused: the message of a StudyError or ConfigError; crash: any other traceback.

    job: the job that failed; said: log line by job; warned: warnings of libraries;
    hashes: SHA-256 by product in results/.
    """

    job: str | None = None
    refused: str | None = None
    crash: str | None = None
    log_line_by_job: dict[str, str | None] = field(default_factory=dict)
    warned: list[str] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.job is None


def run(
    config: Mapping, folder: Path, threads: int = 1, pdf: bool = False, only: Callable[[Job], bool] = lambda _: True
) -> Result:
    """Run the study of this configuration in `folder`; stop at the first job that fails.

    config: the user's settings, with paths relative to `folder`. threads: of libraries that are not imported yet.
    pdf: render the PDF too. only: selects the jobs that run.
    """
    result = Result(job="configuration")
    with chdir(folder), _as_a_job_of_its_own(threads), warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            for job in list_jobs(load_study(config), pdf):
                result.job = job.name
                if only(job):
                    start = time.perf_counter()
                    result.log_line_by_job[job.name] = run_job(job, threads)
                    result.seconds[job.name] = time.perf_counter() - start
            result.job = None
        except (StudyError, ConfigError) as error:
            result.refused = str(error)
        except Exception:
            result.crash = traceback.format_exc()
        result.warned = sorted(
            {f"{warning.filename}:{warning.lineno}: {warning.message}" for warning in caught_warnings}
        )
        result.hashes = hashes(Path("results"))
    return result


def run_in_subprocess(
    config: Mapping,
    folder: Path,
    threads: int = 1,
    pdf: bool = False,
    umask: int = -1,
    checkout: Path = ROOT,
    **surroundings: str,
) -> Result:
    """Do as `run` in a separate process with these environment variables; report its death as a crash."""
    paths = os.pathsep.join(map(str, (checkout / "scripts", Path(__file__).parent)))
    request = json.dumps({"config": config, "threads": threads, "pdf": pdf})
    options = {"input": request, "text": True, "capture_output": True, "encoding": "utf-8", "umask": umask}
    environment = os.environ | {"PYTHONPATH": paths, "TTF_CHECKOUT": str(checkout)} | surroundings
    process = subprocess.run([sys.executable, __file__], **options, cwd=folder, env=environment, check=False)
    if process.returncode:
        return Result(job="process", crash=f"exit code {process.returncode}: {process.stderr[-2000:]}")
    return Result(**json.loads(process.stdout.splitlines()[-1]))


def load_study(config: Mapping) -> Study:
    study = Study([("config/config.yaml", load_yaml(DEFAULTS)), ("my.yaml", dict(config))])
    study.check_headers()
    return study


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run_job(job: Job, threads: int = 1) -> str | None:
    """Run a job in this process and return its log line. Raises the job's exceptions."""
    for path in Named(job.output):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    snakemake_fields = {name: Named(getattr(job, name)) for name in ("input", "output", "wildcards")}
    snakemake_fields["params"] = Params({"code": "", **job.params})
    resources = Named(partition_rows=2_000_000)
    return _main(job.script)(SimpleNamespace(**snakemake_fields, resources=resources, rule=job.name, threads=threads))


@functools.cache
def _main(script: str) -> Callable[[Any], str | None]:
    file = ROOT / "scripts" / f"{script}.py"
    names = {"__name__": script, "__file__": str(file), "snakemake": None}
    original_run_rule, entry.run_rule = entry.run_rule, lambda main, snakemake: None
    try:
        exec(compile(file.read_bytes(), str(file), "exec"), names)
    finally:
        entry.run_rule = original_run_rule
    return names["main"]


@contextmanager
def _as_a_job_of_its_own(threads: int) -> Iterator[None]:
    variables, temporary_folder = dict(os.environ), tempfile.tempdir
    entry.limit_libraries(threads)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        tempfile.tempdir = temporary_folder


# Scripts of charts and pages, which take half the time.
OF_PAGES = {"write_page_template", "draw_charts", "write_page_source", "render_page"}

# The jobs ---------------------------------------------------------------------------------------------------


def list_jobs(study: Study, pdf: bool = False) -> Iterator[Job]:
    """Yield every job of a study after the jobs that make its inputs; no shares, downloads or manifest."""
    for name in study.names:
        yield from _to_durations(study, name)
        yield _tables(study, name)
    yield from _rooms(study)
    for subject in study.names:
        yield _charts(study, subject)
        yield _numbers(study, subject)
    yield from _report(study, pdf)


def _to_durations(study: Study, name: str) -> Iterator[Job]:
    trace, config, folder = study.traces[name], study.config, f"results/{name}"
    wildcards = {"trace": name}
    if trace.sample_files:
        sample = trace.format["sample"]
        yield Job(
            "unpack_sample",
            {"packed": str(ROOT / sample["packed"])},
            trace.sample_files,
            {"sha256": sample["sha256"]},
            wildcards,
        )
    raw = {"raw": f"{folder}/raw"}
    job_reports = {"agreement": f"{folder}/tables/runtime_agreement.csv", "size_unit": f"{folder}/tables/size_unit.csv"}
    adopted = {"adopted": trace.entry.get("schema", [])}
    quality = {kind: f"{folder}/quality/{kind}.csv" for kind in ("anomalies",)}
    quality |= {"account": f"{folder}/quality/row_account.csv", "quarantine": f"{folder}/quality/quarantine.parquet"}
    read_params = {
        "members": trace.members,
        "reader_options": trace.reader_options,
        "max_share": config["quarantine"]["max_share"],
    }
    if trace.parts:
        parts = {
            part: {
                "raw": f"{folder}/parts/{part}/raw",
                "account": f"{folder}/parts/{part}/row_account.csv",
                "quarantine": f"{folder}/parts/{part}/quarantine.parquet",
            }
            for part in trace.parts
        }
        for part, outputs in parts.items():
            params = read_params | {
                "members": trace.part_members[part],
                "hopeless_share": max(0.5, read_params["max_share"]),
            }
            yield Job("ingest_part", trace.part_paths(part) | adopted, outputs, params, wildcards | {"part": part})
        part_inputs = {
            f"{kind}s" if kind != "raw" else "parts": [outputs[kind] for outputs in parts.values()]
            for kind in ("raw", "account", "quarantine")
        }
        part_account = {"by_part": f"{folder}/quality/row_account_by_part.csv"}
        params = read_params | {"parts": trace.part_members}
        yield Job(
            "merge_parts", trace.raw_paths | part_inputs | adopted, raw | quality | part_account, params, wildcards
        )
    else:
        yield Job("ingest", trace.raw_paths | adopted, raw | quality, read_params, wildcards)
    derived, block_days = {"derivation_options": trace.derivation_options}, trace.settings["inference"]
    products = {product: f"{folder}/{product}.parquet" for product in ("jobs", "nodes", "attempts", "placements")}
    if trace.has_jobs:
        node_params = {"node_table": trace.format.get("node_table"), "parts": list(trace.parts)} | block_days
        if "attempts" in trace.products:
            params = derived | node_params | {"rules": trace.infra_failures}
            yield Job(
                "derive_attempts",
                trace.find_rule_inputs("derive_attempts") | raw,
                products | job_reports,
                params,
                wildcards,
            )
        else:
            outputs = {key: products[key] for key in ("jobs", "nodes")} | job_reports
            yield Job("derive_runtimes", raw | {"shares": []}, outputs, derived | node_params, wildcards)
            if "placements" in trace.products:
                outputs = {"placements": products["placements"]}
                yield Job("derive_placements", raw | {"jobs": products["jobs"]}, outputs, derived, wildcards)
    if trace.has_outages:
        outputs = {"outages": f"{folder}/outages.parquet", "records": f"{folder}/outage_records.parquet"}
        outputs |= {"exposure": f"{folder}/exposure.parquet"} if trace.has_exposure else {}
        params = {"derivation_options": trace.outage_options, "rules": trace.outage_rules}
        rule = "derive_outages" if trace.has_exposure else "derive_outages_unwatched"
        yield Job("derive_outages", trace.find_rule_inputs("derive_outages") | raw, outputs, params, wildcards, rule)
    if "durations" in trace.products:
        params = derived | {"outage_options": {"causes": trace.causes, "clusters": trace.format.get("clusters", {})}}
        yield Job(
            "derive_durations",
            trace.find_rule_inputs("derive_durations"),
            {"durations": f"{folder}/durations.parquet"},
            params,
            wildcards,
        )
        if trace.node_logs:
            inputs = trace.find_rule_inputs("derive_node_errors") | {"node_logs": trace.node_logs}
            outputs = {
                "node_errors": f"{folder}/node_errors.parquet",
                "node_log_watch": f"{folder}/node_log_watch.parquet",
                "node_log_lines": f"{folder}/tables/node_log_lines.csv",
            }
            options = {key: config["node_logs"][key] for key in ("merge_s", "gap_s", "boot_s")}
            params = {"rules": trace.log_rules, "times": trace.log_times, "options": options}
            yield Job("derive_node_errors", inputs, outputs, params, wildcards)
        if trace.training_logs:
            inputs = trace.find_rule_inputs("derive_training_events") | {"training_logs": trace.training_logs}
            outputs = {
                "training_events": f"{folder}/training_events.parquet",
                "training_log_lines": f"{folder}/tables/training_log_lines.csv",
            }
            yield Job("derive_training_events", inputs, outputs, {"options": trace.training_log_options}, wildcards)
        if study.has_analysis(name, JUDGE):
            yield _room(study, name, JUDGE)
        params = {"rules": trace.infra_failures, "causes": trace.causes} | block_days
        yield Job(
            "derive_infra_durations",
            trace.find_rule_inputs("derive_infra_durations"),
            {"durations": f"{folder}/durations_infra.parquet"},
            params,
            wildcards,
        )


# The analysis that attributes failures before durations are derived.
JUDGE = "judge_node_errors"


def _room(study: Study, subject: str, name: str) -> Job:
    analysis = study.analyses[name]
    params = {
        "analysis": name,
        "folders": study.select_external_folders([name, *analysis.input_analyses]),
        "reads": analysis.input_analyses,
        "settings": analysis.settings(subject),
    }
    outputs = (analysis.outputs() | analysis.folders()).items()
    outputs = {key: path.format(trace=subject) for key, path in outputs}
    return Job("compute", analysis.inputs(subject), outputs, params, {"trace": subject}, name)


def _rooms(study: Study) -> Iterator[Job]:
    """Yield the analyses of every subject, each after those whose tables it reads."""
    pending = [
        _room(study, subject, name)
        for subject in study.names
        for name in study.analyses
        if study.has_analysis(subject, name) and name != JUDGE
    ]
    while pending:
        pending_outputs = {path for job in pending for path in Named(job.output)}
        ready = [job for job in pending if not pending_outputs & {*Named(job.input)}]
        yield from ready
        pending = [job for job in pending if job not in ready]


def _charts(study: Study, subject: str) -> Job:
    figures, charts, drawing = (
        f"results/{subject}/figures",
        study.list_charts(subject),
        study.list_chart_analyses(subject),
    )
    main, tables, trace = study.list_main_charts(subject), study.find_chart_inputs(subject), study.traces[subject]
    outputs = {
        "index": f"{figures}/index.json",
        "specs": [f"{figures}/{chart}.vl.json" for chart in charts],
        "svgs": [f"{figures}/{chart}.svg" for chart in charts],
        "narrow": [f"{figures}/{chart}.narrow.svg" for chart in main],
    }
    params = {
        "charts": {analysis.name: [analysis.charts(subject), analysis.settings(subject)] for analysis in drawing},
        "main": main,
        "folders": study.select_external_folders(
            [analysis.name for analysis in drawing] + study.list_producers(tables)
        ),
        "reads": study.list_producers(tables),
        "unit": trace.unit,
        "subject": trace.subject,
        "synthetic": trace.synthetic,
    }
    kind = next(kind for kind, traces in study.traces_by_chart_set.items() if subject in traces)
    return Job("draw_charts", tables, outputs, params, {"trace": subject}, f"draw_charts_{kind}")


def _tables(study: Study, name: str) -> Job:
    trace, folder = study.traces[name], f"results/{name}"
    inputs = {"raw": f"{folder}/raw", "quarantine": f"{folder}/quality/quarantine.parquet"}
    inputs |= {"account": f"{folder}/quality/row_account.csv", "adopted": trace.entry.get("schema", [])}
    inputs |= {"by_part": [f"{folder}/quality/row_account_by_part.csv"] if trace.parts else []}
    outputs = {kind: f"{folder}/quality/{kind}.csv" for kind in ("statistics", "raw_files")}
    outputs |= {"suggested": f"{folder}/quality/suggested_schema.yaml"}
    params = {"members": trace.members, "entries": trace.entries, "reader_options": trace.reader_options}
    return Job("describe_tables", trace.raw_paths | inputs, outputs, params, {"trace": name})


def _numbers(study: Study, subject: str) -> Job:
    folder, analyses = f"results/{subject}", study.list_analyses(subject)
    params = {
        "analyses": {
            analysis.name: analysis.settings(subject) for analysis in analyses if analysis.has_module("numbers")
        },
        "folders": study.select_external_folders(analysis.name for analysis in analyses),
        "about": study.build_brief_options(subject),
    }
    outputs = {name: f"{folder}/{name}.json" for name in ("brief", "metrics")}
    return Job("summarise", study.find_summary_inputs(subject), outputs, params, {"trace": subject})


def _report(study: Study, pdf: bool) -> Iterator[Job]:
    study_folder, source = f"results/{study.study_folder}", f"results/{study.study_folder}/report/source"
    claimed = study.find_claim_tables()
    scored = {"scorecard": f"{study_folder}/scorecard.csv", "implied": f"{study_folder}/implied_n.csv"}
    scored |= {"published": f"{study_folder}/published_values.csv", "tables": f"{study_folder}/study_tables.csv"}
    inputs = {
        "tables": [path for tables in claimed.values() for path in tables.values()],
        "claims": [file for file, _ in study.claim_files],
    }
    params = {
        "study": study.datasets,
        "folders": study.folders,
        "tables": {key: [*table_names] for key, table_names in claimed.items()},
    }
    yield Job("score_claims", inputs, scored, params)
    yield Job("write_config", {}, {"config": f"{study_folder}/config.yaml"}, {"text": dump(study.config)})
    yield Job("write_dictionary", {}, {"table": f"{study_folder}/dictionary.csv"}, {"folders": study.folders})
    template = {"template": f"{source}/page.html", "bibliography": f"{source}/references.bib"}
    template_files = [ROOT / "report" / name for name in ("page.html", "references.bib")]
    template_files += sorted((ROOT / "report" / "page").iterdir())
    yield Job("write_page_template", {"files": [str(path) for path in template_files]}, template)
    yield from _pages(study, scored, template, pdf)


def _pages(study: Study, scored: dict, template: dict, pdf: bool) -> Iterator[Job]:
    report, source = f"results/{study.study_folder}/report", f"results/{study.study_folder}/report/source"
    folders = (ROOT / "report", *(analysis.folder for analysis in study.analyses.values()))
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".qmd", ".typ", ".html")]
    page_inputs = {"templates": sorted(map(str, files)), "citation": str(ROOT / "CITATION.cff")}
    titles = {page: study.traces[trace].description.get("title", trace) for page, trace in study.pages.items()}
    pages = ({"index": "Comparison"} if len(study.names) > 1 else {}) | titles
    analyses = {name: {"analyses": [analysis.name for analysis in study.list_analyses(name)]} for name in study.names}
    trace_params = {name: study.traces[name].description | analyses[name] for name in study.names}
    publication = study.config["publish"] | {"year": find_publication_date(study.config["publish"], ROOT)[:4]}
    common = {"pages": pages, "folders": study.folders, "publish": publication}
    metrics_by_subject = {subject: f"results/{subject}/metrics.json" for subject in study.names}
    for page, trace in study.pages.items():
        inputs = {"metrics": metrics_by_subject[trace], "products": [metrics_by_subject[trace]]} | page_inputs
        params = {"page": page, "trace": trace, "about": trace_params[trace]} | common
        report_params = {"significance": study.config["correlation"]["significance"]}
        yield Job(
            "write_page_source",
            inputs | scored,
            {"source": f"{source}/{page}.qmd"},
            params | report_params,
            {"page": page},
        )
        if pdf:
            paper = "report" if page == "index" else page
            yield Job(
                "render_paper", inputs, {"pdf": f"{report}/{paper}.pdf"}, params | {"page": paper}, {"page": paper}
            )
    if len(study.names) > 1:
        params = {"about": trace_params, "page_by_trace": {trace: page for page, trace in study.pages.items()}} | common
        own = [file for file in page_inputs["templates"] if Path(file).name in ("blocks.html", "comparison.html")]
        inputs = {"metrics": [*metrics_by_subject.values()]} | page_inputs | {"templates": own}
        outputs = {"source": f"{source}/index.qmd", "table": f"results/{study.study_folder}/comparison.csv"}
        yield Job("write_comparison_source", inputs, outputs, params)
    for page in pages:
        yield Job(
            "render_page",
            template | {"source": f"{source}/{page}.qmd"},
            {"page": f"{report}/{page}.html"},
            {},
            {"page": page},
        )


if __name__ == "__main__":
    request = json.load(sys.stdin)
    print(json.dumps(asdict(run(folder=Path.cwd(), **request))))
