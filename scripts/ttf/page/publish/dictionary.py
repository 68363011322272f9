"""The data dictionary: every table of the results and every column of it, out of their contracts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING

from ttf.analyses.catalogue import rooms
from ttf.engine.contract import Column, Table
from ttf.page.report_contracts import DICTIONARY
from ttf.page.results_tables import OF_STAGES
from ttf.records.record_contracts import OF_TRACES

if TYPE_CHECKING:
    import polars as pl

INTRODUCTION = (
    "Every table that a study writes: of a trace under results/<trace>/, of all of them under results/studies/<name>/. "
    "Tables are CSV with a header row: times in seconds, shares from 0 to 1, floats in full precision. A blank cell is "
    "what cannot be had, and why. Where sizes are told in nodes, cores or jobs, `gpu` in the name of a column is that "
    "unit: `node_hours` (size_unit.csv)."
)


_AROUND = "Stages before and around the analyses"


def by_analysis(folders: tuple[str, ...] = ()) -> dict[str, tuple[Table, ...]]:
    """Heading -> its tables: the stages before the analyses, then each analysis in the order of the page."""
    of_rooms = {f"{name}: {analysis.question}": tuple(analysis.tables) for name, analysis in rooms(folders).items()}
    return {_AROUND: OF_TRACES + OF_STAGES} | of_rooms


def kind_of(column: Column) -> str:
    """Its type and unit: number (s)."""
    return f"{column.kind} ({column.unit})" if column.unit else column.kind


def _rows(table: Table) -> Iterator[tuple[str, str, str]]:
    for name, column in table.columns.items():
        blank = f" Blank where {column.blank}." if column.blank else ""
        yield name, kind_of(column), f"{column.about}{blank}"


def as_table(groups: Mapping[str, tuple[Table, ...]]) -> pl.DataFrame:
    """DICTIONARY: a row a column, for programs; of a table without columns of its own one row."""
    return DICTIONARY.frame(
        {
            "path": table.path,
            "table": table.name,
            "analysis": None if heading == _AROUND else heading.partition(":")[0],
            "row": table.about,
            "column": name,
            "heading": column and column.heading,
            "type": column and column.kind,
            "unit": column and (column.unit or None),
            "meaning": column and column.about,
            "blank_where": column and column.blank,
        }
        for heading, tables in groups.items()
        for table in tables
        for name, column in (table.columns or {None: None}).items()
    )


def as_markdown(groups: Mapping[str, tuple[Table, ...]]) -> str:
    """docs/tables.md: a heading for each analysis and table, a line for each column."""
    lines = ["# Tables", "", INTRODUCTION, "", "Made from the contracts by `make docs`; a test holds it to them.", ""]
    for heading, tables in groups.items():
        lines += [f"## {heading}", ""]
        for table in tables:
            more = ["and the columns of its trace's format"] if table.open else []
            columns = [f"`{name}` {kind}: {about}" for name, kind, about in _rows(table)] + more
            lines += [f"**{table.path}** {table.about}", *([f"<br>{'<br>'.join(columns)}"] if columns else []), ""]
    return "\n".join(lines).rstrip() + "\n"


def as_html(groups: Mapping[str, tuple[Table, ...]]) -> str:
    """The body of a page of the site: the same as tables."""
    text = f"<p>{escape(INTRODUCTION)}</p>\n"
    for heading, tables in groups.items():
        text += f"<h2>{escape(heading)}</h2>\n"
        for table in tables:
            text += f'<h3 id="table-{escape(table.name)}">{escape(table.path)}</h3>\n<p>{escape(table.about)}</p>\n'
            cells = "".join(_cells("td", row) for row in _rows(table))
            head = _cells("th", ("Column", "Type", "What it is"))
            text += f'<div class="scroll"><table>\n{head}{cells}</table></div>\n' if cells else ""
    return text


def _cells(kind: str, row: Iterable[str]) -> str:
    cells = (f'<{kind} class="l">{escape(text)}</{kind}>' for text in row)
    return f"<tr>{''.join(cells)}</tr>\n"
