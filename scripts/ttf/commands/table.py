"""`ttf table`: print a table of the results for a paper, with a caption and a note of what n and the intervals are."""

from pathlib import Path

import polars as pl

from ttf.commands.error_ending import with_error_ending
from ttf.display.report_tables import PageTable
from ttf.engine.checkout import find_workflow_file
from ttf.engine.contract import Table
from ttf.engine.errors import StudyError
from ttf.engine.storage.tables import read_table
from ttf.page.publication_record import name_code
from ttf.page.report.published_studies import build_table
from ttf.page.report_contracts import STUDY_TABLES
from ttf.study.results import FinishedStudy, FinishedTrace
from ttf.study.studies import STUDIES, choose_study

_PUBLISHED_NOTE = "Intervals in parentheses: 95% CI. n: observations in the trace. ≈: read from a figure."
# Columns that the note explains where a table has them.
_NOTED = ("n", "events", "ci_low", "ci_low_s", "ci_low_clustered", "ci_low_clustered_s", "cluster_by")


@with_error_ending(1)
def print_table(study: str, trace: str, name: str, columns: str, is_latex: bool) -> int:
    """Print the table as LaTeX or Markdown; return the exit status.

    columns: names, a comma between two; default: all that have a value.
    """
    folder = STUDIES / choose_study(study)
    finished_study = FinishedStudy(folder)
    if not trace and len(finished_study.traces) > 1:
        raise StudyError(f"which trace? Name it: --trace {' or --trace '.join(finished_study.traces)}")
    finished_trace = finished_study.trace(trace or finished_study.traces[0])
    text = render_published_table(folder, finished_trace.name, name, is_latex)
    print(text or render_table(finished_trace, name, columns, is_latex))
    return 0


def render_table(trace: FinishedTrace, name: str, columns: str = "", is_latex: bool = False) -> str:
    """Return a table of the trace as LaTeX or Markdown. Raises StudyError for an unknown table or column."""
    try:
        frame, contract = trace.tables.read(name)
    except KeyError as error:
        raise StudyError(error.args[0]) from None
    chosen = [column.strip() for column in columns.split(",")] if columns else _list_filled_columns(frame)
    if unknown := [column for column in chosen if column not in frame.columns]:
        raise StudyError(f"{name}: no column {', '.join(unknown)}, but {', '.join(frame.columns)}.")
    caption, note = f"{contract.description} Trace {trace.name}.", _explain_columns(contract, chosen)
    return _render(PageTable(frame, chosen, contract), caption, note, is_latex)


def render_published_table(study_folder: Path, trace: str, name: str, is_latex: bool = False) -> str:
    """Return a table of a publication beside the numbers of the trace; "" if the study has no such table."""
    file = study_folder / STUDY_TABLES.path
    cells = read_table(file, STUDY_TABLES).filter(trace=trace, table=name) if file.is_file() else None
    if cells is None or cells.is_empty():
        return ""
    part = build_table(cells)
    caption = f"{part.caption} Printed: {cells['source'][0]}. Here: trace {trace}."
    return _render(part.table, caption, _PUBLISHED_NOTE, is_latex)


def _render(table: PageTable, caption: str, note: str, is_latex: bool) -> str:
    code = name_code(find_workflow_file("CITATION.cff").read_text(encoding="utf-8"))
    note = " ".join(filter(None, (note, code)))
    if is_latex:
        grid = table.great_table().tab_header(caption)
        return (grid.tab_source_note(note) if note else grid).as_latex()
    texts, headings, is_number = table.format_cells()
    columns = [*([table.group] if table.group else []), *table.columns]
    rows = [[headings.get(column, "") for column in columns]]
    rows += [["--:" if is_number.get(column) else "---" for column in columns]]
    rows += [[text.replace("|", "\\|") for text in row] for row in texts.select(columns).iter_rows()]
    return "\n".join([f"**{caption}**", "", *(f"| {' | '.join(row)} |" for row in rows), "", note])


def _list_filled_columns(frame: pl.DataFrame) -> list[str]:
    return [column for column in frame.columns if frame[column].null_count() < max(frame.height, 1)]


def _explain_columns(contract: Table, columns: list[str]) -> str:
    """Return what n and the bounds of intervals are, from the contract."""
    noted = [contract.columns[column] for column in _NOTED if column in columns]
    return " ".join(f"{column.heading}: {column.description}" for column in noted)
