"""The analyses, each in the folder of its section of the page: see ttf.analyses.declaration.

A study may have more of them in folders of its own, of which each holds its analyses side by side.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttf.analyses.declaration import Analysis
    from ttf.engine.contract import Table

BUILT_IN = Path(__file__).parent


@cache
def built_in_folders() -> Mapping[str, Path]:
    """Return the folder of each analysis of the package, by name."""
    files = sorted(file for file in BUILT_IN.glob("*/*/__init__.py") if file.parts[-3] != "shared")
    return {file.parent.name: file.parent for file in files}


def add_folders(folders: Iterable[str]) -> None:
    """Make the analyses in these folders modules of this package: their code runs."""
    for folder in folders:
        if (path := str(Path(folder).resolve())) not in __path__:
            __path__.append(path)


def module_name(analysis: str) -> str:
    """Return the module of an analysis: ttf.analyses.<section>.<name>, or without the section in a user's folder."""
    folder = built_in_folders().get(analysis)
    return ".".join([__name__, *([folder.parent.name] if folder else []), analysis])


def load_declaration(analysis: str) -> "Analysis":
    """Return the declaration of an analysis."""
    return import_module(module_name(analysis)).ANALYSIS


def load_contracts(analyses: Iterable[str]) -> dict[str, "Table"]:
    """Return the contract of each table of these analyses, by name."""
    return {table.name: table for analysis in map(load_declaration, analyses) for table in analysis.tables}


def load_input_contracts(analyses: Iterable[str]) -> Mapping[str, "Table"]:
    """Return the contract of each table that a job may read: of the stages and of these analyses."""
    from ttf.raw import raw_contracts
    from ttf.records import record_contracts

    return {table.name: table for table in (*raw_contracts.TABLES, *record_contracts.TABLES)} | load_contracts(analyses)
