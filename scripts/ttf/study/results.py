"""The results of a finished study for programs and papers: its tables, its numbers, and what is withheld."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ttf.display.trace_numbers import find_interval
from ttf.engine.closest_match import closest_match
from ttf.engine.contract import Table
from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.tables import read_without_renaming
from ttf.page.checks.thresholds import explain_missing, find_reason
from ttf.page.results_tables import load_all_contracts
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.finished import make_subject, read_numbers

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Number:
    """A number of the report.

    Attributes
    ----------
    key: such as mttf.mttf_s.
    value: None if the number is withheld; `withheld` says why.
    unit: s, share and the like; "" for none.
    low, high: bounds of the interval at the confidence of the study; None where there is none.
    clusters: by what the interval is clustered, "" if durations are taken as independent.
    n: number of observations behind it.
    definition: the meaning of its column.
    source: the table that has it as a cell, below the folder of the trace.
    """

    key: str
    value: float | int | str | bool | None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    clusters: str = ""
    n: int | None = None
    definition: str = ""
    source: str = ""
    withheld: str = ""


class Tables(Mapping[str, "pl.DataFrame"]):
    """The tables of a trace by name, read with the types of their contracts when they are asked for."""

    def __init__(self, folder: Path, contracts: Mapping[str, Table]) -> None:
        self._folder = folder
        self._contracts = {name: table for name, table in contracts.items() if (folder / table.path).is_file()}

    def read(self, name: str) -> tuple[pl.DataFrame, Table]:
        """Return a table and its contract, in the size unit of the trace. Raises KeyError for an unknown name."""
        if name not in self._contracts:
            raise KeyError(f"{name}: the trace has no such table{_suggest(name, self._contracts)}")
        contract = self._contracts[name]
        path = self._folder / contract.path
        if path.suffix == ".parquet":
            return scan_parquet(path).collect(), contract
        return read_without_renaming(path, contract)

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self.read(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contracts)

    def __len__(self) -> int:
        return len(self._contracts)


class Numbers(Mapping[str, Number]):
    """The numbers of a trace by key. A withheld number has no value; an unknown key raises KeyError."""

    def __init__(self, folder: Path, tables: Tables) -> None:
        self._subject, self._tables = make_subject(folder, read_numbers(folder / "metrics.json")), tables

    def __getitem__(self, key: str) -> Number:
        cells = self._subject.metrics
        if withheld := find_reason(key, self._subject):
            return Number(key, None, withheld=withheld)
        if key not in cells:
            raise KeyError(f"{key}: {explain_missing(key, self._subject)}{_suggest(key, cells)}")
        cell = cells[key]
        low, high, clusters = find_interval(cells, key) or (None, None, "")
        definition = cell.get("definition", "")
        return Number(key, cell["value"], cell["unit"], low, high, clusters, cell["n"], definition, cell["source"])

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._subject.metrics, *self._subject.withheld]))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _suggest(name: str, names: Iterable[str]) -> str:
    match = closest_match(name, names)
    return f"; did you mean {match}?" if match else ""


class FinishedTrace:
    """A trace of a finished study: `tables`, `numbers`, and `jobs`, the job record."""

    def __init__(self, folder: Path, contracts: Mapping[str, Table]) -> None:
        if not folder.is_dir():
            raise StudyError(f"{folder}: the results of this trace are not there.")
        self.name, self._folder, self._contracts = folder.name, folder, contracts

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(self._folder, self.tables)

    @cached_property
    def tables(self) -> Tables:
        return Tables(self._folder, self._contracts)

    @property
    def jobs(self) -> pl.DataFrame:
        return scan_parquet(self._folder / "jobs.parquet").collect()


class FinishedStudy:
    """A finished study: its traces, and for a study of one trace that trace's tables and numbers."""

    def __init__(self, folder: Path) -> None:
        config = folder / "config.yaml"
        if not config.is_file():
            raise StudyError(f"{folder}: is not the folder of a finished study, such as results/studies/name.")
        document = load_yaml(config, str(config))
        self.name, self.traces = folder.name, tuple(document["study"])
        self._results = folder.resolve().parents[1]
        self._contracts = load_all_contracts(tuple(document.get("analyses", ())))

    def trace(self, name: str) -> FinishedTrace:
        """Return a trace of the study. Raises StudyError for a name that it lacks."""
        if name not in self.traces:
            raise StudyError(f"{name}: the study {self.name} has no such trace, but {', '.join(self.traces)}.")
        return FinishedTrace(self._results / name, self._contracts)

    @cached_property
    def _only_trace(self) -> FinishedTrace:
        if len(self.traces) > 1:
            raise StudyError(f"the study {self.name} has several traces; name one: study.trace({self.traces[0]!r})")
        return self.trace(self.traces[0])

    @property
    def numbers(self) -> Numbers:
        return self._only_trace.numbers

    @property
    def tables(self) -> Tables:
        return self._only_trace.tables
