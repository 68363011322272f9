"""The study: its resolved configuration, its traces, the analyses of each trace and its claims.

This is plain Python, tested without Snakemake. The rules call it.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from ttf.analyses.catalogue import find_analysis_folders, load_analyses
from ttf.analyses.declaration import PRICE_KEYS, PRODUCTS
from ttf.engine.checkout import CHECKOUT, find_workflow_file, name_workflow_file
from ttf.engine.contract import Table, list_types
from ttf.engine.errors import StudyError
from ttf.page.replication.findings import (
    list_cell_tables,
    list_study_traces,
    match_traces,
    merge_layouts,
    read_claims,
)
from ttf.page.results_tables import load_all_contracts
from ttf.raw.extra_tables import TABLES
from ttf.study.configuration.claims import check_claims, load_claims
from ttf.study.configuration.config import format_problems, resolve, stack_layers
from ttf.study.configuration.documents import load_extended
from ttf.study.configuration.log_profiles import load_log_profiles
from ttf.study.configuration.log_rules import load_log_rules
from ttf.study.configuration.mapping import find_outcome_problems
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.model_features import find_risk_problems
from ttf.study.configuration.registry_options import (
    add_option_parts,
    check_windows,
    find_logs,
    find_option_file,
    find_option_tables,
)
from ttf.study.configuration.table_schema import resolve_schema
from ttf.study.configuration.taxonomy import has_reasons, load_taxonomy
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.publication import remove_paths
from ttf.study.recognition.entries import cache_listings, format_unread_entries
from ttf.study.recognition.first_lines import find_undated_logs, find_wrong_headers
from ttf.study.recognition.format_declarations import find_declarations, load_formats
from ttf.study.running import resources
from ttf.study.running.helpers import compute_code_digest, find_imported_files
from ttf.study.running.parallel_jobs import count_shares
from ttf.study.studies import STUDIES
from ttf.study.study_analysis import SOURCES, StudyAnalysis, require_name
from ttf.study.trace import Trace
from ttf.study.trace_files import (
    find_downloads,
    find_log_key,
    find_parts,
    find_raw_tables,
    find_unread_entries,
    list_sample_files,
)
from ttf.study.watch import describe_missing_nodes, find_watch_problems

# One thread reads smaller raw tables, such as those of the samples, at once.
SMALL_GB = 0.1
# Modules with contracts of tables other than the declarations of analyses.
CONTRACTS = ("ttf.engine.columns", "ttf.raw.raw_contracts", "ttf.records.record_contracts", "ttf.page.report_contracts")
# The comparison and the page that a site adds (ttf.page.publish.pages); the page of no trace may use these names.
_SITE_PAGES = ("index", "files")
CLAIMS = "config/claims.yaml"
# Name of an input -> its file or files.
RuleInputs: TypeAlias = dict[str, str | list[str]]


class Study:
    """Build the study of these configuration layers.

    stored: whether products lie in a store. Raises ConfigError with a line for each problem found before the first job.
    """

    def __init__(self, layers: list, stored: bool = False) -> None:
        # Digest of code -> its modules.
        self.code_files: dict[str, list[str]] = {}
        self.formats, self._declarations = load_formats(), find_declarations()
        self.measured_resources: dict = load_yaml(CHECKOUT / "workflow" / "resources.yaml")
        registry = load_yaml(CHECKOUT / "config" / "traces.yaml", "config/traces.yaml")
        self.config = resolve(layers, registry, {name: format["tables"] for name, format in self.formats.items()})
        self.taxonomy = load_taxonomy(CHECKOUT / "config" / "taxonomy.yaml", self.config["taxonomy"])
        documents = load_extended(CHECKOUT / "config" / "outage_causes.yaml", self.config["outage_causes"])
        self.outage_rules = [rule for document in documents for rule in document["rules"]]
        self.log_rules = load_log_rules(CHECKOUT / "config" / "node_log_rules.yaml", self.config["node_log_rules"])
        self.log_profiles = load_log_profiles(
            CHECKOUT / "config" / "training_log_profiles.yaml", self.config["training_log_profiles"]
        )
        entries = self.config["registry"]
        job_traces = [name for name, entry in entries.items() if self.formats[entry["format"]]["gives"] == "jobs"]
        with cache_listings():
            self.traces = {name: self._make_trace(name, entry, job_traces) for name, entry in entries.items()}
        risk_features = self.config["risk"]["features"]
        if problems := [
            problem
            for trace in self.traces.values()
            for problem in (
                *find_outcome_problems(trace.name, trace.entry, trace.format),
                *find_risk_problems(trace.name, trace.entry, trace.format, risk_features, trace.clock),
                *find_watch_problems(trace.name, trace.entry, trace.format, trace.has_outages, trace.clock),
            )
        ]:
            raise ConfigError(format_problems(problems, stack_layers(layers, registry)))
        self.folders = tuple(self.config.get("analyses", []))
        if stored and (relative_folders := [folder for folder in self.folders if not Path(folder).is_absolute()]):
            raise ConfigError(
                f"analyses: {', '.join(relative_folders)}: with a store, jobs run on other machines. Name the full "
                "path of a folder on a volume that every job mounts; see docs/cluster.md."
            )
        try:
            self.tables = load_all_contracts(self.folders)
            folders, declarations = find_analysis_folders(self.folders), load_analyses(self.folders)
        except StudyError as error:
            raise ConfigError(f"analyses: {error}") from None
        self.analyses = {name: StudyAnalysis(name, declarations[name], folders[name], self) for name in declarations}
        self._analysis_by_table = {table: name for name, analysis in self.analyses.items() for table in analysis.tables}
        self.measured_resources = resources.add_analysis_costs(self.measured_resources, declarations)
        self.claim_files = [(str(CHECKOUT / CLAIMS), CLAIMS), *((path, path) for path in self.config.get("claims", []))]
        documents = [self._load_checked_claims(path, label) for path, label in self.claim_files]
        self.claims = read_claims(documents)
        self.study_tables = merge_layouts(documents)
        names = Counter(claim["id"] for claim in self.claims)
        names.update(layout["name"] for layouts in self.study_tables.values() for layout in layouts)
        if duplicates := sorted(name for name, count in names.items() if count > 1):
            raise ConfigError(
                f"claims: {', '.join(duplicates)}: several findings or tables share this name; rename one."
            )

    def check_headers(self) -> None:
        """Raise ConfigError for raw files whose header row, or times without a year, ingest would refuse."""
        traces = self.traces.values()
        headers = (find_wrong_headers(trace.name, trace.entry, trace.raw_files, trace.format) for trace in traces)
        undated_logs = (
            find_undated_logs(trace.name, trace.raw_files["logs"], trace.log_times)
            for trace in traces
            if find_log_key(trace.format) == "node_logs"
        )
        if problems := [*itertools.chain(*headers, *undated_logs)]:
            raise ConfigError("\n".join(problems))

    def _load_checked_claims(self, path: str, label: str) -> dict:
        document = load_claims(path, label)
        check_claims(document, self.tables, label)
        return document

    def _make_trace(self, name: str, entry: dict, job_traces: list[str]) -> Trace:
        format, formats = self.formats[entry["format"]], self.formats
        files, parts = find_raw_tables(name, entry, formats), find_parts(name, entry, formats)
        generated = list_sample_files(name, entry, formats) if entry.get("embedded") else {}
        shares = count_shares(entry, files, self.config["scatter"]) if format.get("large") else 1
        paths = [*itertools.chain(*generated.values())]
        extra_tables = find_option_tables(name, entry, format, paths)
        files, parts = files | extra_tables, add_option_parts(name, parts, extra_tables)
        sources = {source: f"results/{name}/raw" for table, source in TABLES.values() if table in extra_tables}
        sources |= {"tails": tails} if (tails := find_option_file("log_tails", name, entry, format, paths)) else {}
        trace = Trace(
            name,
            entry,
            format,
            settings=self.config,
            raw_files=files,
            parts=parts,
            sample_files=generated,
            unread_entries=find_unread_entries(name, entry, formats),
            sources=sources,
            windows=check_windows(name, entry, job_traces, [name] if parts else []),
            shares=shares,
            tells_reasons="tails" in sources or has_reasons(entry, format, self.taxonomy),
            taxonomy=self.taxonomy,
            outage_rules=self.outage_rules,
            schema=resolve_schema(name, entry, self._declarations[entry["format"]]),
            log_rules=self.log_rules,
            log_profiles=self.log_profiles,
        )
        trace.node_logs = find_logs("node_logs", name, entry, format, trace.clock, paths)
        own_logs = find_log_key(format) == "training_logs"
        trace.training_logs = (
            files["logs"] if own_logs else find_logs("training_logs", name, entry, format, trace.clock, paths)
        )
        return trace

    @property
    def notes(self) -> list[str]:
        """Return the messages about each trace before the first job: unread files, missing tables, unknown exposure."""
        notes = []
        for name, trace in self.traces.items():
            # The neighbours of a file that was named are none of the study's.
            unread = {} if trace.has_named_file else trace.unread_entries
            notes += [f"{name}: not read: {format_unread_entries(unread)}."] if unread else []
            notes += [f"{name}: there is no table {table}: {clause}." for table, clause in trace.absent_tables.items()]
            is_unwatched = trace.has_outages and trace.may_have_exposure
            notes += [describe_missing_nodes(name, trace.format)] if is_unwatched else []
        return notes

    @property
    def unread_entries_by_folder(self) -> dict[str, list[str]]:
        """Map each folder of raw tables to the entries that no trace of the study reads."""
        unread_entries: dict[str, list[str]] = {}
        for trace in self.traces.values():
            for folder, entries in trace.unread_entries_by_folder.items():
                unread_entries[folder] = sorted({*unread_entries.get(folder, ()), *entries})
        return unread_entries

    # Traces ---------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Return the names of the traces in the study, in order."""
        return list(self.config["study"])

    @cached_property
    def pages(self) -> dict[str, str]:
        """Map each page to its trace. A single trace has the page index; with several, index is the comparison."""
        if len(self.names) == 1:
            return {"index": self.names[0]}
        return {f"trace-{name}" if name in _SITE_PAGES else name: name for name in self.names}

    @property
    def name(self) -> str:
        return self.config["name"]

    @property
    def study_folder(self) -> str:
        """Return the folder of the study's own products below results/, logs/ and benchmarks/."""
        return f"{STUDIES.name}/{self.name}"

    def select_traces(self, predicate: Callable[[Trace], Any]) -> list[str]:
        return [name for name, trace in self.traces.items() if predicate(trace)]

    @cached_property
    def downloads(self) -> dict[tuple[str, str], dict]:
        """Map (trace, file) to the download of each raw file that is missing."""
        return {
            (name, file): download
            for name, trace in self.traces.items()
            for file, download in find_downloads(name, trace.entry, trace.raw_files).items()
        }

    @cached_property
    def generated_files(self) -> set[str]:
        """Return the raw files that rules write: those of embedded samples, and downloads."""
        paths = {path for trace in self.traces.values() for files in trace.sample_files.values() for path in files}
        return paths | {f"data/{trace}/{file}" for trace, file in self.downloads}

    @cached_property
    def pseudonymised_traces(self) -> list[str]:
        """Return the traces whose users, accounts and nodes get pseudonyms in publications."""
        keeps_names = self.config["publish"].get("names") == "kept"
        return [name for name in self.names if not keeps_names and not self.traces[name].has_public_names]

    @property
    def hides_prices(self) -> bool:
        """Whether publications leave out the price of a GPU hour and all costs."""
        return "price_per_gpu_hour" in self.config["ledger"] and self.config["publish"].get("prices") != "kept"

    @property
    def edited_traces(self) -> list[str]:
        """Return the traces whose published tables differ from those of the study: without names, or prices."""
        return self.names if self.hides_prices else self.pseudonymised_traces

    @property
    def published_config(self) -> dict:
        """Return the configuration without what publications leave out."""
        config = remove_paths(self.config) if self.pseudonymised_traces else self.config
        prices = PRICE_KEYS if self.hides_prices else ()
        return config | {"ledger": {key: value for key, value in config["ledger"].items() if key not in prices}}

    # Analyses -------------------------------------------------------------------------------------------------

    @functools.cache  # noqa: B019 one study a process
    def has_analysis(self, trace: str, analysis: str) -> bool:
        return self.analyses[analysis].applies(trace)

    def list_analyses(self, trace: str) -> list[StudyAnalysis]:
        return [analysis for name, analysis in self.analyses.items() if self.has_analysis(trace, name)]

    def require_table(self, name: str, label: str) -> Table:
        return require_name(name, self.tables, "table", label)

    def get_setting(self, key: str) -> Any:
        return functools.reduce(lambda values, part: values[part], key.split("/"), self.config)

    def find_file(self, trace: str, name: str) -> str | None:
        """Return the path of a product, a source or a table; None if the trace has none."""
        if name not in self.tables or name in PRODUCTS:
            return self.traces[trace].find_file(name)
        producer = self._analysis_by_table.get(name)
        is_made = producer is None or self.has_analysis(trace, producer)
        return f"results/{trace}/{self.tables[name].path}" if is_made else None

    def _find_files(self, trace: str, names: Iterable[str]) -> dict[str, str]:
        return {name: file for name in names if (file := self.find_file(trace, name))}

    @functools.cache  # noqa: B019 one study a process
    def list_paths(self, trace: str) -> set[str]:
        """Return the paths of all products, sources and tables that the trace has."""
        return {file for name in (*PRODUCTS, *SOURCES, *self.tables) if (file := self.find_file(trace, name))}

    @property
    def external_analyses(self) -> list[StudyAnalysis]:
        return [analysis for analysis in self.analyses.values() if analysis.is_external]

    @functools.cache  # noqa: B019 one study a process
    def list_charts(self, trace: str) -> dict[str, StudyAnalysis]:
        return {chart: analysis for analysis in self.list_analyses(trace) for chart in analysis.charts(trace)}

    def list_main_charts(self, trace: str) -> list[str]:
        return [chart for chart, analysis in self.list_charts(trace).items() if chart in analysis.declaration.main]

    def list_chart_analyses(self, trace: str) -> list[StudyAnalysis]:
        return [analysis for analysis in self.list_analyses(trace) if analysis.charts(trace)]

    @cached_property
    def traces_by_chart_set(self) -> dict[str, list[str]]:
        """Map each set of charts, named after a format, to the traces that have it."""
        groups: dict[tuple, list[str]] = {}
        for trace in self.names:
            groups.setdefault((self.traces[trace].entry["format"], *self.list_charts(trace)), []).append(trace)
        counts = Counter(format for format, *_ in groups)
        names = [f"{format}_{traces[0]}" if counts[format] > 1 else format for (format, *_), traces in groups.items()]
        return dict(zip(names, groups.values(), strict=True))

    def find_chart_inputs(self, trace: str) -> RuleInputs:
        charts = [tables for analysis in self.list_analyses(trace) for tables in analysis.charts(trace).values()]
        path_by_table = self._find_files(trace, itertools.chain(*charts))
        return path_by_table | self.find_size_unit(trace) | self.list_external_files(self.list_chart_analyses(trace))

    def find_size_unit(self, trace: str) -> dict[str, str]:
        """Map size_unit to the table with the unit of job sizes; empty for a trace without jobs."""
        path = f"results/{trace}/{self.tables['size_unit'].path}"
        return {"size_unit": path} if self.traces[trace].has_jobs else {}

    def list_producers(self, tables: Iterable[str]) -> list[str]:
        """Return the names of the analyses that make these tables."""
        return sorted({self._analysis_by_table[table] for table in tables if table in self._analysis_by_table})

    def find_summary_inputs(self, trace: str) -> RuleInputs:
        analyses = self.list_analyses(trace)
        names = [table for analysis in analyses for table in analysis.tables]
        names += ["row_account", "anomalies", "statistics", "outages", "exposure"]
        names += ["jobs", "nodes", "runtime_agreement"] if self.traces[trace].has_jobs else ["durations"]
        return self._find_files(trace, names) | self.find_size_unit(trace) | self.list_external_files(analyses)

    def build_brief_options(self, name: str) -> dict[str, Any]:
        """Return what the brief says about a trace."""
        trace = self.traces[name]
        options: dict[str, Any] = {"clock": trace.clock, "failure_words": trace.outcomes.get("failure", [])}
        options |= {"changed_outcomes": trace.changed_outcomes}
        return trace.description | options | {"targets": self.config["targets"]}

    @property
    def datasets(self) -> dict[str, list[str]]:
        """Map each trace of the study to the data sets whose published findings apply to it."""
        return {name: self.traces[name].datasets for name in self.names}

    def find_claim_tables(self) -> dict[str, dict[str, str]]:
        """Map each trace to the tables that claims, and cells of published tables, compare: table -> path."""
        tables = [
            (trace, claim["quantity"]["table"])
            for claim in self.claims
            if "table" in claim.get("quantity", {})
            for traces in match_traces(claim, self.datasets)
            for trace in traces
        ]
        for key, layouts in self.study_tables.items():
            traces = list_study_traces(key, self.claims, self.datasets)
            tables += [(trace, table) for trace in traces for table in list_cell_tables(layouts)]
        paths: dict[str, dict[str, str]] = {}
        for trace, table in tables:
            if path := self.find_file(trace, table):
                paths.setdefault(trace, {})[table] = path
        return paths

    def select_external_folders(self, names: Iterable[str]) -> list[str]:
        """Return the folders of these analyses outside the checkout; a new folder reruns no other analysis."""
        parents = {str(self.analyses[name].folder.parent) for name in names}
        return [folder for folder in self.folders if str(Path(folder)) in parents]

    def list_external_files(self, analyses: Iterable[StudyAnalysis]) -> dict[str, list[str]]:
        """Return the files of external analyses as rule inputs, for jobs that share no disk."""
        folders = [analysis.folder for analysis in analyses if analysis.is_external]
        files = sorted(str(file) for folder in folders for file in folder.iterdir() if file.suffix in (".py", ".qmd"))
        return {"analysis_files": files} if files else {}

    @cached_property
    def external_files(self) -> set[str]:
        return set(self.list_external_files(self.analyses.values()).get("analysis_files", []))

    # Code and resources of jobs ----------------------------------------------------------------------------------

    def hash_code(self, script: str, *modules: str, words: bool = False) -> str:
        """Return the digest of a script, the modules that it imports, and the named modules.

        Of a declaration, only what computing and drawing use counts; with `words` also its headings and sentences.
        """
        entry = CHECKOUT / "scripts" / f"{script}.py"
        files = (entry, *find_imported_files(entry, *modules, analysis_folders=tuple(map(Path, self.folders))))
        digest = compute_code_digest(files, {} if words else self._types_by_declaration)
        self.code_files[digest] = sorted(name_workflow_file(file) or str(file) for file in files[1:])
        return digest

    @cached_property
    def _types_by_declaration(self) -> dict[Path, str]:
        """Map the file of each declaration and contract to the types that computing and drawing use."""
        modules = {analysis.folder / "__init__.py": analysis.module for analysis in self.analyses.values()}
        modules |= {find_workflow_file(f"scripts/{name.replace('.', '/')}.py"): name for name in CONTRACTS}
        return {file: list_types(importlib.import_module(module)) for file, module in modules.items()}

    def measure_raw_tables(self, trace: str | None = None, part: str | None = None) -> tuple[str | None, float]:
        """Return (format, GB) of the raw tables behind a job: of its part, its trace, or all traces."""
        if part is not None:
            owner = self.traces[trace]
            return owner.entry["format"], resources.measure_gb(owner.parts[part].values())
        traces = [self.traces[trace]] if trace in self.traces else self.traces.values()
        format = self.traces[trace].entry["format"] if trace in self.traces else None
        tables = [files for raw_trace in traces for files in raw_trace.raw_files.values()]
        return format, resources.measure_gb(itertools.chain(*tables))

    def estimate_memory_mb(self, rule: str, attempt: int, **job: str) -> int:
        """Return the MB that a job requests. job: its trace and part; none for a job of all traces."""
        return resources.estimate_memory_mb(self.measured_resources, rule, *self.measure_raw_tables(**job), attempt)

    def estimate_runtime_min(self, attempt: int, **job: str) -> int:
        """Return the minutes that a job requests; job: as in `estimate_memory_mb`."""
        return resources.estimate_runtime_min(self.measured_resources, self.measure_raw_tables(**job)[1], attempt)


def match_names(names: Iterable[str]) -> str:
    """Return a regular expression of these names; without names, one that matches nothing."""
    return "|".join(names) or "(?!)"
