"""Every table of the results: those of the stages before, around and after the analyses, and those of the analyses."""

from collections.abc import Mapping
from functools import cache

from ttf.analyses.catalogue import load_analyses
from ttf.engine.contract import Table
from ttf.engine.errors import StudyError
from ttf.page import report_contracts
from ttf.raw import raw_contracts
from ttf.records import record_contracts

OF_STAGES = (*raw_contracts.TABLES, *record_contracts.TABLES, *report_contracts.TABLES)


@cache
def load_all_contracts(folders: tuple[str, ...] = ()) -> Mapping[str, Table]:
    """Return the contract of each table, by name, of the stages and all analyses; StudyError for duplicates."""
    table_by_name: dict[str, Table] = {table.name: table for table in OF_STAGES}
    for name, analysis in load_analyses(folders).items():
        for table in analysis.tables:
            if table.name in table_by_name:
                raise StudyError(f"analysis {name}: another table is called {table.name}.")
            table_by_name[table.name] = table
    return table_by_name
