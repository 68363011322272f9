"""A trace of the study, as rules and declarations of analyses ask of it: what it has, and where that lies."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ttf.analyses.declaration import PRODUCTS
from ttf.engine.columns import GAP
from ttf.raw.extra_tables import SCHEMA

from study.first_lines import layouts_of, names_in
from study.format_declarations import OF_READING, meaning_of
from study.mapping import window_of
from study.model_features import risk_of
from study.registry_options import infra_failures_of
from study.trace_files import member_of, on_disk, part_of
from study.watch import watch_of

STRATA_OF_JOBS = ["gpu_type", "gpu_count", "account"]


@dataclass
class Trace:
    """entry: of the registry; format: its declaration; raw_files: table -> files; parts: part -> table -> file.

    left_out: entry of its folders -> why it is not read; sources: name -> what lies beside the common tables: the typed
    raw tables for health events and losses, or the tails of logs; made_files: by table, of an embedded sample; windows:
    between which its drift is measured; shares: jobs that share the work on its tables.
    """

    name: str
    entry: dict
    format: dict
    settings: dict
    raw_files: dict[str, list[str]]
    parts: dict[str, dict[str, str]]
    made_files: dict[str, list[str]]
    left_out: dict[str, str]
    sources: dict[str, str]
    windows: dict
    shares: int
    tells_reasons: bool
    taxonomy: dict = field(repr=False)
    outage_rules: list = field(repr=False)
    schema: str | None = field(repr=False)

    @property
    def gives(self) -> str:
        return self.format["gives"]

    @property
    def has_jobs(self) -> bool:
        return self.gives == "jobs"

    @property
    def has_outages(self) -> bool:
        """Whether it tells when units were down: always, or by a table of its own, such as node events beside jobs."""
        return self.gives == "outages" or self._tells("outages")

    @cached_property
    def has_exposure(self) -> bool:
        """Whether the units that were watched are known, those without an outage too."""
        return self.has_outages and (self._tells("exposure") or "nodes" in self.entry)

    @property
    def may_have_exposure(self) -> bool:
        """Whether it would be known if the registry said how many there were."""
        return self.has_outages and not self.has_exposure and self.format.get("exposure") is not False

    @property
    def absent_tables(self) -> dict[str, str]:
        """Raw table that the trace comes without -> what is not known for that reason, as a clause."""
        tables = self.format["tables"].items()
        return {name: spec["without"] for name, spec in tables if "without" in spec and name not in self.raw_files}

    def _tells(self, key: str) -> bool:
        """Whether it does by its format: always, where it has a table, or where that table has a column."""
        said = self.format.get(key, False)
        if isinstance(said, dict):
            layout = layouts_of(self.entry, self.format)[said["table"]]
            return any(
                said["column"] in (names_in(file, layout) or ()) for file in self.raw_files.get(said["table"], ())
            )
        return said if isinstance(said, bool) else said in self.raw_files

    @property
    def unit(self) -> str:
        """What a job, or the unit that lives, is called."""
        return self.format["unit"]

    @property
    def life(self) -> str:
        """What its lives are: jobs, or the time that a unit which is repaired was up from one outage to the next.

        Of components that are not repaired: a period at risk, unless the format says that each has one.
        """
        if self.has_jobs:
            return self.unit
        return GAP if self.has_outages else self.format.get("life", "period at risk")

    @property
    def synthetic(self) -> bool:
        return self.entry.get("synthetic", False)

    @property
    def strata(self) -> list[str]:
        """What lives are divided by, besides `all`."""
        return self.format.get("strata", STRATA_OF_JOBS)

    @property
    def causes(self) -> list[str]:
        return self.format.get("causes", [])

    @property
    def outcomes(self) -> dict[str, list[str]]:
        """Outcome -> the words for it: those of the registry entry, else of the format."""
        return self.entry.get("outcomes") or self.format.get("outcomes", {})

    @property
    def words(self) -> list[str]:
        """The words that a status may be."""
        return [word for words in self.outcomes.values() for word in words]

    @property
    def infra_failures(self) -> dict:
        """What ends a run by infrastructure."""
        return infra_failures_of(self.entry, self.settings["infra_failures"], self.format)

    @property
    def window(self) -> tuple[int, int] | None:
        return window_of(self.entry)

    @property
    def clock(self) -> str | None:
        """The zone by which the hour of a submission is known; None where times count from an origin that is not."""
        times = self.entry.get("times", {})
        if times.get("format") == "seconds":
            return None
        return times.get("zone") or self.format.get("zone", "UTC")

    @property
    def risk(self) -> dict[str, Any] | None:
        """What the failure-risk model goes by: features, clock and unit; None of a trace without submitted jobs."""
        return risk_of(self.name, self.entry, self.format, self.settings["risk"]["features"], self.clock)

    @property
    def reading(self) -> dict:
        """What the registry says of how the trace is read: its mapping, or the zone of its times."""
        return {key: self.entry[key] for key in OF_READING if key in self.entry}

    @property
    def meaning(self) -> dict:
        """What jobs are derived by, beside the raw tables."""
        return meaning_of(self.entry, self.format)

    @property
    def read_by(self) -> dict[str, Any]:
        """What the rules that read raw tables are given: reader, schema, and what the registry says of them."""
        return {"reader": self.format.get("reader"), "entry": self.reading, "schema": self.schema}

    @property
    def reader(self) -> list[str]:
        """The module that reads raw tables which are no tables of lines, if the format has one."""
        return [self.format["reader"]] if "reader" in self.format else []

    @property
    def derived_by(self) -> dict[str, Any]:
        """What the rules that derive the common tables are given: code, what words and columns mean, raw tables."""
        return {
            "code": self.format["code"],
            "meaning": self.meaning,
            "tables": [table for table in self.raw_files if table not in SCHEMA["tables"]],
        }

    @property
    def outages_by(self) -> dict[str, Any]:
        """What derive_outages is given: the same, and how many units the registry says were watched, and when."""
        return self.derived_by | {"meaning": self.meaning | watch_of(self.entry, self.clock)}

    @property
    def raw_inputs(self) -> dict[str, list[str]]:
        """Table -> the files that it is read from; several tables may be in one archive."""
        return {table: [on_disk(file) for file in files] for table, files in self.raw_files.items()}

    def part_inputs(self, part: str) -> dict[str, str]:
        return {table: on_disk(file) for table, file in self.parts[part].items()}

    def of_parts(self, product: str) -> list[str]:
        """One product of every part, in the order of the parts."""
        return [f"results/{self.name}/parts/{part}/{product}" for part in self.parts]

    @property
    def of_shares(self) -> list[str]:
        """What each share of the work found; nothing where one process does it all."""
        return [f"results/{self.name}/shares/{share}" for share in range(self.shares)] if self.shares > 1 else []

    def derived_from(self, rule: str) -> dict[str, str]:
        """What a rule reads beside raw tables, by name: those of its products and sources that the trace has."""
        names = {
            "derive_attempts": ["events"],
            "derive_outages": ["placements"] if self.has_jobs else [],
            "derive_lives": {"jobs": ["jobs"], "outages": ["outages", "exposure"], "lives": ["raw"]}[self.gives],
            "derive_infra_lives": ["jobs", "attempts", "events", "outages"] if self.has_jobs else ["lives"],
        }
        return {name: file for name in names[rule] if (file := self.file(name))}

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """Table -> what each of its files is in its archive; nothing where the file itself is the table."""
        return {table: [member_of(file) for file in files] for table, files in self.raw_files.items()}

    @cached_property
    def members_of_parts(self) -> dict[str, dict[str, str]]:
        return {part: {table: member_of(file) for table, file in files.items()} for part, files in self.parts.items()}

    @property
    def entries(self) -> list[dict[str, str]]:
        """What became of each entry of its folders: {file, table, part} of one that is read, else {file, reason}."""
        parts = {(table, file): part for part, tables in self.parts.items() for table, file in tables.items()}
        folders = isinstance(self.entry.get("folder"), list)
        read = []
        for table, files in self.raw_files.items():
            for file in files:
                part = parts.get((table, file), "")
                name = "/".join(filter(None, (part if folders else "", Path(on_disk(file)).name, member_of(file))))
                read.append({"file": name, "table": table, "part": part})
        return read + [{"file": file, "reason": reason} for file, reason in self.left_out.items()]

    @property
    def folders_of_raw(self) -> dict[str, list[str]]:
        """Folder of its raw tables -> the entries that are not read; nothing of an embedded sample."""
        folder = self.entry.get("folder")
        if isinstance(folder, list):
            parts = {name: f"{part_of(name)}/" for name in folder}
            return {
                name: [entry.removeprefix(part) for entry in self.left_out if entry.startswith(part)]
                for name, part in parts.items()
            }
        return {} if folder is None else {folder: list(self.left_out)}

    @property
    def products(self) -> set[str]:
        """Which of the products before the analyses it has."""
        of_jobs = {"jobs", "nodes"} if self.has_jobs else set()
        optional = {name for name in ("attempts", "placements") if self.format.get(name)}
        lives = {"lives", "lives_infra"} if self.gives != "outages" or self.has_exposure else set()
        outages = {"outages", "outage_records"} if self.has_outages else set()
        exposure = {"exposure"} if self.has_exposure else set()
        return {"raw"} | lives | outages | exposure | of_jobs | optional

    def file(self, name: str) -> str | None:
        """Where a product before the analyses lies, or what is given beside the tables; None where it has none."""
        if name in self.products:
            return f"results/{self.name}/{PRODUCTS[name]}"
        if name == "jobs_against" and "against" in self.windows:
            return f"results/{self.windows['against']}/jobs.parquet"
        return self.sources.get(name)

    @property
    def compared(self) -> dict[str, Any]:
        """What the comparison says of the trace; outcomes: those that it can have, None where that is not known."""
        outcomes = sorted(self.outcomes) or None
        has = {"gives": "jobs" if self.has_jobs else "lives", "lives": "lives" in self.products}
        return {"unit": self.unit, "synthetic": self.synthetic, "outcomes": outcomes} | has

    @property
    def names_are_public(self) -> bool:
        """Whether nobody is found out by the names of its users, accounts and nodes."""
        return self.synthetic or self.entry.get("names") == "public"

    @property
    def about(self) -> dict[str, Any]:
        """What the report says of the trace."""
        keys = ("format", "title", "source", "licence", "citation", "note")
        return {key: self.entry[key] for key in keys if key in self.entry} | {
            "synthetic": self.synthetic,
            "parts": len(self.parts),
            "unit": self.unit,
            "life": self.life,
            "gives": self.gives,
            "may_have_exposure": self.may_have_exposure,
            "absent_tables": self.absent_tables,
        }
