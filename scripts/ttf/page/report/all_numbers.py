"""All numbers of a trace, an appendix: each with its exact value, unit, n, interval, source and what it is."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ttf.display.trace_numbers import Numbers, interval_about
from ttf.engine import words
from ttf.engine.contract import Table


class Row(NamedTuple):
    """A number as the table has it; texts, blank where there is nothing."""

    key: str
    words: str
    text: bool
    exact: str
    unit: str
    n: str
    source: str
    low: str
    high: str
    ci: str
    what: int | None


def rows(metrics: Numbers, tables: Iterable[Table]) -> tuple[list[Row], list[str]]:
    """A row for each key, in their order; and what numbers are, each sentence once, by its place in the rows."""
    by_path = {table.path: table for table in tables}
    whats: dict[str, int] = {}
    return [_row(metrics, key, by_path, whats) for key in metrics], list(whats)


def _row(metrics: Numbers, key: str, tables: Mapping[str, Table], whats: dict[str, int]) -> Row:
    names = ("value", "unit", "n", "source", "column")
    value, unit, n, source, column = (dict.__getitem__(metrics, key)[name] for name in names)
    is_text = isinstance(value, str)
    low, high, ci = "", "", ""
    if found := interval_about(metrics, key):
        low, high = (_exact(end) for end in found[:2])
        ci = f"clustered by {found[2]}" if found[2] else "if independent"
    return Row(
        key,
        words.shorten(value, 200) if is_text else metrics.words(key),
        is_text,
        words.shorten(value, 200) if is_text else _exact(value),
        unit,
        "" if n is None else words.count(n),
        source,
        low,
        high,
        ci,
        whats.setdefault(what, len(whats)) if (what := _what(column, tables.get(source))) else None,
    )


def _exact(value: float | None) -> str:
    return "" if value is None else repr(value)


def _what(column: str, table: Table | None) -> str:
    """What the contract of its table says of the column, else of the table."""
    if table is None:
        return ""
    return table.columns[column].about if column in table.columns else table.about
