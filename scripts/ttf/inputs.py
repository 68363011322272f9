"""What an analysis, its drawing and its numbers are given: the files of its rule by name, and its settings."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

from ttf.contract import Table
from ttf.kept import Kept
from ttf.on_disk import read_parquet, scan_parquet
from ttf.partitions import spill_beside
from ttf.tables import read_columns, read_table, scan_columns


class Inputs:
    """files: name -> a path, or a list of them; contracts: of the tables among them; settings: as attributes.

    trace: what the files are of. product: a path that the rule writes, beside which there is room for a while. kept:
    what the rule made of blocks of rows before.
    """

    def __init__(
        self,
        files: Mapping[str, Any],
        contracts: Mapping[str, Table],
        settings: Mapping[str, Any],
        trace: str | None = None,
        product: str = ".",
        kept: Kept | None = None,
    ) -> None:
        self.files, self.contracts, self.trace = dict(files), contracts, trace
        self.settings = SimpleNamespace(**settings)
        self.kept = kept or Kept()
        self._product, self._read = product, {}

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
        return scan_parquet(self.files[name]) if columns is None else scan_columns(self.files[name], columns)

    def read(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return read_parquet(self.files[name]) if columns is None else read_columns(self.files[name], columns)

    def scratch(self) -> AbstractContextManager[Path]:
        """A folder for a while, on the disk that takes the products."""
        return spill_beside(self._product)
