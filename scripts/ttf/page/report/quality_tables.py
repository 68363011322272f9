"""The tables of the stages before the analyses: rows read, rows quarantined, columns."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import polars as pl

from ttf.display.report_tables import Column, PageTable, format_rows
from ttf.display.report_trace import Trace
from ttf.engine import words

# Newest parts of a trace in the table of rows.
MAX_PARTS = 20


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return the tables on data quality, and on the agreement of two sources of times."""

    def make_table(table: str, columns: Mapping | Sequence, frame: pl.DataFrame | None = None, **settings) -> PageTable:
        """Return a table of the page with the rows of `table`, or those in `frame`."""
        return PageTable(trace.table(table) if frame is None else frame, columns, trace.contracts[table], **settings)

    account_columns = ("table", "rows_read", "rows_accepted", "rows_quarantined")
    statistics = trace.table("statistics")
    values = ("minimum", "middle", "maximum")
    statistics = statistics.with_columns(
        format_rows(statistics, (name, "type"), _format_raw_value).alias(name) for name in values
    )
    statistics_columns: dict[str, Column] = dict.fromkeys(("column", "type", "rows", "blank_share", "distinct"))
    statistics_columns |= {name: (trace.contracts["statistics"].columns[name].heading, str) for name in values}
    suggestion_columns = ("table", "code", "sentence", "rows", "share", "first_lines", "suggestion")
    tables = {
        "rows": make_table("row_account", account_columns),
        "suggestions": make_table("anomalies", suggestion_columns, longest=200),
        "statistics": make_table("statistics", statistics_columns, statistics, group="table"),
    }
    if (skipped_files := trace.table("raw_files").filter(pl.col("table").is_null())).height:
        tables["left-out"] = make_table("raw_files", ("file", "reason"), skipped_files)
    if trace.info["parts"] > 1:
        part_rows = trace.table("row_account_by_part")
        newest = part_rows["part"].unique(maintain_order=True).tail(MAX_PARTS)
        part_rows = part_rows.filter(pl.col("part").is_in(newest.implode()))
        tables["parts"] = make_table("row_account_by_part", ("part", *account_columns), part_rows)
    if trace.has_jobs and (agreement := trace.table("runtime_agreement"))["n"].sum():
        headings = {"p05": "5th percentile (s)", "median": "Median (s)", "p95": "95th percentile (s)"}
        headings["mean"] = "Mean (s)"
        columns: dict[str, Column] = {"time": None, "n": None, "equal_share": None}
        columns |= {f"difference_{name}_s": (heading, words.number) for name, heading in headings.items()}
        tables["agreement"] = make_table("runtime_agreement", columns, agreement)
    return tables


def _format_raw_value(value: float, kind: str) -> str:
    if kind == "time":
        return datetime.fromtimestamp(value, UTC).strftime(f"%Y-%m-%d{words.NO_BREAK}%H:%M")
    return words.count(value) if kind in ("seconds", "count") else words.number(value)
