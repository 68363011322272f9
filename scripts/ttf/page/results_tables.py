"""Every table of the results: those of the stages before, around and after the analyses, and those of the analyses."""

from collections.abc import Mapping
from functools import cache

from ttf.analyses.catalogue import rooms
from ttf.engine.contract import Table
from ttf.engine.errors import StudyError
from ttf.page import report_contracts
from ttf.raw import raw_contracts
from ttf.records import record_contracts

OF_STAGES = (*raw_contracts.TABLES, *record_contracts.TABLES, *report_contracts.TABLES)


@cache
def contracts(folders: tuple[str, ...] = ()) -> Mapping[str, Table]:
    """Table -> its contract, of the stages and of all analyses. Raises StudyError where two have one name."""
    found: dict[str, Table] = {table.name: table for table in OF_STAGES}
    for name, analysis in rooms(folders).items():
        for table in analysis.tables:
            if table.name in found:
                raise StudyError(f"analysis {name}: there is another table {table.name}.")
            found[table.name] = table
    return found
