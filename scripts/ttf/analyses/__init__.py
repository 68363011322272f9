"""A room for every analysis: see ttf.analysis. A study may have more of them in folders of its own."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttf.contract import Table


def join(folders: Iterable[str]) -> None:
    """Make the rooms in these folders modules of this package: they run as code."""
    for folder in folders:
        if (path := str(Path(folder).resolve())) not in __path__:
            __path__.append(path)


def contracts_of(analyses: Iterable[str]) -> Mapping[str, "Table"]:
    """Table -> its contract, of these analyses."""
    declared = (import_module(f"{__name__}.{name}").ANALYSIS for name in analyses)
    return {table.name: table for analysis in declared for table in analysis.tables}


def contracts_of_inputs(analyses: Iterable[str]) -> Mapping[str, "Table"]:
    """Table -> its contract, of all that a job may read: of the stages and of these analyses."""
    from ttf import raw_contracts, record_contracts

    return {table.name: table for table in (*raw_contracts.TABLES, *record_contracts.TABLES)} | contracts_of(analyses)
