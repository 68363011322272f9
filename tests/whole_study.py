"""A whole study in this process, without Snakemake: the scripts of the rules, in their order, on files in a folder.

Some ten times as fast as the workflow on a small trace, so that many inputs can be tried: prefixes of files, mutations.
What is wired here follows workflow/rules: the products have the same bytes (tests/workflow/test_surroundings.py).
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
from unittest.mock import patch

from study.claims import load_claims
from study.config import DEFAULTS, dump
from study.messages import ConfigError
from study.study import Study
from study.study_analysis import COMPARISON
from study.yaml_files import load_yaml
from ttf.engine.errors import StudyError
from ttf.engine.process import entry

# The checkout; of `run_apart` a copy of it, too.
ROOT = Path(os.environ.get("TTF_CHECKOUT", Path(__file__).parents[1]))
_load_cached_claims = functools.cache(load_claims)


class Named(dict):
    """Files or parameters as Snakemake hands them to a script: by name, by position, or all of them in one row."""

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
    """Parameters, of which each is one, also a list."""

    def __iter__(self) -> Iterator[Any]:
        yield from self.values()


@dataclass
class Job:
    """A job of a rule: script, and what Snakemake would give to it."""

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
    """How a study ended. refused: the message of a StudyError or ConfigError; crash: the traceback of anything else.

    job: where it ended so; said: job -> its line of the log; warned: what libraries warned of;
    hashes: product -> SHA-256, of all in results/.
    """

    job: str | None = None
    refused: str | None = None
    crash: str | None = None
    said: dict[str, str | None] = field(default_factory=dict)
    warned: list[str] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.job is None


def run(
    config: Mapping, folder: Path, threads: int = 1, pdf: bool = False, only: Callable[[Job], bool] = lambda _: True
) -> Result:
    """The study of this configuration, run in `folder`, where its paths begin: ends at the first job that fails.

    config: what a person writes into a file. threads: of libraries, where they are not imported yet. pdf: the page on
    paper too. only: which jobs are done.
    """
    result = Result(job="configuration")
    with chdir(folder), _as_a_job_of_its_own(threads), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            for job in jobs_of(study_of(config), pdf):
                result.job = job.name
                if only(job):
                    started = time.perf_counter()
                    result.said[job.name] = done(job, threads)
                    result.seconds[job.name] = time.perf_counter() - started
            result.job = None
        except (StudyError, ConfigError) as error:
            result.refused = str(error)
        except Exception:
            result.crash = traceback.format_exc()
        result.warned = sorted({f"{one.filename}:{one.lineno}: {one.message}" for one in warned})
        result.hashes = hashes(Path("results"))
    return result


def run_apart(
    config: Mapping,
    folder: Path,
    threads: int = 1,
    pdf: bool = False,
    umask: int = -1,
    checkout: Path = ROOT,
    **surroundings: str,
) -> Result:
    """The same in a process of its own, with these variables in its environment; the crash of one that dies, too."""
    paths = os.pathsep.join(map(str, (checkout / "scripts", checkout / "workflow", Path(__file__).parent)))
    told = json.dumps({"config": config, "threads": threads, "pdf": pdf})
    given = {"input": told, "text": True, "capture_output": True, "encoding": "utf-8", "umask": umask}
    environment = os.environ | {"PYTHONPATH": paths, "TTF_CHECKOUT": str(checkout)} | surroundings
    ended = subprocess.run([sys.executable, __file__], **given, cwd=folder, env=environment, check=False)
    if ended.returncode:
        return Result(job="process", crash=f"exit code {ended.returncode}: {ended.stderr[-2000:]}")
    return Result(**json.loads(ended.stdout.splitlines()[-1]))


def study_of(config: Mapping) -> Study:
    """The study, checked as a start of the workflow checks it. Raises ConfigError."""
    with patch("study.study.load_claims", load_claims_once):
        study = Study([("config/config.yaml", load_yaml(DEFAULTS)), ("my.yaml", dict(config))], ROOT)
    study.check_headers()
    return study


def load_claims_once(path: str, label: str) -> dict:
    """Return the claims; those of the checkout, which take a second to read, are read once in a process."""
    return (_load_cached_claims if path.startswith(str(ROOT)) else load_claims)(path, label)


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def done(job: Job, threads: int = 1) -> str | None:
    """Do a job here; what its log would say. Raises what it raises."""
    for path in Named(job.output):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    told = {name: Named(getattr(job, name)) for name in ("input", "output", "wildcards")}
    told["params"] = Params({"code": "", **job.params})
    resources = Named(partition_rows=2_000_000)
    return _main(job.script)(SimpleNamespace(**told, resources=resources, rule=job.name, threads=threads))


@functools.cache
def _main(script: str) -> Callable[[Any], str | None]:
    """The function `main` of a script of the checkout."""
    file = ROOT / "scripts" / f"{script}.py"
    names = {"__name__": script, "__file__": str(file), "snakemake": None}
    was, entry.run_rule = entry.run_rule, lambda main, snakemake: None
    try:
        exec(compile(file.read_bytes(), str(file), "exec"), names)
    finally:
        entry.run_rule = was
    return names["main"]


@contextmanager
def _as_a_job_of_its_own(threads: int) -> Iterator[None]:
    """What jobs set for the process that they are is as it was afterwards."""
    before, temporary = dict(os.environ), tempfile.tempdir
    entry.limit_libraries(threads)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        tempfile.tempdir = temporary


# The jobs ---------------------------------------------------------------------------------------------------


def jobs_of(study: Study, pdf: bool = False) -> Iterator[Job]:
    """Every job of a study in an order in which each finds its inputs; without shares, downloads and manifest."""
    for name in study.names:
        yield from _to_lives(study, name)
        yield _tables(study, name)
    yield from _rooms(study)
    for subject in study.subjects:
        yield _charts(study, subject)
        yield _numbers(study, subject)
    yield from _report(study, pdf)


def _to_lives(study: Study, name: str) -> Iterator[Job]:
    trace, config, here = study.traces[name], study.config, f"results/{name}"
    of = {"trace": name}
    if trace.sample_files:
        sample = trace.format["sample"]
        yield Job(
            "unpack_sample",
            {"packed": str(ROOT / sample["packed"])},
            trace.sample_files,
            {"sha256": sample["sha256"]},
            of,
        )
    raw = {"raw": f"{here}/raw"}
    of_jobs = {"agreement": f"{here}/tables/runtime_agreement.csv", "size_unit": f"{here}/tables/size_unit.csv"}
    adopted = {"adopted": trace.entry.get("schema", [])}
    quality = {kind: f"{here}/quality/{kind}.csv" for kind in ("anomalies",)}
    quality |= {"account": f"{here}/quality/row_account.csv", "quarantine": f"{here}/quality/quarantine.parquet"}
    read = {
        "members": trace.members,
        "reader_options": trace.reader_options,
        "max_share": config["quarantine"]["max_share"],
    }
    if trace.parts:
        parts = {
            part: {
                "raw": f"{here}/parts/{part}/raw",
                "account": f"{here}/parts/{part}/row_account.csv",
                "quarantine": f"{here}/parts/{part}/quarantine.parquet",
            }
            for part in trace.parts
        }
        for part, made in parts.items():
            params = read | {
                "members": trace.part_members[part],
                "hopeless_share": max(0.5, read["max_share"]),
            }
            yield Job("ingest_part", trace.part_inputs(part) | adopted, made, params, of | {"part": part})
        found = {
            f"{kind}s" if kind != "raw" else "parts": [made[kind] for made in parts.values()]
            for kind in ("raw", "account", "quarantine")
        }
        by_part = {"by_part": f"{here}/quality/row_account_by_part.csv"}
        params = read | {"parts": trace.part_members}
        yield Job("merge_parts", trace.raw_inputs | found | adopted, raw | quality | by_part, params, of)
    else:
        yield Job("ingest", trace.raw_inputs | adopted, raw | quality, read, of)
    derived, block_days = {"derivation_options": trace.derivation_options}, trace.settings["inference"]
    common = {product: f"{here}/{product}.parquet" for product in ("jobs", "nodes", "attempts", "placements")}
    if trace.has_jobs:
        of_nodes = {"node_table": trace.format.get("node_table"), "parts": list(trace.parts)} | block_days
        if "attempts" in trace.products:
            params = derived | of_nodes | {"rules": trace.infra_failures}
            yield Job("derive_attempts", trace.find_rule_inputs("derive_attempts") | raw, common | of_jobs, params, of)
        else:
            outputs = {key: common[key] for key in ("jobs", "nodes")} | of_jobs
            yield Job("derive_runtimes", raw | {"shares": []}, outputs, derived | of_nodes, of)
            if "placements" in trace.products:
                made = {"placements": common["placements"]}
                yield Job("derive_placements", raw | {"jobs": common["jobs"]}, made, derived, of)
    if trace.has_outages:
        made = {"outages": f"{here}/outages.parquet", "records": f"{here}/outage_records.parquet"}
        made |= {"exposure": f"{here}/exposure.parquet"} if trace.has_exposure else {}
        params = {"derivation_options": trace.outage_options, "rules": trace.outage_rules}
        rule = "derive_outages" if trace.has_exposure else "derive_outages_unwatched"
        yield Job("derive_outages", trace.find_rule_inputs("derive_outages") | raw, made, params, of, rule)
    if "lives" in trace.products:
        params = derived | {"outage_options": {"causes": trace.causes, "clusters": trace.format.get("clusters", {})}}
        yield Job(
            "derive_lives", trace.find_rule_inputs("derive_lives"), {"lives": f"{here}/lives.parquet"}, params, of
        )
        params = {"rules": trace.infra_failures, "causes": trace.causes} | block_days
        yield Job(
            "derive_infra_lives",
            trace.find_rule_inputs("derive_infra_lives"),
            {"lives": f"{here}/lives_infra.parquet"},
            params,
            of,
        )


def _rooms(study: Study) -> Iterator[Job]:
    """Of every subject its analyses, each after those whose tables it reads."""
    waiting = [
        Job(
            "compute",
            room.inputs(subject),
            {name: path.format(trace=subject) for name, path in (room.outputs() | room.folders()).items()},
            {
                "analysis": name,
                "folders": study.select_external_folders([name, *room.input_analyses]),
                "reads": room.input_analyses,
                "settings": room.settings(subject),
            },
            {"trace": subject},
            name,
        )
        for subject in study.subjects
        for name, room in study.analyses.items()
        if study.has_analysis(subject, name)
    ]
    while waiting:
        to_come = {path for job in waiting for path in Named(job.output)}
        ready = [job for job in waiting if not to_come & {*Named(job.input)}]
        yield from ready
        waiting = [job for job in waiting if job not in ready]


def _charts(study: Study, subject: str) -> Job:
    figures, charts, drawing = (
        f"results/{study.get_folder(subject)}/figures",
        study.list_charts(subject),
        study.list_chart_analyses(subject),
    )
    main, tables, trace = study.list_main_charts(subject), study.find_chart_inputs(subject), study.traces.get(subject)
    made = {
        "index": f"{figures}/index.json",
        "specs": [f"{figures}/{chart}.vl.json" for chart in charts],
        "svgs": [f"{figures}/{chart}.svg" for chart in charts],
        "narrow": [f"{figures}/{chart}.narrow.svg" for chart in main],
    }
    params = {
        "charts": {room.name: [room.charts(subject), room.settings(subject)] for room in drawing},
        "main": main,
        "folders": study.select_external_folders([room.name for room in drawing] + study.list_producers(tables)),
        "reads": study.list_producers(tables),
        "unit": trace.unit if trace else "job",
        "life": trace.life if trace else "job",
        "synthetic": bool(trace and trace.synthetic),
    }
    kind = next(kind for kind, traces in study.traces_by_chart_set.items() if subject in traces)
    return Job("draw_charts", tables, made, params, {"trace": subject}, f"draw_charts_{kind}")


def _tables(study: Study, name: str) -> Job:
    trace, here = study.traces[name], f"results/{name}"
    given = {"raw": f"{here}/raw", "quarantine": f"{here}/quality/quarantine.parquet"}
    given |= {"account": f"{here}/quality/row_account.csv", "adopted": trace.entry.get("schema", [])}
    given |= {"by_part": [f"{here}/quality/row_account_by_part.csv"] if trace.parts else []}
    made = {kind: f"{here}/quality/{kind}.csv" for kind in ("statistics", "raw_files")}
    made |= {"suggested": f"{here}/quality/suggested_schema.yaml"}
    params = {"members": trace.members, "entries": trace.entries, "reader_options": trace.reader_options}
    return Job("describe_tables", trace.raw_inputs | given, made, params, {"trace": name})


def _numbers(study: Study, subject: str) -> Job:
    here, rooms = f"results/{study.get_folder(subject)}", study.list_analyses(subject)
    made = {"brief": f"{here}/brief.json"} if subject != COMPARISON else {}
    params = {
        "analyses": {room.name: room.settings(subject) for room in rooms if room.has_module("numbers")},
        "folders": study.select_external_folders(room.name for room in rooms),
        "about": study.build_brief_options(subject),
    }
    rule = "summarise" if subject != COMPARISON else "summarise_comparison"
    made |= {"metrics": f"{here}/metrics.json"}
    return Job("summarise", study.find_summary_inputs(subject), made, params, {"trace": subject}, rule)


def _report(study: Study, pdf: bool) -> Iterator[Job]:
    own, source = f"results/{study.study_folder}", f"results/{study.study_folder}/report/source"
    claimed = study.find_claim_tables()
    scored = {"scorecard": f"{own}/scorecard.csv", "implied": f"{own}/implied_n.csv"}
    given = {
        "tables": [path for tables in claimed.values() for path in tables.values()],
        "claims": [file for file, _ in study.claim_files],
    }
    params = {"study": study.names, "folders": study.folders, "tables": {key: [*of] for key, of in claimed.items()}}
    yield Job("score_claims", given, scored, params)
    yield Job("recompute_ettr", {}, {"reference": f"{own}/ettr_reference.csv"})
    yield Job("write_config", {}, {"config": f"{own}/config.yaml"}, {"text": dump(study.config)})
    yield Job("write_dictionary", {}, {"table": f"{own}/dictionary.csv"}, {"folders": study.folders})
    vega, template = {"vega": f"{source}/vega.txt"}, {"template": f"{source}/page.html"}
    template |= {"bibliography": f"{source}/references.bib"}
    yield Job("bundle_vega", {}, vega)
    of_template = [ROOT / "report" / name for name in ("page.html", "references.bib")]
    of_template += sorted((ROOT / "report" / "page").iterdir())
    yield Job("write_page_template", vega | {"files": [str(path) for path in of_template]}, template)
    yield from _pages(study, scored, template, pdf)


def _pages(study: Study, scored: dict, template: dict, pdf: bool) -> Iterator[Job]:
    report, source = f"results/{study.study_folder}/report", f"results/{study.study_folder}/report/source"
    places = (ROOT / "report", *(room.folder for room in study.analyses.values()))
    files = [path for place in places for path in place.rglob("*") if path.suffix in (".qmd", ".typ", ".html")]
    beside = {"templates": sorted(map(str, files)), "citation": str(ROOT / "CITATION.cff")}
    titles = {page: study.traces[trace].description.get("title", trace) for page, trace in study.pages.items()}
    pages = ({"index": "Comparison"} if len(study.names) > 1 else {}) | titles
    analyses = {name: {"analyses": [room.name for room in study.list_analyses(name)]} for name in study.names}
    about = {name: study.traces[name].description | analyses[name] for name in study.names}
    common = {"pages": pages, "folders": study.folders, "publish": study.config["publish"]}
    of = {subject: f"results/{study.get_folder(subject)}/metrics.json" for subject in study.subjects}
    for page, trace in study.pages.items():
        given = {"metrics": of[trace], "products": [of[trace]]} | beside
        params = {"page": page, "trace": trace, "about": about[trace]} | common
        more = {"significance": study.config["correlation"]["significance"]}
        yield Job(
            "write_page_source", given | scored, {"source": f"{source}/{page}.qmd"}, params | more, {"page": page}
        )
        if pdf:
            paper = "report" if page == "index" else page
            yield Job(
                "render_paper", given, {"pdf": f"{report}/{paper}.pdf"}, params | {"page": paper}, {"page": paper}
            )
    if len(study.names) > 1:
        params = {"about": about, "page_by_trace": {trace: page for page, trace in study.pages.items()}} | common
        given = {"products": [*of.values()]} | beside
        yield Job("write_comparison_source", given, {"source": f"{source}/index.qmd"}, params)
    for page in pages:
        yield Job(
            "render_page",
            template | {"source": f"{source}/{page}.qmd"},
            {"page": f"{report}/{page}.html"},
            {},
            {"page": page},
        )


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(asdict(run(folder=Path.cwd(), **asked))))
