"""Tables in the archive beside their CSV: as Parquet, and all of them as one Excel workbook, both typed by contract."""

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

import polars as pl

from ttf.engine.contract import Table
from ttf.page.report_contracts import DICTIONARY

# Of Excel: rows of a sheet with its heading, characters of a cell, of the name of a sheet; larger numbers lose digits.
MOST_ROWS, LONGEST_TEXT, LONGEST_NAME, MOST_WHOLE = 1_048_576, 32_767, 31, 2**53
CONTENTS = "contents"


class Filled(NamedTuple):
    """A table with its rows. path: its place, results/sample/tables/mttf.csv."""

    path: str
    table: Table
    rows: pl.DataFrame

    @property
    def with_trace(self) -> pl.DataFrame:
        """The rows with the trace in a first column, if they are of one and no column says which."""
        trace = PurePosixPath(self.path).parts[1]
        if trace == "studies" or "trace" in self.rows.columns:
            return self.rows
        return self.rows.select(pl.lit(trace).alias("trace"), pl.all())


def parquet_of(frame: pl.DataFrame) -> bytes:
    """The same bytes whenever the rows are the same."""
    file = io.BytesIO()
    frame.rechunk().write_parquet(file, compression="zstd", statistics=False)
    return file.getvalue()


def sheets_of(tables: Iterable[Filled]) -> dict[str, tuple[Table, pl.DataFrame]]:
    """Name of a sheet -> a table, by name, and its rows of all traces."""
    of_name: dict[str, list[Filled]] = {}
    for filled in tables:
        of_name.setdefault(filled.table.name, []).append(filled)
    sheets: dict[str, tuple[Table, pl.DataFrame]] = {}
    for name, parts in sorted(of_name.items()):
        sheets[_free(name, sheets)] = (parts[0].table, pl.concat([part.with_trace for part in parts]))
    return sheets


def _free(name: str, taken: Mapping[str, object]) -> str:
    """The name, cut and numbered where Excel would not take it."""
    short, number = name[:LONGEST_NAME], 1
    while short in taken or short == CONTENTS:
        number += 1
        short = f"{name[: LONGEST_NAME - len(str(number)) - 1]}_{number}"
    return short


def workbook_of(tables: Iterable[Filled], dictionary: pl.DataFrame, date: str) -> bytes:
    """The workbook: first its contents, a row a column with the meaning of it (DICTIONARY), then a sheet a table.

    Numbers are numbers, with all their digits, and texts are texts, whatever they begin with: none is a formula or a
    link. A blank cell is blank. date: of publication, YYYY-MM-DD. A table that has more rows than a sheet can have is
    left out, which the contents say.
    """
    import xlsxwriter

    # The contents are the dictionary, of what is here.
    file, sheets = io.BytesIO(), sheets_of(filled for filled in tables if filled.table != DICTIONARY)
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        # In place of the time of day.
        book.set_properties({"created": datetime.fromisoformat(date)})
        head = book.add_format({"bold": True, "bottom": 1})
        _fill(book.add_worksheet(CONTENTS), head, _contents(sheets, dictionary))
        for name, (_, rows) in sheets.items():
            if _fits(rows):
                _fill(book.add_worksheet(name), head, rows)
    return file.getvalue()


def _contents(sheets: Mapping[str, tuple[Table, pl.DataFrame]], dictionary: pl.DataFrame) -> pl.DataFrame:
    about = [
        {"table": table.name, "sheet": name if _fits(rows) else "left out: too many rows", "rows": rows.height}
        for name, (table, rows) in sheets.items()
    ]
    of_sheets = pl.DataFrame(about, schema={"table": pl.String, "sheet": pl.String, "rows": pl.Int64})
    found = of_sheets.join(dictionary, on="table", how="inner", maintain_order="left_right")
    return found.select("sheet", "rows", *(name for name in dictionary.columns if name != "table"))


def _fits(rows: pl.DataFrame) -> bool:
    return rows.height < MOST_ROWS


def _fill(sheet, head, rows: pl.DataFrame) -> None:
    for place, name in enumerate(rows.columns):
        sheet.write_string(0, place, name, head)
        values = rows[name].to_list()
        for row, value in enumerate(values, start=1):
            if isinstance(value, str):
                sheet.write_string(row, place, value[:LONGEST_TEXT])
            elif isinstance(value, bool):
                sheet.write_boolean(row, place, value)
            elif isinstance(value, int) and abs(value) > MOST_WHOLE:
                sheet.write_string(row, place, str(value))
            elif value is not None:
                sheet.write_number(row, place, value)
        longest = max([len(name), *(len(str(value)) for value in values[:200] if value is not None)])
        sheet.set_column(place, place, min(max(longest, 8), 60) + 1)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, max(rows.height, 1), max(rows.width - 1, 0))


def more_tables(asked: Sequence[str], tables: Sequence[Filled], date: str) -> list[tuple[str, bytes, str]]:
    """(path, content, what it is) of the files that are asked for: `parquet`, `xlsx`. tables: the dictionary is one."""
    made = []
    if "parquet" in asked:
        made += [
            (f"{filled.path.removesuffix('.csv')}.parquet", parquet_of(filled.rows), filled.table.about)
            for filled in tables
        ]
    if "xlsx" in asked:
        what = "All tables in one workbook, and what every column of them is"
        dictionary = next(filled.rows for filled in tables if filled.table == DICTIONARY)
        made.append(("results/tables.xlsx", workbook_of(tables, dictionary, date), what))
    return made
