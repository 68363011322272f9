"""What the columns of the typed raw tables hold: one row of statistics per column.

One column is looked at at a time, and of its numbers how often each occurs. Many different texts are counted by a
hash of 64 bits each: of ten million, some two have the same with a chance of 3 in a million. Numbers come from
exact integers (an order statistic is a value of the column, a mean is one division of two integers), so that neither
the number of threads nor the engine can change a digit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ttf.engine.counts import counted
from ttf.engine.words import shorten
from ttf.raw.raw_contracts import STATISTICS
from ttf.raw.raw_tables import Column, TableSchema, printable

MOST_VALUES = 5
LONGEST_VALUE = 40
# Texts are many where each stands, in the mean, in fewer than FEW_ROWS rows of so many at the beginning of the column.
BEGINNING = 1 << 16
FEW_ROWS = 16

NOT_STORED = "checked, not stored"
ALL_BLANK = "every row is blank"
NO_ROWS = "no rows"
OF_TEXT = "a text has no minimum, quartiles, maximum and mean"
OF_NUMBER = "a number has no commonest values and no length here"


def table_statistics(tables: Mapping[str, pl.LazyFrame], schemas: Mapping[str, TableSchema]) -> pl.DataFrame:
    """Statistics of the rows kept, a row per table and column in the order of the schema (STATISTICS).

    tables: the typed raw tables by name. Numbers are in the stored unit (seconds, milli-GPU, MiB ...), under our name
    of the column (`stored_as`); `column` is the file's. Quartiles are values of the column (nearest rank).
    commonest: up to MOST_VALUES values, each with its share of the rows that are not blank; equally common ones in the
    order of their text. longest: characters of the longest text.
    """
    return STATISTICS.frame(row for name, table in tables.items() for row in _of_table(table, schemas[name]))


def _of_table(table: pl.LazyFrame, schema: TableSchema) -> Iterator[dict]:
    height = table.select(pl.len()).collect(engine="streaming").item()
    for column in schema.columns:
        row = {"table": schema.name, "column": column.name, "type": column.type, "rows": height}
        if not column.keep or column.digest:
            yield row | {"reason": NOT_STORED}
            continue
        row["stored_as"] = column.as_
        if not height:
            yield row | {"blank": 0, "distinct": 0, "reason": NO_ROWS}
            continue
        # A key of one column has no blanks that matter and no value twice: nothing to count by value.
        is_key = schema.key == (column.as_,) and column.required
        found = _of_text(table, column, is_key, height) if column.type == "text" else _of_number(table, column, height)
        blank = found.pop("blank")
        yield row | found | {"blank": blank, "blank_share": blank / height}


def _of_number(table: pl.LazyFrame, column: Column, height: int) -> dict:
    number = pl.col(column.as_)
    # 128 bits: a sum over a long column of large values need not fit 64.
    sums = {"n": number.count(), "total": number.cast(pl.Int128).sum(), "low": number.min(), "high": number.max()}
    n, total, low, high = table.select(**sums).collect(engine="streaming").row(0)
    if not n:
        return {"blank": height, "distinct": 0, "reason": ALL_BLANK}
    values = counted(table, column.as_, low, high)
    return {
        "blank": height - n,
        "distinct": values.values.size,
        "minimum": low,
        **{
            name: values.at((quarter * n + 3) // 4 - 1)
            for quarter, name in ((1, "first_quartile"), (2, "middle"), (3, "third_quartile"))
        },
        "maximum": high,
        "mean": total / n,
        "reason": OF_NUMBER,
    }


@dataclass(frozen=True)
class _Texts:
    """What a column holds. rows: those with a text; common: value and rows of the MOST_VALUES commonest, or more."""

    rows: int
    distinct: int
    longest: int
    common: pl.DataFrame


def _of_text(table: pl.LazyFrame, column: Column, is_key: bool, height: int) -> dict:
    texts = table.select(value=column.as_).drop_nulls()
    beginning = texts.head(BEGINNING).collect(engine="streaming")["value"]
    if not beginning.len():
        return {"blank": height, "distinct": 0, "reason": ALL_BLANK}
    if is_key:
        found = _all_different(texts, height)
    else:
        many = beginning.n_unique() * FEW_ROWS > beginning.len()
        found = _counted_by_number(texts) if many else _counted(texts)
    # Rows and text together order the values wholly, in whatever order they were counted.
    commonest = found.common.sort(["rows", "value"], descending=[True, False]).head(MOST_VALUES)
    return {
        "blank": height - found.rows,
        "distinct": found.distinct,
        "longest": found.longest,
        "commonest": _listed(commonest.select("value", "rows").rows(), found.rows),
        "reason": OF_TEXT,
    }


def _all_different(texts: pl.LazyFrame, rows: int) -> _Texts:
    first = texts.select(pl.col("value").bottom_k(MOST_VALUES)).collect(engine="streaming")
    return _Texts(rows, rows, _longest(texts), first.with_columns(rows=pl.lit(1, dtype=pl.Int64)))


def _counted(texts: pl.LazyFrame) -> _Texts:
    counted = texts.group_by("value").agg(rows=pl.len().cast(pl.Int64)).collect(engine="streaming")
    longest = counted["value"].str.len_chars().max()
    return _Texts(int(counted["rows"].sum()), counted.height, longest, _commonest(counted))


def _counted_by_number(texts: pl.LazyFrame) -> _Texts:
    """For many different texts: they are never held all at once."""
    number = pl.col("value").hash().alias("number")
    counted = texts.group_by(number).agg(rows=pl.len().cast(pl.Int64)).collect(engine="streaming")
    common = _commonest(counted)
    least = common["rows"].min()
    above, equal = common.filter(pl.col("rows") > least), common.filter(pl.col("rows") == least)
    # Any number of texts may be as common as the last of the commonest: only the first of them by their text count.
    like_last = texts if equal.height == counted.height else texts.filter(number.is_in(equal["number"].implode()))
    named = pl.concat(
        [
            texts.filter(number.is_in(above["number"].implode())),
            like_last.select(pl.col("value").bottom_k(MOST_VALUES * least)),
        ]
    )
    named = named.unique().with_columns(number).collect(engine="streaming").join(common, on="number")
    return _Texts(int(counted["rows"].sum()), counted.height, _longest(texts), named)


def _commonest(counted: pl.DataFrame) -> pl.DataFrame:
    """Those that are as common as the last of the MOST_VALUES commonest, or more."""
    return counted.filter(pl.col("rows") >= pl.col("rows").top_k(MOST_VALUES).min())


def _longest(texts: pl.LazyFrame) -> int:
    return texts.select(pl.col("value").str.len_chars().max()).collect(engine="streaming").item()


def _listed(values: list[tuple[str, int]], known: int) -> str:
    """Values with their shares of the rows that have one: `T4 (62.5%), P100 (37.5%)`. A trace's text is untrusted."""
    return ", ".join(f"{shorten(printable(value), LONGEST_VALUE)} ({_percent(rows, known)})" for value, rows in values)


def _percent(rows: int, known: int) -> str:
    """A share with one decimal, rounded down from integers, so that 99.97% never reads 100%."""
    permille = 1000 * rows // known
    return f"{permille // 10}.{permille % 10}%" if permille else "under 0.1%"
