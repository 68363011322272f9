"""The data dictionary: every table of the results with its columns, from their contracts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ttf.analyses.catalogue import load_analyses
from ttf.engine.contract import Column, Table
from ttf.page.report_contracts import DICTIONARY
from ttf.page.results_tables import OF_STAGES
from ttf.records.record_contracts import OF_TRACES

if TYPE_CHECKING:
    import polars as pl

INTRODUCTION = (
    "Every table that a study writes: those of a trace under results/<trace>/, those of the study under "
    "results/studies/<name>/. Tables are CSV with a header row: times in seconds, shares from 0 to 1, floats in full "
    "precision. A cell is blank if its value cannot be computed; the column description states when. If sizes are in "
    "nodes, cores or jobs (size_unit.csv), that unit replaces `gpu` in column names: `node_hours`."
)
_STAGES_HEADING = "Stages before and around the analyses"


def group_by_analysis(folders: tuple[str, ...] = ()) -> dict[str, tuple[Table, ...]]:
    """Return heading -> tables: the stages, then each analysis in the order of the page."""
    analyses = load_analyses(folders).items()
    analysis_tables = {f"{name}: {analysis.question}": tuple(analysis.tables) for name, analysis in analyses}
    return {_STAGES_HEADING: OF_TRACES + OF_STAGES} | analysis_tables


def format_type(column: Column) -> str:
    """Return type and unit of a column: number (s)."""
    return f"{column.kind} ({column.unit})" if column.unit else column.kind


def column_rows(table: Table) -> Iterator[tuple[str, str, str]]:
    """Yield (name, type, description) of each column."""
    for name, column in table.columns.items():
        blank = f" Blank where {column.blank}." if column.blank else ""
        yield name, format_type(column), f"{column.description}{blank}"


def to_table(groups: Mapping[str, tuple[Table, ...]]) -> pl.DataFrame:
    """Return DICTIONARY: one row per column, or one row for a table without declared columns."""
    return DICTIONARY.frame(
        {
            "path": table.path,
            "table": table.name,
            "analysis": None if heading == _STAGES_HEADING else heading.partition(":")[0],
            "row": table.description,
            "column": name,
            "heading": column and column.heading,
            "type": column and column.kind,
            "unit": column and (column.unit or None),
            "meaning": column and column.description,
            "blank_reason": column and column.blank,
        }
        for heading, tables in groups.items()
        for table in tables
        for name, column in table.columns.items() or [(None, None)]
    )
