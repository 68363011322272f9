"""What an analysis, its charts and its numbers read: the input files of its rule by name, and its settings."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import polars as pl

from ttf.engine.contract import Table
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.partitions import make_spill_folder
from ttf.engine.storage.tables import read_table, scan_columns
from ttf.records.jobs import convert_size_unit
from ttf.records.record_contracts import SIZE_UNIT

# Tables with job sizes, and the columns that give these sizes in units other than GPUs.
_SIZED_TABLES, _SIZE_COLUMNS = ("jobs", "attempts", "durations", "durations_infra"), ("nodes", "cpu_milli")


def read_size_unit(path: str | Path | None) -> SizeUnit:
    """Read the unit of a trace's job sizes from its size_unit.csv; GPU if the trace has no jobs."""
    return GPU if path is None else SizeUnit(read_table(path, SIZE_UNIT).filter("used")["unit"].item())


class Inputs:
    """Input files of a rule, and its settings as attributes.

    files: name -> a path, or a list of them. contracts: contract of each table among them. trace: the trace of the
    files. product: a path that the rule writes; scratch folders are made in its folder. in_size_unit: convert the sizes
    of jobs, attempts and durations, in their GPU columns, to the unit of the trace (`ttf.engine.size_unit`); `unit` is
    that unit. previous: the rule's own tables from its last run. code: digest of the rule's code, which tells whether
    the same code wrote them.
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
        self._product = product
        self._frame_by_name: dict[str, pl.DataFrame] = {}
        self.previous, self.code = previous, code
        self.unit = read_size_unit(self.files.get("size_unit")) if in_size_unit else GPU

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def __getitem__(self, name: str) -> pl.DataFrame:
        """Return a table with the types of its contract; read once."""
        if name not in self._frame_by_name:
            self._frame_by_name[name] = read_table(self.files[name], self.contracts[name])
        return self._frame_by_name[name]

    def path(self, name: str) -> Path:
        return Path(self.files[name])

    def scan(self, name: str, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """Scan a Parquet file lazily, with those of `columns` that it has, in this order."""
        if name in _SIZED_TABLES and self.unit != GPU:
            source_columns = columns and [*columns, *_SIZE_COLUMNS, *(["size"] if name == "jobs" else [])]
            rows = convert_size_unit(self.scan_as_recorded(name, source_columns), self.unit)
            schema = rows.collect_schema()
            return rows if columns is None else rows.select(name for name in dict.fromkeys(columns) if name in schema)
        return self.scan_as_recorded(name, columns)

    def scan_as_recorded(self, name: str, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """Scan a Parquet file with job sizes in GPUs, whatever the unit of the trace."""
        return scan_parquet(self.files[name]) if columns is None else scan_columns(self.files[name], columns)

    def read(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Read a Parquet file, with those of `columns` that it has, as `scan` does."""
        return self.scan(name, columns).collect()

    def scratch(self) -> AbstractContextManager[Path]:
        """Return a temporary folder on the disk of the products."""
        return make_spill_folder(self._product)
