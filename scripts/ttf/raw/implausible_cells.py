"""Blank the cells that cannot be true, and list each, by one rule for the tables of all formats.

A time before 1990 or after 2100 is a placeholder, and a number below zero is none. In a table of runs, a time before
the one that it must follow is blank, and so is a time or a run time far beyond all others. A row keeps its other cells.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import polars as pl

from ttf.raw.raw_tables import Column, TableSchema

# Clocks are set back by no more than this.
CLOCK_CHANGE_S = 2 * 3600
YEAR_S = 366 * 86_400
# Far beyond the times and numbers in any file, but 9999-12-31 counts as a time.
WIDEST = 10**12
# Stored columns of a run time that the file states.
RUN_TIMES = ("elapsed_s", "elapsed", "runtime_s")
# The share of a table's times that may be wrong, at each end.
TAIL = 0.05
BEFORE_PREVIOUS = "before_previous_blanked"
CELL_SCHEMA = {"line": pl.Int64, "reason": pl.String, "column": pl.String}
# Code of a blanked cell -> explanation, as in REASONS of ttf.raw.ingest.
BLANKED = {
    "year_blanked": "{column} is before 1990 or after 2100, so the cell counts as blank",
    "negative_blanked": "{column} is below zero, so the cell counts as blank",
    BEFORE_PREVIOUS: "{column} lies before the time that it must follow, so the cell counts as blank",
    "far_blanked": "{column} is more than a year beyond the time that the other rows span, so the cell counts as blank",
}


def is_blanked(reason: pl.Expr) -> pl.Expr:
    """Return whether a reason concerns a blanked cell; the row of any other one is quarantined."""
    return reason.is_in(list(BLANKED))


def accept_implausible(schema: TableSchema) -> TableSchema:
    """Return the schema by which a reader accepts the rows of which `blank_implausible` blanks cells."""
    columns = tuple(
        replace(column, minimum=-WIDEST, maximum=WIDEST if column.type == "time" else column.maximum)
        if _is_bounded(column)
        else column
        for column in schema.columns
    )
    return replace(schema, columns=columns, order=() if schema.runs else schema.order)


def blank_implausible(rows: pl.DataFrame, schema: TableSchema) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of one file, and the blanked cells: line, reason, column."""
    problems = [
        ("year_blanked", column.as_, ~pl.col(column.as_).is_between(*column.limits))
        if column.type == "time"
        else ("negative_blanked", column.as_, pl.col(column.as_) < 0)
        for column in schema.columns
        if _is_bounded(column)
    ]
    rows, cells = _blank_cells(rows, schema, problems)
    if not schema.runs:
        return rows, cells
    # A stated run time tells that the clock was set back during the run.
    run_times = [name for name in RUN_TIMES if name in rows.columns]
    is_stated = pl.any_horizontal(pl.lit(False), *(pl.col(name) > 0 for name in run_times)).fill_null(False)
    slack_s = pl.when(is_stated).then(CLOCK_CHANGE_S).otherwise(0)
    pairs = [(*pair, slack_s) for pair in combinations(schema.order, 2)]
    if "submit_s" in rows.columns and "submit_s" not in schema.order:
        pairs = [("submit_s", "start_s", YEAR_S), *pairs]
    for earlier, later, tolerance_s in pairs:
        backwards = pl.col(later) < pl.col(earlier) - tolerance_s
        rows, more_cells = _blank_cells(rows, schema, [(BEFORE_PREVIOUS, later, backwards)])
        cells = pl.concat([cells, more_cells])
    return rows, cells


def find_far_cells(rows: pl.LazyFrame, schema: TableSchema) -> tuple[pl.DataFrame, list[pl.Expr]]:
    """Return the cells of a table of runs that lie far beyond the others (with `file`), and the columns without them.

    No run is longer, or at another time, than the records allow: the time that most rows span, and a year.
    """
    times = [name for name in ("submit_s", "start_s", "end_s") if name in schema.dtypes]
    bounds = rows.select(
        low=pl.min_horizontal(pl.col(name).quantile(TAIL, "nearest") for name in times),
        high=pl.max_horizontal(pl.col(name).quantile(1 - TAIL, "nearest") for name in times),
    )
    low, high = bounds.collect(engine="streaming").row(0)
    if low is None:
        return pl.DataFrame(schema=CELL_SCHEMA), []
    longest_s = int(high - low) + YEAR_S
    is_far = {
        column: pl.col(column.as_) > longest_s
        if column.as_ in RUN_TIMES
        else ~pl.col(column.as_).is_between(low - longest_s, high + longest_s)
        for column in schema.columns
        if column.as_ in (*times, *RUN_TIMES) and _is_bounded(column)
    }
    cells = [
        rows.filter(wrong).select("file", "line", reason=pl.lit("far_blanked"), column=pl.lit(column.name))
        for column, wrong in is_far.items()
    ]
    columns = [pl.when(~wrong).then(column.as_).alias(column.as_) for column, wrong in is_far.items()]
    return (pl.concat(cells).collect(engine="streaming") if cells else pl.DataFrame(schema=CELL_SCHEMA)), columns


def _blank_cells(
    rows: pl.DataFrame, schema: TableSchema, problems: Sequence[tuple[str, str, pl.Expr]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Blank the cells with a problem: (reason, stored name of the column, condition)."""
    names = {column.as_: column.name for column in schema.columns}
    is_wrong = rows.select(wrong.fill_null(False).alias(str(n)) for n, (_, _, wrong) in enumerate(problems))
    cells = [pl.DataFrame(schema=CELL_SCHEMA)]
    for (reason, name, _), wrong in zip(problems, is_wrong.iter_columns(), strict=True):
        if wrong.any():
            lines = rows.filter(wrong).select("line", reason=pl.lit(reason), column=pl.lit(names[name]))
            rows, cells = rows.with_columns(pl.when(~wrong).then(name).alias(name)), [*cells, lines]
    return rows, pl.concat(cells)


def _is_bounded(column: Column) -> bool:
    return column.keep and not column.required and column.minimum in (None, 0) and column.limits[0] is not None
