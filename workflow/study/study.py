"""The study: its configuration, checked and resolved; its traces; its analyses on each of them; its claims.

Everything here is plain Python: the rules ask it, and it is tested without Snakemake.
"""

from __future__ import annotations

import functools
import importlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from ttf.analyses import BUILT_IN
from ttf.analyses.catalogue import places, rooms
from ttf.analyses.declaration import PRODUCTS
from ttf.engine.contract import Table, types_in
from ttf.engine.errors import StudyError
from ttf.page.results_tables import contracts
from ttf.raw.extra_tables import TABLES

from study import resources
from study.claims import check_claims, load_claims
from study.config import in_files, resolve, stacked
from study.documents import load_extended
from study.entries import left_out_words, one_look
from study.first_lines import wrong_headers
from study.format_declarations import declarations, load_formats
from study.helpers import code_digest, helpers
from study.messages import ConfigError
from study.model_features import risk_problems
from study.parallel_jobs import shares_of
from study.registry_options import file_beside, given_tables, windows_of, with_given_parts
from study.studies import STUDIES
from study.study_analysis import OF_STUDY, SOURCES, Room, known
from study.table_schema import schema_of
from study.taxonomy import taxonomy_of, tells_reasons
from study.trace import Trace
from study.trace_files import entries_left_out, parts_of, raw_tables, sample_files, to_fetch
from study.watch import unwatched, watch_problems
from study.yaml_files import load_yaml

# Raw tables below this are read in a moment by one thread. Those of the samples are.
SMALL_GB = 0.1
# The modules of contracts of tables besides the analyses.
CONTRACTS = ("ttf.engine.columns", "ttf.raw.raw_contracts", "ttf.records.record_contracts", "ttf.page.report_contracts")
# The comparison, and the pages that a site adds (ttf.page.publish.pages).
_OTHER_PAGES = ("index", "files", "tables", "search")
CLAIMS = "config/claims.yaml"


class Study:
    """The study of these layers of configuration in the checkout `root`; stored: its products lie in a store.

    Raises ConfigError, one problem a line, for anything that is wrong before the first job.
    """

    def __init__(self, layers: list, root: Path, stored: bool = False) -> None:
        self.root, workflow = root, root / "workflow"
        # Digest of code -> the modules that it is of.
        self.code_files: dict[str, list[str]] = {}
        self.formats, self._declarations = load_formats(), declarations()
        self.measured = yaml.safe_load((workflow / "resources.yaml").read_text(encoding="utf-8"))
        registry = load_yaml(root / "config" / "traces.yaml", "config/traces.yaml")
        self.config = resolve(layers, registry, {name: format["tables"] for name, format in self.formats.items()})
        self.taxonomy = taxonomy_of(root / "config" / "taxonomy.yaml", self.config["taxonomy"])
        causes = load_extended(root / "config" / "outage_causes.yaml", self.config["outage_causes"])
        self.outage_rules = [rule for document in causes for rule in document["rules"]]
        entries = self.config["registry"]
        with_jobs = [name for name, entry in entries.items() if self.formats[entry["format"]]["gives"] == "jobs"]
        with one_look():
            self.traces = {name: self._trace(name, entry, with_jobs) for name, entry in entries.items()}
        asked = self.config["risk"]["features"]
        if problems := [
            problem
            for trace in self.traces.values()
            for problem in (
                *risk_problems(trace.name, trace.entry, trace.format, asked, trace.clock),
                *watch_problems(trace.name, trace.entry, trace.format, trace.has_outages, trace.clock),
            )
        ]:
            raise ConfigError(in_files(problems, stacked(layers, registry)))
        self.folders = tuple(self.config.get("analyses", []))
        if stored and (near := [folder for folder in self.folders if not Path(folder).is_absolute()]):
            raise ConfigError(
                f"analyses: {', '.join(near)}: jobs in a store run elsewhere. Name the full path of a folder on a "
                "volume that every job mounts, as docs/cluster.md says of raw tables."
            )
        try:
            self.tables, placed, declared = contracts(self.folders), places(self.folders), rooms(self.folders)
        except StudyError as error:
            raise ConfigError(f"analyses: {error}") from None
        self.rooms = {name: Room(name, room, placed[name], self) for name, room in declared.items()}
        self._maker = {table: name for name, room in self.rooms.items() for table in room.tables}
        self.measured = resources.with_rooms(self.measured, {name: room.declared for name, room in self.rooms.items()})
        self.claim_files = [(str(root / CLAIMS), CLAIMS), *((path, path) for path in self.config.get("claims", []))]
        self.claims = [claim for path, label in self.claim_files for claim in self._claims(path, label)]
        ids = Counter(claim["id"] for claim in self.claims)
        if several := sorted(name for name, times in ids.items() if times > 1):
            raise ConfigError(f"claims: {', '.join(several)}: more than one finding has this id; give each its own.")

    def check_headers(self) -> None:
        """Raises ConfigError for raw tables whose first line is not the header that ingest expects."""
        headers = (
            wrong_headers(trace.name, trace.entry, trace.raw_files, trace.format) for trace in self.traces.values()
        )
        if problems := [line for lines in headers for line in lines]:
            raise ConfigError("\n".join(problems))

    def _claims(self, path: str, label: str) -> list[dict]:
        claims = load_claims(path, label)["claims"]
        check_claims(claims, self.tables, label)
        return claims

    def _trace(self, name: str, entry: dict, with_jobs: list[str]) -> Trace:
        format, formats = self.formats[entry["format"]], self.formats
        files, parts = raw_tables(name, entry, formats), parts_of(name, entry, formats)
        made = sample_files(name, entry, formats) if entry.get("embedded") else {}
        shares = shares_of(entry, files, self.config["scatter"]) if format.get("large") else 1
        of_rule = [file for files in made.values() for file in files]
        given = given_tables(name, entry, format, of_rule)
        files, parts = files | given, with_given_parts(name, parts, given)
        sources = {source: f"results/{name}/raw" for table, source in TABLES.values() if table in given}
        sources |= {"tails": tails} if (tails := file_beside("log_tails", name, entry, format, of_rule)) else {}
        return Trace(
            name,
            entry,
            format,
            settings=self.config,
            raw_files=files,
            parts=parts,
            made_files=made,
            left_out=entries_left_out(name, entry, formats),
            sources=sources,
            windows=windows_of(name, entry, with_jobs, [name] if parts else []),
            shares=shares,
            tells_reasons="tails" in sources or tells_reasons(entry, format, self.taxonomy),
            taxonomy=self.taxonomy,
            outage_rules=self.outage_rules,
            schema=schema_of(name, entry, self._declarations[entry["format"]]),
        )

    @property
    def notes(self) -> list[str]:
        """What a person is told of each trace before the first job: what is not read, not there, and not known."""
        notes = []
        for name, trace in self.traces.items():
            notes += [f"{name}: not read: {left_out_words(trace.left_out)}."] if trace.left_out else []
            notes += [f"{name}: there is no table {table}: {clause}." for table, clause in trace.absent_tables.items()]
            notes += [unwatched(name, trace.unit)] if trace.may_have_exposure else []
        return notes

    @property
    def folders_of_raw(self) -> dict[str, list[str]]:
        """Folder of raw tables -> its entries of which no trace of the study reads anything."""
        found: dict[str, list[str]] = {}
        for trace in self.traces.values():
            for folder, entries in trace.folders_of_raw.items():
                found[folder] = sorted({*found.get(folder, ()), *entries})
        return found

    # Traces ---------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return list(self.config["study"])

    @cached_property
    def subjects(self) -> list[str]:
        """What has tables and charts: the traces, and the study as a whole where it has several."""
        return [*self.names, *([OF_STUDY] if len(self.names) > 1 else [])]

    @cached_property
    def pages(self) -> dict[str, str]:
        """Page -> its trace: of the only trace index, else a page of its own for each beside the comparison."""
        if len(self.names) == 1:
            return {"index": self.names[0]}
        return {f"trace-{name}" if name in _OTHER_PAGES else name: name for name in self.names}

    @property
    def name(self) -> str:
        return self.config["name"]

    @property
    def own(self) -> str:
        """Below results/, logs/ and benchmarks/: what belongs to the study and not to its traces."""
        return f"{STUDIES.name}/{self.name}"

    def home(self, subjects: Collection[str]) -> str:
        """Where the products of these lie below results/, with {trace} for which; of traces, every study uses them."""
        return f"{self.own}/{{trace}}" if OF_STUDY in subjects else "{trace}"

    def place(self, subject: str) -> str:
        return self.home([subject]).format(trace=subject)

    def traces_where(self, holds: Callable[[Trace], Any]) -> list[str]:
        return [name for name, trace in self.traces.items() if holds(trace)]

    @cached_property
    def to_fetch(self) -> dict[tuple[str, str], dict]:
        """(trace, file) -> its download, of the raw files that are not there yet."""
        return {
            (name, file): download
            for name, trace in self.traces.items()
            for file, download in to_fetch(name, trace.entry, trace.raw_files).items()
        }

    @cached_property
    def to_make(self) -> set[str]:
        """The raw files that are the product of a rule."""
        made = {file for trace in self.traces.values() for files in trace.made_files.values() for file in files}
        return made | {f"data/{trace}/{file}" for trace, file in self.to_fetch}

    @cached_property
    def pseudonymised(self) -> list[str]:
        """The traces whose users, accounts and nodes have other names in what is published."""
        kept = self.config["publish"].get("names") == "kept"
        return [name for name in self.names if not kept and not self.traces[name].names_are_public]

    # Analyses -------------------------------------------------------------------------------------------------

    @functools.cache  # noqa: B019 one study a process
    def has(self, trace: str, room: str) -> bool:
        return self.rooms[room].applies(trace)

    def rooms_of(self, trace: str) -> list[Room]:
        """The analyses that a trace has, in the order of the page."""
        return [room for name, room in self.rooms.items() if self.has(trace, name)]

    def table_named(self, name: str, where: str) -> Table:
        return known(name, self.tables, "table", where)

    def setting(self, key: str) -> Any:
        """The value at a key such as "lemons/window_days"."""
        return functools.reduce(lambda values, part: values[part], key.split("/"), self.config)

    def file(self, trace: str, name: str) -> str | None:
        """A product, a source or a table of any analysis by its name; None where the trace has none."""
        if maker := self._maker.get(name):
            return f"results/{self.place(trace)}/{self.tables[name].path}" if self.has(trace, maker) else None
        if name in self.tables:
            return f"results/{self.place(trace)}/{self.tables[name].path}"
        return self.traces[trace].file(name)

    @functools.cache  # noqa: B019 one study a process
    def paths(self, trace: str) -> set[str]:
        """Every product, source and table that a trace has."""
        return {file for name in (*PRODUCTS, *SOURCES, *self.tables) if (file := self.file(trace, name))}

    @property
    def rooms_outside(self) -> list[Room]:
        """The analyses of folders outside the checkout."""
        return [room for room in self.rooms.values() if not room.place.is_relative_to(BUILT_IN)]

    @functools.cache  # noqa: B019 one study a process
    def charts(self, trace: str) -> dict[str, Room]:
        """Chart -> its analysis, of all that a trace has, in the order of the page."""
        return {chart: room for room in self.rooms_of(trace) for chart in room.charts(trace)}

    def main(self, trace: str) -> list[str]:
        """Of the charts of a trace those that stand open on the page."""
        return [chart for chart, room in self.charts(trace).items() if chart in room.declared.main]

    def drawing(self, trace: str) -> list[Room]:
        """The analyses of a trace that draw anything."""
        return [room for room in self.rooms_of(trace) if room.charts(trace)]

    @cached_property
    def drawn_alike(self) -> dict[str, list[str]]:
        """Format -> its traces that have the same charts; where those of a format differ, a key for each kind."""
        kinds: dict[tuple, list[str]] = {}
        for trace in self.subjects:
            format = self.traces[trace].entry["format"] if trace in self.traces else trace
            kinds.setdefault((format, *self.charts(trace)), []).append(trace)
        several = {format for format, times in Counter(kind[0] for kind in kinds).items() if times > 1}
        return {f"{kind[0]}_{traces[0]}" if kind[0] in several else kind[0]: traces for kind, traces in kinds.items()}

    def drawn_from(self, trace: str) -> dict[str, str]:
        """Table -> its file, of those that charts of the trace are drawn from."""
        tables = [table for room in self.rooms_of(trace) for tables in room.charts(trace).values() for table in tables]
        found = {table: self.file(trace, table) for table in dict.fromkeys(tables)}
        return found | self.size_unit(trace) | self.outside(self.drawing(trace))

    def size_unit(self, trace: str) -> dict[str, str]:
        """The table that says in which unit the sizes of a trace's jobs are told, of a trace with jobs."""
        has_jobs = trace in self.traces and self.traces[trace].has_jobs
        return {"size_unit": f"results/{trace}/{self.tables['size_unit'].path}"} if has_jobs else {}

    def makers(self, tables: Iterable[str]) -> list[str]:
        """The analyses that these tables are of."""
        return sorted({self._maker[table] for table in tables if table in self._maker})

    def summed_up(self, trace: str) -> dict[str, str]:
        """Table or product -> its file: all that the numbers of a trace may be taken from."""
        found = {table: self.file(trace, table) for room in self.rooms_of(trace) for table in room.tables}
        found |= self.outside(self.rooms_of(trace))
        if trace == OF_STUDY:
            return found
        stages = ["row_account", "anomalies", "statistics"]
        stages += ["jobs", "nodes", "runtime_agreement"] if self.traces[trace].has_jobs else ["lives"]
        stages += ["outages", "exposure"]
        found |= self.size_unit(trace)
        return found | {name: file for name in stages if (file := self.file(trace, name))}

    def briefed(self, trace: str) -> dict[str, Any] | None:
        """What the brief of a trace says of it; nothing of the study as a whole."""
        if trace == OF_STUDY:
            return None
        about = self.traces[trace]
        asked = {"clock": about.clock, "failure_words": about.outcomes.get("failure", [])}
        return about.about | asked | {"targets": self.config["targets"]}

    def claimed(self) -> dict[str, dict[str, str]]:
        """Trace -> table that a finding is asked of -> its path, of those that the study has."""
        asked: dict[str, dict[str, str]] = {}
        for claim in self.claims:
            quantity = claim.get("quantity", {})
            traces = [claim["trace"], *quantity.get("also", [])] if "table" in quantity else []
            if set(traces) <= set(self.names):
                for trace in traces:
                    if path := self.file(trace, quantity["table"]):
                        asked.setdefault(trace, {})[quantity["table"]] = path
        return asked

    def folders_of(self, names: Iterable[str]) -> list[str]:
        """The folders outside the checkout that these analyses are in: a new one concerns no other analysis."""
        places = {str(self.rooms[name].place.parent) for name in names}
        return [folder for folder in self.folders if str(Path(folder)) in places]

    def outside(self, rooms: Iterable[Room]) -> dict[str, list[str]]:
        """Inputs of the rules of those of these analyses that lie outside the checkout, for jobs that share no disk."""
        places = [room.place for room in rooms if not room.place.is_relative_to(self.root)]
        files = sorted(str(file) for place in places for file in place.iterdir() if file.suffix in (".py", ".qmd"))
        return {"rooms": files} if files else {}

    @cached_property
    def own_files(self) -> set[str]:
        return set(self.outside(self.rooms.values()).get("rooms", []))

    # What jobs depend on and ask for -----------------------------------------------------------------------------

    def code(self, script: str, *modules: str, words: bool = False) -> str:
        """One digest of a script, the modules that it imports, and those named: another one reruns the script's rules.

        Of a declaration counts what computing and drawing go by; with `words` also its headings and sentences.
        """
        entry = self.root / "scripts" / f"{script}.py"
        files = (entry, *helpers(entry, *modules, rooms=tuple(map(Path, self.folders))))
        digest = code_digest(files, {} if words else self._declared)
        names = (file.relative_to(self.root) if file.is_relative_to(self.root) else file for file in files[1:])
        self.code_files[digest] = sorted(map(str, names))
        return digest

    @cached_property
    def _declared(self) -> dict[Path, str]:
        """Module of contracts -> what computing and drawing go by in it."""
        modules = {room.place / "__init__.py": room.module for room in self.rooms.values()}
        modules |= {self.root / "scripts" / f"{name.replace('.', '/')}.py": name for name in CONTRACTS}
        return {file: types_in(importlib.import_module(module)) for file, module in modules.items()}

    def raw_of(self, trace: str | None = None, part: str | None = None) -> tuple[str | None, float]:
        """(format, GB) of the raw tables that a job goes back to: of its part, its trace, or all traces."""
        if part is not None:
            about = self.traces[trace]
            return about.entry["format"], resources.gigabytes(about.parts[part].values())
        asked = [self.traces[trace]] if trace in self.traces else self.traces.values()
        format = self.traces[trace].entry["format"] if trace in self.traces else None
        return format, resources.gigabytes(file for one in asked for files in one.raw_files.values() for file in files)

    def megabytes(self, rule: str, attempt: int, **of: str) -> int:
        return resources.megabytes(self.measured, rule, *self.raw_of(**of), attempt)

    def minutes(self, attempt: int, **of: str) -> int:
        return resources.minutes(self.measured, self.raw_of(**of)[1], attempt)


@functools.cache
def seen_from_here(path: Path | str) -> str:
    """A file of the checkout as a path from where the command is typed, or in full if it lies elsewhere."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches just these names; where there are none, nothing."""
    return "|".join(names) or "(?!)"
