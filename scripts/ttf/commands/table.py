"""`ttf table`: print a table of the results for a paper, with a caption and a note of what n and the intervals are."""

import polars as pl

from ttf.commands.error_ending import with_error_ending
from ttf.display.report_tables import PageTable
from ttf.engine.contract import Table
from ttf.engine.errors import StudyError
from ttf.study.results import FinishedStudy, FinishedTrace
from ttf.study.studies import STUDIES, choose_study

# Columns that the note explains where a table has them.
_NOTED = ("n", "events", "ci_low", "ci_low_s", "ci_low_clustered", "ci_low_clustered_s", "cluster_by")


@with_error_ending(1)
def print_table(study: str, trace: str, name: str, columns: str, is_latex: bool) -> int:
    """Print the table as LaTeX or Markdown; return the exit status.

    columns: names, a comma between two; default: all that have a value.
    """
    finished_study = FinishedStudy(STUDIES / choose_study(study))
    if not trace and len(finished_study.traces) > 1:
        raise StudyError(f"which trace? Name it: --trace {' or --trace '.join(finished_study.traces)}")
    print(render_table(finished_study.trace(trace or finished_study.traces[0]), name, columns, is_latex))
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
    table = PageTable(frame, chosen, contract)
    caption, note = f"{contract.description} Trace {trace.name}.", _explain_columns(contract, chosen)
    if is_latex:
        grid = table.great_table().tab_header(caption)
        return (grid.tab_source_note(note) if note else grid).as_latex()
    texts, headings, is_number = table.format_cells()
    rows = [[headings[column] for column in chosen], ["--:" if is_number[column] else "---" for column in chosen]]
    rows += [[text.replace("|", "\\|") for text in row] for row in texts.select(chosen).iter_rows()]
    return "\n".join([f"**{caption}**", "", *(f"| {' | '.join(row)} |" for row in rows), "", note])


def _list_filled_columns(frame: pl.DataFrame) -> list[str]:
    return [column for column in frame.columns if frame[column].null_count() < max(frame.height, 1)]


def _explain_columns(contract: Table, columns: list[str]) -> str:
    """Return what n and the bounds of intervals are, from the contract."""
    noted = [contract.columns[column] for column in _NOTED if column in columns]
    return " ".join(f"{column.heading}: {column.description}" for column in noted)
