"""What an analysis, its drawing and its numbers are given: the files of its rule by name, and its settings."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import polars as pl

from ttf.engine.contract import Table
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.partitions import spill_beside
from ttf.engine.storage.tables import read_table, scan_columns
from ttf.records.jobs import in_size_unit
from ttf.records.record_contracts import SIZE_UNIT

# What has sizes of jobs, and the columns that they are told by in other units than GPUs.
_SIZED, _TOLD_BY = ("jobs", "attempts", "lives", "lives_infra"), ("nodes", "cpu_milli")


def size_unit_of(path: str | Path | None) -> SizeUnit:
    """The unit in which sizes of a trace are told, of its size_unit.csv; GPU of a trace without jobs."""
    return GPU if path is None else SizeUnit(read_table(path, SIZE_UNIT).filter("used")["unit"].item())


class Inputs:
    """files: name -> a path, or a list of them; contracts: of the tables among them; settings: as attributes.

    trace: what the files are of. product: a path that the rule writes, beside which there is room for a while.
    in_size_unit: jobs, attempts and lives have their sizes in the unit of the trace (`ttf.engine.size_unit`), in the
    columns of GPUs; `unit` is the unit that they have. previous: tables of its own as the last run left them; code: a
    digest of the code of the rule, by which it knows whether they are of this code.
    """

    def __init__(
        self,
        files: Mapping[str, Any],
        contracts: Mapping[str, Table],
        settings: Mapping[str, Any],
        trace: str | None = None,
        product: str = ".",
        in_size_unit: bool = False,
        previous: Mapping[str, pl.DataFrame] = MappingProxyType({}),
        code: str = "",
    ) -> None:
        self.files, self.contracts, self.trace = dict(files), contracts, trace
        self.settings = SimpleNamespace(**settings)
        self._product, self._read = product, {}
        self.previous, self.code = previous, code
        self.unit = size_unit_of(self.files.get("size_unit")) if in_size_unit else GPU

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def __getitem__(self, name: str) -> pl.DataFrame:
        """A table with the types of its contract; read once."""
        if name not in self._read:
            self._read[name] = read_table(self.files[name], self.contracts[name])
        return self._read[name]

    def path(self, name: str) -> Path:
        return Path(self.files[name])

    def scan(self, name: str, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """A Parquet file, to be read when it is used; of the columns those that it has, in this order."""
        if name in _SIZED and self.unit != GPU:
            read = columns and [*columns, *_TOLD_BY, *(["size"] if name == "jobs" else [])]
            rows = in_size_unit(self.scan_as_recorded(name, read), self.unit)
            there = rows.collect_schema()
            return rows if columns is None else rows.select(name for name in dict.fromkeys(columns) if name in there)
        return self.scan_as_recorded(name, columns)

    def scan_as_recorded(self, name: str, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """The same, whatever the unit of sizes is."""
        return scan_parquet(self.files[name]) if columns is None else scan_columns(self.files[name], columns)

    def read(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return self.scan(name, columns).collect()

    def scratch(self) -> AbstractContextManager[Path]:
        """A folder for a while, on the disk that takes the products."""
        return spill_beside(self._product)
