"""An analysis in a study: on which of its traces it runs, what it reads there, and what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttf.analyses import module_name
from ttf.analyses.declaration import PRODUCTS, Analysis
from ttf.analyses.sections import THEMES

from study.documents import mean
from study.messages import ConfigError

if TYPE_CHECKING:
    from study.study import Study

# Beside products and tables: files that a registry entry names, and the jobs that drift is measured against.
SOURCES = ("events", "losses", "tails", "jobs_against")
OF_STUDY = "comparison"


class Room:
    """A declaration bound to the study.

    Raises ConfigError where it names a table that no analysis has, or a key that the configuration has not.
    """

    def __init__(self, name: str, declared: Analysis, place: Path, study: Study) -> None:
        self.name, self.declared, self.place, self._study = name, declared, place, study
        self.tables = {table.name: table for table in declared.tables}
        self.title = THEMES[declared.theme].title
        for asked in (*declared.needs, *declared.uses):
            if asked not in PRODUCTS and asked not in SOURCES:
                study.table_named(asked, f"analysis {name}")
        for setting, asked in declared.settings.items():
            if isinstance(asked, str):
                check_key(asked, study.config, f"analysis {name}, setting {setting}")

    @property
    def module(self) -> str:
        return module_name(self.name)

    def has(self, part: str) -> bool:
        """Whether it has a module of this name, such as `numbers`."""
        return (self.place / f"{part}.py").is_file()

    def module_of(self, *parts: str) -> list[str]:
        return [f"{self.module}.{part}" for part in parts if self.has(part)]

    @property
    def reads(self) -> list[str]:
        """The analyses whose tables it reads."""
        return self._study.makers((*self.declared.needs, *self.declared.uses))

    def applies(self, trace: str) -> bool:
        """Whether a trace, or the study as a whole, has the analysis."""
        if self.declared.of_study or trace == OF_STUDY:
            return self.declared.of_study and trace == OF_STUDY
        about = self._study.traces[trace]
        return all(self._files(trace, name) for name in self.declared.needs) and self.declared.applies(about)

    @property
    def traces(self) -> list[str]:
        return [trace for trace in self._study.subjects if self._study.has(trace, self.name)]

    def inputs(self, trace: str) -> dict[str, Any]:
        """Name -> its file, or the files of all traces that have it."""
        found = {name: self._files(trace, name) for name in (*self.declared.needs, *self.declared.uses)}
        found |= self._study.size_unit(trace) if self.declared.in_size_unit else {}
        return {name: files for name, files in found.items() if files} | self._study.outside([self])

    def _files(self, trace: str, name: str) -> Any:
        if not self.declared.of_study:
            return self._study.file(trace, name)
        return [file for one in self._study.traces if (file := self._study.file(one, name))]

    def outputs(self) -> dict[str, str]:
        """Table -> its path, as the rule writes it."""
        return {name: f"results/{self._study.home(self.traces)}/{table.path}" for name, table in self.tables.items()}

    def folders(self) -> dict[str, str]:
        """Folder -> its path; which files it holds is known when they are there."""
        return {name: f"results/{self._study.home(self.traces)}/{name}" for name in self.declared.folders}

    def settings(self, trace: str) -> dict[str, Any]:
        about = self._study if self.declared.of_study else self._study.traces[trace]
        return {
            name: self._study.setting(asked) if isinstance(asked, str) else asked(about)
            for name, asked in self.declared.settings.items()
        }

    def charts(self, trace: str) -> dict[str, tuple[str, ...]]:
        """Chart -> the tables that its numbers stand in. Raises ConfigError for a table that there is not."""
        about = self._study if self.declared.of_study else self._study.traces[trace]
        declared = self.declared.charts(about) if callable(self.declared.charts) else self.declared.charts
        charts = {name: (tables,) if isinstance(tables, str) else tuple(tables) for name, tables in declared.items()}
        for name, tables in charts.items():
            for table in tables:
                self._study.table_named(table, f"chart {name} of analysis {self.name}")
        return charts


def known(name: str, names: Mapping[str, Any], what: str, where: str) -> Any:
    """names[name]. Raises ConfigError with the nearest right name."""
    if name in names:
        return names[name]
    raise ConfigError(f"{where}: there is no {what} {name}{mean(name, names)}")


def check_key(key: str, config: Mapping[str, Any], where: str) -> None:
    """Raises ConfigError, with the nearest right one, for a key such as "lemons/window_days" that there is not."""
    values, above = config, ""
    for part in key.split("/"):
        keys = {f"{above}{name}": value for name, value in values.items()} if isinstance(values, Mapping) else {}
        values = known(f"{above}{part}", keys, "key", where)
        above += f"{part}/"
