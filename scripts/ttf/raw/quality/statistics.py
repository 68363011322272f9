"""Describe the columns of the typed raw tables: one row of statistics per column.

Columns are processed one at a time. Numbers are counted by value; many different texts are counted by a 64-bit hash. Of
ten million texts, two share a hash with a probability of 3 in a million. All statistics come from exact integers: an
order statistic is a value of the column, a mean is one division of two integers. So neither the number of threads nor
the engine can change a digit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ttf.engine.counts import count_values
from ttf.engine.words import shorten
from ttf.raw.raw_contracts import STATISTICS
from ttf.raw.raw_tables import Column, TableSchema, escape_text

MAX_VALUES = 5
MAX_VALUE_LENGTH = 40
# Texts are diverse if each stands in fewer than DIVERSE_ROWS of the first SAMPLE_ROWS rows, in the mean.
SAMPLE_ROWS = 1 << 16
DIVERSE_ROWS = 16

NOT_STORED = "checked, not stored"
ALL_BLANK = "every row is blank"
NO_ROWS = "no rows"
REASON_TEXT = "a text has no minimum, quartiles, maximum and mean"
REASON_NUMBER = "a number has no most common values and no length here"
_LENGTH = pl.col("value").str.len_chars()


def table_statistics(tables: Mapping[str, pl.LazyFrame], schemas: Mapping[str, TableSchema]) -> pl.DataFrame:
    """Compute statistics of the accepted rows, a row per table and column in the order of the schema (STATISTICS).

    tables: the typed raw tables by name. `column` is the name in the file, `stored_as` the name in the typed table.
    Numbers are in the stored unit (seconds, milli-GPU, MiB ...). Quartiles are values of the column (nearest rank).
    most_common: up to MAX_VALUES values, each with its share of the rows that are not blank; ties in the order of their
    text. longest: characters of the longest text.
    """
    return STATISTICS.frame(row for name, table in tables.items() for row in _column_statistics(table, schemas[name]))


def _column_statistics(table: pl.LazyFrame, schema: TableSchema) -> Iterator[dict]:
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
        # A required key of one column has no blanks and no repeated value: nothing to count.
        is_key = schema.key == (column.as_,) and column.required
        statistics = (
            _text_statistics(table, column, is_key, height)
            if column.type == "text"
            else _number_statistics(table, column, height)
        )
        blank = statistics.pop("blank")
        yield row | statistics | {"blank": blank, "blank_share": blank / height}


def _number_statistics(table: pl.LazyFrame, column: Column, height: int) -> dict:
    number = pl.col(column.as_)
    low, high = table.select(low=number.min(), high=number.max()).collect(engine="streaming").row(0)
    if low is None:
        return {"blank": height, "distinct": 0, "reason": ALL_BLANK}
    values = count_values(table, column.as_, low, high)
    return {
        "blank": height - values.size,
        "distinct": values.values.size,
        "minimum": low,
        **{
            name: values.at((quarter * values.size + 3) // 4 - 1)
            for quarter, name in ((1, "first_quartile"), (2, "middle"), (3, "third_quartile"))
        },
        "maximum": high,
        "mean": values.mean(),
        "reason": REASON_NUMBER,
    }


@dataclass(frozen=True)
class _TextCounts:
    """Counts of a column of texts. rows: rows with a text; common: value and rows of the MAX_VALUES most common."""

    rows: int
    distinct: int
    longest: int
    common: pl.DataFrame


def _text_statistics(table: pl.LazyFrame, column: Column, is_unique: bool, height: int) -> dict:
    texts = table.select(value=column.as_)
    first_texts = texts.drop_nulls().head(SAMPLE_ROWS).collect(engine="streaming")["value"]
    if not first_texts.len():
        return {"blank": height, "distinct": 0, "reason": ALL_BLANK}
    if is_unique:
        summary = _summarise_unique(texts, first_texts, height)
    else:
        is_diverse = first_texts.n_unique() * DIVERSE_ROWS > first_texts.len()
        summary = _summarise_by_hash(texts.drop_nulls(), first_texts) if is_diverse else _summarise_texts(texts)
    # Sorting by rows and text gives one order, whatever the order of counting.
    most_common = summary.common.sort(["rows", "value"], descending=[True, False]).head(MAX_VALUES)
    return {
        "blank": height - summary.rows,
        "distinct": summary.distinct,
        "longest": summary.longest,
        "most_common": _format_values(most_common.select("value", "rows").rows(), summary.rows),
        "reason": REASON_TEXT,
    }


def _smallest_texts(texts: pl.LazyFrame, first_texts: pl.Series, n: int) -> pl.LazyFrame:
    """Return the n smallest texts. first_texts: the texts of some rows, which exclude most others unread."""
    bound = first_texts.bottom_k(n).max()
    return texts.filter(pl.col("value") <= bound).select(pl.col("value").bottom_k(n))


def _summarise_unique(texts: pl.LazyFrame, first_texts: pl.Series, rows: int) -> _TextCounts:
    common = _smallest_texts(texts, first_texts, MAX_VALUES).with_columns(rows=pl.lit(1, pl.Int64))
    longest = texts.select(_LENGTH.max()).collect(engine="streaming")
    return _TextCounts(rows, rows, longest.item(), common.collect(engine="streaming"))


def _summarise_texts(texts: pl.LazyFrame) -> _TextCounts:
    counts = texts.group_by("value").agg(rows=pl.len().cast(pl.Int64)).collect(engine="streaming").drop_nulls()
    longest = counts.select(_LENGTH.max())
    return _TextCounts(int(counts["rows"].sum()), counts.height, longest.item(), _most_common(counts))


def _summarise_by_hash(texts: pl.LazyFrame, first_texts: pl.Series) -> _TextCounts:
    """Count many different texts without holding them all at once."""
    hashed = pl.col("value").hash().alias("hash")
    rows = texts.select(hashed, length=_LENGTH).collect(engine="streaming")
    # A million different hashes: 0.05 s, against 0.4 s by a grouping.
    runs = rows["hash"].sort().rle().struct.unnest()
    counts = runs.select(hash="value", rows=pl.col("len").cast(pl.Int64))
    common = _most_common(counts)
    min_rows: int = common.select(pl.col("rows").min()).item()
    if counts["rows"].min() == counts["rows"].max():
        named_texts = _smallest_texts(texts, first_texts, MAX_VALUES * min_rows)
    else:
        # Any number of texts may tie for the last place: keep the first of them in the order of their text.
        above_texts, tied_texts = (
            texts.filter(hashed.is_in(common.filter(condition)["hash"].implode()))
            for condition in (pl.col("rows") > min_rows, pl.col("rows") == min_rows)
        )
        named_texts = pl.concat([above_texts, tied_texts.select(pl.col("value").bottom_k(MAX_VALUES * min_rows))])
    common_texts = named_texts.unique().with_columns(hashed).collect(engine="streaming").join(common, on="hash")
    return _TextCounts(rows.height, counts.height, rows.select(pl.col("length").max()).item(), common_texts)


def _most_common(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the MAX_VALUES most common values, with all ties for the last place."""
    return counts.filter(pl.col("rows") >= pl.col("rows").top_k(MAX_VALUES).min())


def _format_values(values: list[tuple[str, int]], n_texts: int) -> str:
    """List values with their share of the rows that have one: `T4 (62.5%), P100 (37.5%)`."""
    return ", ".join(
        f"{shorten(escape_text(value), MAX_VALUE_LENGTH)} ({_format_share(rows, n_texts)})" for value, rows in values
    )


def _format_share(rows: int, n_texts: int) -> str:
    """Format a share with one decimal, rounded down, so that 99.97% never reads 100%."""
    permille = 1000 * rows // n_texts
    return f"{permille // 10}.{permille % 10}%" if permille else "under 0.1%"
