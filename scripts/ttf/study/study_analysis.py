"""An analysis bound to a study: the traces it runs on, its inputs and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ttf.analyses import BUILT_IN, module_name
from ttf.analyses.declaration import PRODUCTS, Analysis
from ttf.analyses.sections import THEMES
from ttf.study.configuration.documents import suggest_match
from ttf.study.configuration.messages import ConfigError

# Inputs other than products and tables: files that a registry entry names, and the reference jobs for drift.
SOURCES = ("events", "losses", "tails", "jobs_against")


class StudyAnalysis:
    """Bind a declaration to the study. Raises ConfigError for an unknown table, or key of the configuration."""

    def __init__(self, name: str, declaration: Analysis, folder: Path, study: Any) -> None:
        """study: the ttf.study.study.Study that it belongs to."""
        self.name, self.declaration, self.folder, self._study = name, declaration, folder, study
        self.tables = {table.name: table for table in declaration.tables}
        self.title = THEMES[declaration.theme].title
        for source in (*declaration.needs, *declaration.uses):
            if source not in PRODUCTS and source not in SOURCES:
                study.require_table(source, f"analysis {name}")
        for setting, key in declaration.settings.items():
            if isinstance(key, str):
                check_key(key, study.config, f"analysis {name}, setting {setting}")

    @property
    def is_external(self) -> bool:
        """Whether it lies in a folder of the user."""
        return not self.folder.is_relative_to(BUILT_IN)

    @property
    def module(self) -> str:
        return module_name(self.name)

    def has_module(self, name: str) -> bool:
        return (self.folder / f"{name}.py").is_file()

    def list_modules(self, *names: str) -> list[str]:
        return [f"{self.module}.{name}" for name in names if self.has_module(name)]

    @property
    def input_analyses(self) -> list[str]:
        """Return the names of the analyses whose tables this one reads."""
        return self._study.list_producers((*self.declaration.needs, *self.declaration.uses))

    def applies(self, trace: str) -> bool:
        has_inputs = all(self._study.find_file(trace, name) for name in self.declaration.needs)
        return has_inputs and self.declaration.applies(self._study.traces[trace])

    @property
    def traces(self) -> list[str]:
        return [trace for trace in self._study.names if self._study.has_analysis(trace, self.name)]

    def inputs(self, trace: str) -> dict[str, Any]:
        """Return the inputs of the analysis's rule for a trace: name -> path or paths."""
        names = (*self.declaration.needs, *self.declaration.uses)
        files_by_name = {name: self._study.find_file(trace, name) for name in names}
        files_by_name |= self._study.find_size_unit(trace) if self.declaration.in_size_unit else {}
        return {name: file for name, file in files_by_name.items() if file} | self._study.list_external_files([self])

    def outputs(self) -> dict[str, str]:
        """Return the paths of the tables, by name, with the wildcard {trace}."""
        return {name: f"results/{{trace}}/{table.path}" for name, table in self.tables.items()}

    def folders(self) -> dict[str, str]:
        """Return the folders that the analysis writes, by name; the paths have the wildcard {trace}."""
        return {name: f"results/{{trace}}/{name}" for name in self.declaration.folders}

    def settings(self, trace: str) -> dict[str, Any]:
        return {
            name: self._study.get_setting(source) if isinstance(source, str) else source(self._study.traces[trace])
            for name, source in self.declaration.settings.items()
        }

    def charts(self, trace: str) -> dict[str, tuple[str, ...]]:
        """Map each chart to its tables. Raises ConfigError for an unknown table."""
        charts = self.declaration.charts
        charts = charts(self._study.traces[trace]) if callable(charts) else charts
        tables_by_chart: dict[str, tuple[str, ...]] = {}
        for name, tables in charts.items():
            tables_by_chart[name] = (tables,) if isinstance(tables, str) else tuple(tables)
            for table in tables_by_chart[name]:
                self._study.require_table(table, f"chart {name} of analysis {self.name}")
        return tables_by_chart


def require_name(name: str, names: Mapping[str, Any], kind: str, label: str) -> Any:
    """Return names[name]. Raises ConfigError that suggests the closest name."""
    if name in names:
        return names[name]
    raise ConfigError(f"{label}: there is no {kind} {name}{suggest_match(name, names)}")


def check_key(key: str, config: Mapping[str, Any], label: str) -> None:
    """Raise ConfigError for an unknown key such as "lemons/window_days"; it suggests the closest key."""
    values, prefix = config, ""
    for part in key.split("/"):
        keys = {f"{prefix}{name}": value for name, value in values.items()} if isinstance(values, Mapping) else {}
        values = require_name(f"{prefix}{part}", keys, "key", label)
        prefix += f"{part}/"
