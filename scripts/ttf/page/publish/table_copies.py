"""Tables in the archive in addition to CSV: as Parquet, and all in one Excel workbook, both typed by contract."""

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

import polars as pl

from ttf.engine.contract import Table
from ttf.engine.extras import require_extra
from ttf.page.report_contracts import DICTIONARY

# Limits of Excel: rows of a sheet with heading, characters of a cell and of a sheet name, largest exact integer.
MOST_ROWS, LONGEST_TEXT, LONGEST_NAME, MOST_WHOLE = 1_048_576, 32_767, 31, 2**53
CONTENTS = "contents"


class TableRows(NamedTuple):
    """A table with its rows. path: such as results/sample/tables/mttf.csv."""

    path: str
    table: Table
    rows: pl.DataFrame

    @property
    def with_trace(self) -> pl.DataFrame:
        """The rows with the trace as first column, if they belong to one trace and have no such column."""
        trace = PurePosixPath(self.path).parts[1]
        if trace == "studies" or "trace" in self.rows.columns:
            return self.rows
        return self.rows.select(pl.lit(trace).alias("trace"), pl.all())


def write_parquet(frame: pl.DataFrame) -> bytes:
    """Return the rows as Parquet, reproducibly."""
    file = io.BytesIO()
    frame.rechunk().write_parquet(file, compression="zstd", statistics=False)
    return file.getvalue()


def name_sheets(tables: Iterable[TableRows]) -> dict[str, tuple[Table, pl.DataFrame]]:
    """Return sheet name -> table and its rows of all traces, sorted by name."""
    parts_by_name: dict[str, list[TableRows]] = {}
    for part in tables:
        parts_by_name.setdefault(part.table.name, []).append(part)
    sheets: dict[str, tuple[Table, pl.DataFrame]] = {}
    for name, parts in sorted(parts_by_name.items()):
        sheets[_make_unique_name(name, sheets)] = (parts[0].table, pl.concat([part.with_trace for part in parts]))
    return sheets


def _make_unique_name(name: str, existing_names: Mapping[str, object]) -> str:
    short, number = name[:LONGEST_NAME], 1
    while short in existing_names or short == CONTENTS:
        number += 1
        short = f"{name[: LONGEST_NAME - len(str(number)) - 1]}_{number}"
    return short


def write_workbook(tables: Iterable[TableRows], dictionary: pl.DataFrame, date: str) -> bytes:
    """Return the workbook: a contents sheet with one row per column (DICTIONARY), then one sheet per table.

    Numbers keep all digits; texts never become formulas or links; blank cells stay blank. A table with more rows than
    a sheet allows is left out, which the contents note. date: of publication, YYYY-MM-DD.
    """
    require_extra("xlsx")
    import xlsxwriter

    # The contents sheet replaces the dictionary.
    file, sheets = io.BytesIO(), name_sheets(part for part in tables if part.table != DICTIONARY)
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        # The default is the current time.
        book.set_properties({"created": datetime.fromisoformat(date)})
        head = book.add_format({"bold": True, "bottom": 1})
        _fill_sheet(book.add_worksheet(CONTENTS), head, _contents_rows(sheets, dictionary))
        for name, (_, rows) in sheets.items():
            if _fits_sheet(rows):
                _fill_sheet(book.add_worksheet(name), head, rows)
    return file.getvalue()


def _contents_rows(sheets: Mapping[str, tuple[Table, pl.DataFrame]], dictionary: pl.DataFrame) -> pl.DataFrame:
    summaries = [
        {"table": table.name, "sheet": name if _fits_sheet(rows) else "left out: too many rows", "rows": rows.height}
        for name, (table, rows) in sheets.items()
    ]
    sheet_rows = pl.DataFrame(summaries, schema={"table": pl.String, "sheet": pl.String, "rows": pl.Int64})
    contents = sheet_rows.join(dictionary, on="table", how="inner", maintain_order="left_right")
    return contents.select("sheet", "rows", *(name for name in dictionary.columns if name != "table"))


def _fits_sheet(rows: pl.DataFrame) -> bool:
    return rows.height < MOST_ROWS


def _fill_sheet(sheet, heading_format, rows: pl.DataFrame) -> None:
    for column, name in enumerate(rows.columns):
        sheet.write_string(0, column, name, heading_format)
        values = rows[name].to_list()
        for row, value in enumerate(values, start=1):
            if isinstance(value, str):
                sheet.write_string(row, column, value[:LONGEST_TEXT])
            elif isinstance(value, bool):
                sheet.write_boolean(row, column, value)
            elif isinstance(value, int) and abs(value) > MOST_WHOLE:
                sheet.write_string(row, column, str(value))
            elif value is not None:
                sheet.write_number(row, column, value)
        longest = max([len(name), *(len(str(value)) for value in values[:200] if value is not None)])
        sheet.set_column(column, column, min(max(longest, 8), 60) + 1)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, max(rows.height, 1), max(rows.width - 1, 0))


def export_tables(formats: Sequence[str], tables: Sequence[TableRows], date: str) -> list[tuple[str, bytes, str]]:
    """Return (path, content, description) of the files in `formats`: parquet, xlsx. tables: with the dictionary."""
    files = []
    if "parquet" in formats:
        files += [
            (f"{part.path.removesuffix('.csv')}.parquet", write_parquet(part.rows), part.table.description)
            for part in tables
        ]
    if "xlsx" in formats:
        description = "All tables in one workbook, with a description of every column"
        dictionary = next(part.rows for part in tables if part.table == DICTIONARY)
        files.append(("results/tables.xlsx", write_workbook(tables, dictionary, date), description))
    return files
