"""A trace of the study as rules and declarations of analyses see it: its properties and the paths of its products."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ttf.analyses.declaration import PRODUCTS
from ttf.engine.columns import GAP
from ttf.raw.extra_tables import SCHEMA
from ttf.study.configuration.mapping import parse_window
from ttf.study.configuration.model_features import build_risk_options
from ttf.study.configuration.registry_options import merge_infra_failures
from ttf.study.recognition.first_lines import build_layouts, read_names
from ttf.study.recognition.format_declarations import merge_outcomes, select_meaning, select_reading_options
from ttf.study.trace_files import find_log_key, get_disk_path, get_member, get_part_name
from ttf.study.watch import parse_boots, parse_log_end, read_watch_options

STRATA_OF_JOBS = ["gpu_type", "gpu_count", "account"]


@dataclass(repr=False)
class Trace:
    """entry: the trace in the registry; format: the declaration of its format.

    raw_files: table -> files. parts: part -> table -> file. sample_files: table -> files of an embedded sample.
    unread_entries: entry of its folders -> reason. sources: name -> path of a file besides the common tables, such as
    typed health events or the tails of logs. windows: the periods compared for drift. shares: number of jobs that
    share the work on its tables. node_logs: files of nodes' logs. log_rules: rules that pick errors from them.
    training_logs: files of training runs' logs. log_profiles: patterns that read them.
    """

    name: str
    entry: dict
    format: dict
    settings: dict
    raw_files: dict[str, list[str]]
    parts: dict[str, dict[str, str]]
    sample_files: dict[str, list[str]]
    unread_entries: dict[str, str]
    sources: dict[str, str]
    windows: dict
    shares: int
    tells_reasons: bool
    taxonomy: dict
    outage_rules: list
    schema: str | None
    node_logs: list[str] = field(default_factory=list)
    log_rules: dict = field(default_factory=dict)
    training_logs: list[str] = field(default_factory=list)
    log_profiles: dict = field(default_factory=dict)

    @property
    def gives(self) -> str:
        """Return what the format gives: jobs, outages or durations."""
        return self.format["gives"]

    @property
    def has_jobs(self) -> bool:
        return self.gives == "jobs"

    @property
    def has_outages(self) -> bool:
        """Return whether the trace records outages of units, always or in a table such as node events."""
        return self.gives == "outages" or self._has_information("outages")

    @cached_property
    def has_exposure(self) -> bool:
        """Return whether the observed units are known, including units without an outage."""
        return self.has_outages and (self._has_information("exposure") or "nodes" in self.entry)

    @property
    def may_have_exposure(self) -> bool:
        """Return whether the exposure may only be known if the registry gives the number of units."""
        is_open = self.has_outages and self.format.get("exposure") is not False
        return not self.has_exposure and (
            is_open or (find_log_key(self.format) == "node_logs" and "nodes" not in self.entry)
        )

    @property
    def absent_tables(self) -> dict[str, str]:
        """Map each missing raw table to a clause that says what is therefore unknown."""
        tables = self.format["tables"].items()
        return {name: spec["without"] for name, spec in tables if "without" in spec and name not in self.raw_files}

    def _has_information(self, key: str) -> bool:
        """Return whether the trace has this information: always, by one of its tables, or by a column of a table."""
        declared = self.format.get(key, False)
        if isinstance(declared, dict):
            layout = build_layouts(self.entry, self.format)[declared["table"]]
            return any(
                declared["column"] in (read_names(file, layout) or ())
                for file in self.raw_files.get(declared["table"], ())
            )
        return declared if isinstance(declared, bool) else declared in self.raw_files

    @property
    def unit(self) -> str:
        """Return the noun for what the trace records, such as job or drive."""
        return self.format["unit"]

    @property
    def subject(self) -> str:
        """Return what a duration of the trace is.

        This is a job, or for a repaired unit the time up between two outages. For a component that is not repaired it
        is a period at risk, unless the format names something else.
        """
        if self.has_jobs:
            return self.unit
        return GAP if self.has_outages else self.format.get("subject", "period at risk")

    @property
    def synthetic(self) -> bool:
        return self.entry.get("synthetic", False)

    @property
    def datasets(self) -> list[str]:
        """Return the data sets whose published findings apply: its own name, that in the registry, its format."""
        return [*dict.fromkeys((self.name, self.entry.get("dataset", self.name), self.entry["format"]))]

    @property
    def strata(self) -> list[str]:
        return self.format.get("strata", STRATA_OF_JOBS)

    @property
    def causes(self) -> list[str]:
        return self.format.get("causes", [])

    @property
    def outcomes(self) -> dict[str, list[str]]:
        """Map each outcome to the status words that mean it."""
        return merge_outcomes(self.entry, self.format)

    @property
    def changed_outcomes(self) -> dict[str, list[str]]:
        """Map each outcome to the status words that the registry gives it instead of that of the format."""
        return self.entry.get("outcomes", {}) if "outcomes" in self.format else {}

    @property
    def words(self) -> list[str]:
        """Return all status words of the outcomes."""
        return [word for words in self.outcomes.values() for word in words]

    @property
    def infra_failures(self) -> dict:
        return merge_infra_failures(self.entry, self.settings["infra_failures"], self.format)

    @property
    def window(self) -> tuple[int, int] | None:
        """Return the window [from, to) of the registry in seconds since 1970; None without one."""
        return parse_window(self.entry)

    @property
    def clock(self) -> str | None:
        """Return the time zone of submissions; None if times count from an unknown origin."""
        times = self.entry.get("times", {})
        if times.get("format") == "seconds":
            return None
        return times.get("zone") or self.format.get("zone", "UTC")

    @property
    def risk(self) -> dict[str, Any] | None:
        """Return features, clock and unit of the failure-risk model; None without submitted jobs."""
        return build_risk_options(self.name, self.entry, self.format, self.settings["risk"]["features"], self.clock)

    @property
    def meaning(self) -> dict:
        """Return the mapping and the outcomes of the columns: see `select_meaning`; and the limits of logs."""
        if find_log_key(self.format) != "node_logs":
            return select_meaning(self.entry, self.format)
        watch = read_watch_options(self.entry, self.clock)
        return select_meaning(self.entry, self.format) | {"node_logs": self.log_limits} | watch

    @property
    def reader_options(self) -> dict[str, Any]:
        """Return the parameters of the rules that read raw tables."""
        logs = {"rules": self.log_rules, "times": self.log_times} | self.log_limits
        options = {"node_logs": logs, "training_logs": self.training_log_options}
        key = find_log_key(self.format)
        entry = select_reading_options(self.entry) | ({key: options[key]} if key else {})
        return {"reader": self.format.get("reader"), "entry": entry, "schema": self.schema}

    @property
    def reader(self) -> list[str]:
        """Return the module that reads raw tables which are not text tables, if the format has one."""
        return [self.format["reader"]] if "reader" in self.format else []

    @property
    def derivation_options(self) -> dict[str, Any]:
        """Return the parameters of the rules that derive the common tables."""
        return {
            "code": self.format["code"],
            "meaning": self.meaning,
            "tables": [table for table in self.raw_files if table not in SCHEMA["tables"]],
        }

    @property
    def log_times(self) -> dict[str, Any]:
        """Return what the times in nodes' logs lack: zone, end_s and boots of LogOptions."""
        zone = self.entry.get("node_log_zone") or self.clock or "UTC"
        return {"zone": zone, "end_s": parse_log_end(self.entry), "boots": parse_boots(self.entry, zone)}

    @property
    def training_log_options(self) -> dict[str, Any]:
        """Return the patterns of training logs, and the time zone of lines that name none."""
        zone = self.entry.get("training_log_zone") or self.clock or "UTC"
        return {"profiles": self.log_profiles, "zone": zone}

    @property
    def log_limits(self) -> dict[str, int]:
        return {key: self.settings["node_logs"][key] for key in ("merge_s", "gap_s", "boot_s")}

    @property
    def outage_options(self) -> dict[str, Any]:
        """Return the parameters of derive_outages: also the number of observed units and the observation window."""
        return self.derivation_options | {"meaning": self.meaning | read_watch_options(self.entry, self.clock)}

    @property
    def raw_paths(self) -> dict[str, list[str]]:
        return {table: [get_disk_path(file) for file in files] for table, files in self.raw_files.items()}

    def part_paths(self, part: str) -> dict[str, str]:
        return {table: get_disk_path(file) for table, file in self.parts[part].items()}

    def list_part_products(self, product: str) -> list[str]:
        return [f"results/{self.name}/parts/{part}/{product}" for part in self.parts]

    @property
    def share_folders(self) -> list[str]:
        """Return the folders of the shares; none if one process does all the work."""
        return [f"results/{self.name}/shares/{share}" for share in range(self.shares)] if self.shares > 1 else []

    def find_rule_inputs(self, rule: str) -> dict[str, str]:
        """Map the products and sources that a rule reads besides raw tables to their paths."""
        duration_sources = {"jobs": ["jobs"], "outages": ["outages", "exposure"], "durations": ["raw"]}
        names_by_rule = {
            "derive_attempts": ["events"],
            "derive_outages": ["placements"] if self.has_jobs else [],
            "derive_durations": duration_sources[self.gives],
            "derive_training_events": [] if self.has_jobs else ["raw"],
            "derive_node_errors": ["jobs", "nodes", "placements", "exposure"],
            "derive_infra_durations": ["jobs", "attempts", "events", "outages"] if self.has_jobs else ["durations"],
        }
        inputs = {name: file for name in names_by_rule[rule] if (file := self.find_file(name))}
        if rule == "derive_infra_durations" and {"node_errors", "placements"} <= self.products:
            inputs["attributions"] = f"results/{self.name}/error_attributions.parquet"
        return inputs

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """Map each table to the name of each of its files inside an archive; empty for a plain file."""
        return {table: [get_member(file) for file in files] for table, files in self.raw_files.items()}

    @cached_property
    def part_members(self) -> dict[str, dict[str, str]]:
        """Map part -> table -> name of its file inside an archive; empty for a plain file."""
        return {part: {table: get_member(file) for table, file in files.items()} for part, files in self.parts.items()}

    @property
    def entries(self) -> list[dict[str, str]]:
        """Return {file, table, part} for each entry that is read, {file, reason} for each other entry."""
        parts = {(table, file): part for part, tables in self.parts.items() for table, file in tables.items()}
        has_folders = isinstance(self.entry.get("folder"), list)
        entries = []
        for table, files in self.raw_files.items():
            for file in files:
                part = parts.get((table, file), "")
                path = (part if has_folders else "", Path(get_disk_path(file)).name, get_member(file))
                entries.append({"file": "/".join(filter(None, path)), "table": table, "part": part})
        return entries + [{"file": file, "reason": reason} for file, reason in self.unread_entries.items()]

    @property
    def has_named_file(self) -> bool:
        """Return whether the trace names a file of a table that is otherwise all files of a folder."""
        return any("every" in self.format["tables"][table] for table in self.entry.get("files", {}))

    @property
    def unread_entries_by_folder(self) -> dict[str, list[str]]:
        """Map each folder of raw tables to its unread entries; an embedded sample has none."""
        folder = self.entry.get("folder")
        if isinstance(folder, list):
            prefixes = {name: f"{get_part_name(name)}/" for name in folder}
            return {
                name: [entry.removeprefix(prefix) for entry in self.unread_entries if entry.startswith(prefix)]
                for name, prefix in prefixes.items()
            }
        return {folder or f"data/{self.name}": list(self.unread_entries)}

    @property
    def products(self) -> set[str]:
        """Return the names of the products that exist before the analyses."""
        jobs = {"jobs", "nodes"} if self.has_jobs else set()
        optional = {name for name in ("attempts", "placements") if self.format.get(name)}
        durations = {"durations", "durations_infra"} if self.gives != "outages" or self.has_exposure else set()
        outages = {"outages", "outage_records"} if self.has_outages else set()
        exposure = {"exposure"} if self.has_exposure else set()
        logs = {"node_errors", "node_log_watch", "node_log_lines"} if self.node_logs else set()
        logs |= {"training_events", "training_log_lines"} if self.training_logs else set()
        return {"raw"} | durations | outages | exposure | jobs | optional | logs

    def find_file(self, name: str) -> str | None:
        """Return the path of a product before the analyses, or of a source; None if the trace has none."""
        if name in self.products:
            return f"results/{self.name}/{PRODUCTS[name]}"
        if name == "jobs_against" and "against" in self.windows:
            return f"results/{self.windows['against']}/jobs.parquet"
        return self.sources.get(name)

    @property
    def has_public_names(self) -> bool:
        """Return whether the names of users, accounts and nodes identify nobody."""
        return self.synthetic or self.entry.get("names") == "public"

    @property
    def description(self) -> dict[str, Any]:
        """Return what the report says about the trace."""
        keys = ("format", "title", "source", "licence", "citation", "note", "fitted")
        return {key: self.entry[key] for key in keys if key in self.entry} | {
            "synthetic": self.synthetic,
            "datasets": self.datasets,
            "parts": len(self.parts),
            "unit": self.unit,
            "subject": self.subject,
            "gives": self.gives,
            "may_have_exposure": self.may_have_exposure,
            "absent_tables": self.absent_tables,
        }
