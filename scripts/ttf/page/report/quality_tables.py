"""The tables of the stages before the analyses: rows read, what was quarantined, the columns."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import polars as pl

from ttf.display.report_tables import Shown
from ttf.display.report_trace import Trace
from ttf.engine import words

# Parts of a trace in the table of its rows: the newest.
MOST_PARTS = 20


def tables(trace: Trace) -> dict[str, Shown]:
    """The tables on data quality, and on whether two sources of times agree."""

    def of(table: str, columns: Mapping | Sequence, frame: pl.DataFrame | None = None, **settings) -> Shown:
        """A table of the page, of the rows of `table` or those in `frame`."""
        return Shown(trace.table(table) if frame is None else frame, columns, trace.contracts[table], **settings)

    account = ("table", "rows_read", "rows_kept", "rows_quarantined")
    statistics = trace.table("statistics")
    values = ("minimum", "middle", "maximum")
    statistics = statistics.with_columns(
        pl.Series(name, [_raw_value(*row) for row in statistics.select("type", name).iter_rows()], dtype=pl.String)
        for name in values
    )
    of_values = dict.fromkeys(("column", "type", "rows", "blank_share", "distinct"))
    of_values |= {name: (trace.contracts["statistics"].columns[name].heading, str) for name in values}
    suggested = ("table", "code", "sentence", "rows", "share", "first_lines", "suggestion")
    tables = {
        "rows": of("row_account", account),
        "suggestions": of("anomalies", suggested, longest=200),
        "statistics": of("statistics", of_values, statistics, group="table"),
    }
    files = trace.table("raw_files")
    if (left_out := files.filter(pl.col("table").is_null())).height:
        tables["left_out"] = of("raw_files", ("file", "reason"), left_out)
    if trace.about["parts"] > 1:
        by_part = trace.table("row_account_by_part")
        newest = by_part["part"].unique(maintain_order=True).tail(MOST_PARTS)
        by_part = by_part.filter(pl.col("part").is_in(newest.implode()))
        tables["parts"] = of("row_account_by_part", ("part", *account), by_part)
    if trace.has_jobs and (agreement := trace.table("runtime_agreement"))["n"].sum():
        ends = {"p05": "5th percentile (s)", "median": "Median (s)", "p95": "95th percentile (s)", "mean": "Mean (s)"}
        columns = {"time": None, "n": None, "equal_share": None}
        columns |= {f"difference_{end}_s": (heading, words.number) for end, heading in ends.items()}
        tables["agreement"] = of("runtime_agreement", columns, agreement)
    return tables


def _raw_value(kind: str, value: float | None) -> str | None:
    """A value of a raw table by the type of its column: a time (s since 1970) as a moment, a count whole."""
    if value is None:
        return None
    if kind == "time":
        return datetime.fromtimestamp(value, UTC).strftime(f"%Y-%m-%d{words.NO_BREAK}%H:%M")
    return words.count(value) if kind in ("seconds", "count") else words.number(value)
