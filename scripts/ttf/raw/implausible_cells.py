"""Blank the cells that cannot be true, and list each, by one rule for the tables of all formats.

A time before 1990 or after 2100 is a placeholder, and no number is below zero. In a table of runs, a time before the
one that it must follow is blank, and so is a time or a run time far beyond the others. The row keeps its other cells.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import polars as pl

from ttf.raw.raw_tables import Column, TableSchema

# Clocks are set back by no more than this.
CLOCK_CHANGE_S = 2 * 3600
YEAR_S = 366 * 86_400
# Far beyond the values of any file; 9999-12-31 is less.
WIDEST = 10**12
TIMES = ("submit_s", "start_s", "end_s")
# Run times that the file states.
RUN_TIMES = ("elapsed_s", "elapsed", "runtime_s")
# At each end, this share of the times does not count for the span of a table.
TAIL = 0.05
BEFORE_PREVIOUS = "before_previous_blanked"
# Code of a blanked cell -> explanation, as in REASONS of ttf.raw.ingest.
BLANKED = {
    "year_blanked": "{column} is before 1990 or after 2100, so the cell counts as blank",
    "negative_blanked": "{column} is below zero, so the cell counts as blank",
    "years_before_blanked": "{column} is more than a year before the submission, so the cell counts as blank",
    BEFORE_PREVIOUS: "{column} lies before the time that it must follow, so the cell counts as blank",
    "far_blanked": "{column} is more than a year beyond the time that the rows span, so the cell counts as blank",
}
# In a quarantine: whether a cell is blank and its row accepted.
IS_BLANKED = pl.col("reason").is_in(list(BLANKED))
# (code, column, condition that its cell is implausible).
Problem: TypeAlias = tuple[str, Column, pl.Expr]


def accept_implausible(schema: TableSchema) -> TableSchema:
    """Return the schema by which a reader accepts the rows of which cells are blanked later."""
    columns = tuple(
        replace(column, minimum=-WIDEST, maximum=WIDEST if column.type == "time" else column.maximum)
        if _is_bounded(column)
        else column
        for column in schema.columns
    )
    return replace(schema, columns=columns, order=() if schema.runs else schema.order)


def list_problems(schema: TableSchema) -> Iterator[Problem]:
    """Yield the problems that a row shows by itself. A blanked cell is blank for the next ones."""
    column_by_name = {column.as_: column for column in schema.columns if column.keep}
    for name, column in column_by_name.items():
        if _is_bounded(column) and column.type == "time":
            yield "year_blanked", column, ~pl.col(name).is_between(*column.limits)
        elif _is_bounded(column):
            yield "negative_blanked", column, pl.col(name) < 0
    if not schema.runs:
        return
    # A stated run time tells that the clocks were set back during the run.
    is_stated = pl.any_horizontal(pl.lit(False), *(pl.col(name) > 0 for name in RUN_TIMES if name in column_by_name))
    slack_s = is_stated.fill_null(False) * CLOCK_CHANGE_S
    pairs = [("years_before_blanked", "submit_s", "start_s", pl.lit(YEAR_S))]
    pairs += [(BEFORE_PREVIOUS, earlier, later, slack_s) for earlier, later in combinations(schema.order, 2)]
    for code, earlier, later, tolerance_s in pairs:
        if {earlier, later} <= column_by_name.keys():
            yield code, column_by_name[later], pl.col(later) < pl.col(earlier) - tolerance_s


def list_far_problems(rows: pl.LazyFrame, schema: TableSchema) -> Iterator[Problem]:
    """Yield the problems that only a whole table of runs shows.

    No run is longer, or at another time, than the records allow: the time that most rows span, and a year.
    """
    times = [name for name in TIMES if name in schema.dtypes]
    if not schema.runs or not times:
        return
    run_times = [name for name in RUN_TIMES if name in schema.dtypes]
    extremes = rows.select(
        span_s=pl.max_horizontal(pl.col(times).max()) - pl.min_horizontal(pl.col(times).min()),
        longest_s=pl.max_horizontal(pl.lit(0), pl.col(run_times).max()),
    )
    span_s, longest_s = extremes.collect(engine="streaming").row(0)
    # All rows within a year: no value is far. Quantiles sort each column, 0.5 s of 5.6 at 7.6 million rows.
    if span_s is None or max(span_s, longest_s) <= YEAR_S:
        return
    bounds = rows.select(
        low=pl.min_horizontal(pl.col(times).quantile(TAIL, "nearest")),
        high=pl.max_horizontal(pl.col(times).quantile(1 - TAIL, "nearest")),
    )
    low, high = bounds.collect(engine="streaming").row(0)
    longest_s = int(high - low) + YEAR_S
    for column in filter(_is_bounded, schema.columns):
        value = pl.col(column.as_)
        if column.as_ in TIMES:
            yield "far_blanked", column, ~value.is_between(low - longest_s, high + longest_s)
        elif column.as_ in RUN_TIMES:
            yield "far_blanked", column, value > longest_s


def blank_cells(
    rows: pl.DataFrame, schema: TableSchema, problems: Iterable[Problem]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows without the cells that have a problem, and these cells: file, line, table, reason, column."""
    cells = [rows.select("file").clear()]
    for reason, column, condition in problems:
        is_wrong = rows.select(condition.fill_null(False)).to_series()
        if is_wrong.any():
            words = {"table": schema.name, "reason": reason, "column": column.name}
            cells.append(rows.filter(is_wrong).select("file", "line", **{key: pl.lit(words[key]) for key in words}))
            rows = rows.with_columns(pl.when(~is_wrong).then(column.as_).alias(column.as_))
    return rows, pl.concat(cells, how="diagonal")


def _is_bounded(column: Column) -> bool:
    return column.keep and not column.required and column.minimum in (None, 0) and column.limits[0] is not None
