"""What the columns of the typed raw tables hold: one row of statistics per column.

One column is looked at at a time, so memory stays at one column however long the table is. Numbers come from exact
integers (an order statistic is a value of the column, a mean is one division of two integers), so that neither the
number of threads nor the engine can change a digit.
"""

from collections.abc import Iterator, Mapping

import polars as pl

from ttf.raw_tables import Column, TableSchema, printable

STATISTICS_SCHEMA = {
    "table": pl.String,
    "column": pl.String,
    "stored_as": pl.String,
    "type": pl.String,
    "rows": pl.Int64,
    "blank": pl.Int64,
    "blank_share": pl.Float64,
    "distinct": pl.Int64,
    "minimum": pl.Int64,
    "first_quartile": pl.Int64,
    "middle": pl.Int64,
    "third_quartile": pl.Int64,
    "maximum": pl.Int64,
    "mean": pl.Float64,
    "commonest": pl.String,
    "longest": pl.Int64,
    "reason": pl.String,
}

MOST_VALUES = 5
LONGEST_VALUE = 40

NOT_STORED = "checked, not stored"
ALL_BLANK = "every row is blank"
NO_ROWS = "no rows"
OF_TEXT = "a text has no minimum, quartiles, maximum and mean"
OF_NUMBER = "a number has no commonest values and no length here"


def table_statistics(tables: Mapping[str, pl.LazyFrame], schemas: Mapping[str, TableSchema]) -> pl.DataFrame:
    """Statistics of the rows kept, a row per table and column in the order of the schema (STATISTICS_SCHEMA).

    tables: the typed raw tables by name. Numbers are in the stored unit (seconds, milli-GPU, MiB ...), under our name
    of the column (`stored_as`) beside the file's (`column`). Quartiles are values of the column (nearest rank).
    commonest: up to MOST_VALUES values, each with its share of the rows that are not blank; equally common ones in the
    order of their text. longest: characters of the longest text.
    """
    rows = [row for name, table in tables.items() for row in _of_table(table, schemas[name])]
    return pl.DataFrame(rows, schema=STATISTICS_SCHEMA)


def _of_table(table: pl.LazyFrame, schema: TableSchema) -> Iterator[dict]:
    height = table.select(pl.len()).collect(engine="streaming").item()
    for column in schema.columns:
        row = {"table": schema.name, "column": column.name, "stored_as": None, "type": column.type, "rows": height}
        if not column.keep:
            yield row | {"reason": NOT_STORED}
            continue
        row["stored_as"] = column.as_
        if not height:
            yield row | {"blank": 0, "distinct": 0, "reason": NO_ROWS}
            continue
        # A key of one column has no blanks that matter and no value twice: nothing to count by value.
        is_key = schema.key == (column.as_,) and column.required
        found = _of_text(table, column, is_key, height) if column.type == "text" else _of_number(table, column)
        blank = found.pop("blank")
        yield row | found | {"blank": blank, "blank_share": blank / height}


def _of_number(table: pl.LazyFrame, column: Column) -> dict:
    values = table.select(column.as_).collect(engine="streaming").to_series()
    blank = values.null_count()
    values = values.drop_nulls().sort()
    n = values.len()
    if not n:
        return {"blank": blank, "distinct": 0, "reason": ALL_BLANK}
    # 128 bits: a sum over a long column of large values need not fit 64.
    total = values.cast(pl.Int128).sum()
    return {
        "blank": blank,
        "distinct": 1 + int((values.slice(1) != values.head(n - 1)).sum()),
        "minimum": values[0],
        **{
            name: values[(quarter * n + 3) // 4 - 1]
            for quarter, name in ((1, "first_quartile"), (2, "middle"), (3, "third_quartile"))
        },
        "maximum": values[-1],
        "mean": total / n,
        "reason": OF_NUMBER,
    }


def _of_text(table: pl.LazyFrame, column: Column, is_key: bool, height: int) -> dict:
    text = pl.col(column.as_)
    if is_key:
        (longest,) = table.select(text.str.len_chars().max()).collect(engine="streaming").row(0)
        first = table.select(text.bottom_k(MOST_VALUES).sort()).collect(engine="streaming").to_series()
        return {
            "blank": 0,
            "distinct": height,
            "longest": longest,
            "commonest": _listed([(value, 1) for value in first], height),
            "reason": OF_TEXT,
        }
    counted = table.group_by(value=text).agg(rows=pl.len().cast(pl.Int64)).collect(engine="streaming")
    known = counted.filter(pl.col("value").is_not_null())
    blank = height - int(known["rows"].sum())
    if not known.height:
        return {"blank": blank, "distinct": 0, "reason": ALL_BLANK}
    # Rows and text together order the values wholly, in whatever order they were counted.
    commonest = known.top_k(MOST_VALUES, by=["rows", "value"], reverse=[False, True])
    commonest = commonest.sort(["rows", "value"], descending=[True, False])
    return {
        "blank": blank,
        "distinct": known.height,
        "longest": known["value"].str.len_chars().max(),
        "commonest": _listed(commonest.select("value", "rows").rows(), height - blank),
        "reason": OF_TEXT,
    }


def _listed(values: list[tuple[str, int]], known: int) -> str:
    """Values with their shares of the rows that have one: `T4 (62.5 %), P100 (37.5 %)`. A trace's text is untrusted."""
    return ", ".join(f"{_short(value)} ({_percent(rows, known)})" for value, rows in values)


def _short(value: str) -> str:
    shown = printable(value)
    return shown if len(shown) <= LONGEST_VALUE else f"{shown[: LONGEST_VALUE - 1]}…"


def _percent(rows: int, known: int) -> str:
    """A share with one decimal, rounded down from integers, so that 99.97 % never reads 100 %."""
    permille = 1000 * rows // known
    return f"{permille // 10}.{permille % 10} %" if permille else "under 0.1 %"
