"""The appendix with all numbers of a trace: exact value, unit, n, interval, source and description."""

from typing import NamedTuple

from ttf.display.trace_numbers import Numbers, find_interval
from ttf.engine import words


class Row(NamedTuple):
    """A row of the table of all numbers; missing texts are ""."""

    key: str
    words: str
    is_text: bool
    exact: str
    unit: str
    n: str
    source: str
    low: str
    high: str
    ci: str
    description_index: int | None


def rows(metrics: Numbers) -> tuple[list[Row], list[str]]:
    """Return one row per key, and the distinct descriptions that `description_index` refers to."""
    index_by_description: dict[str, int] = {}
    return [_row(metrics, key, index_by_description) for key in metrics], list(index_by_description)


def _row(metrics: Numbers, key: str, index_by_description: dict[str, int]) -> Row:
    names = ("value", "unit", "n", "source")
    cell = dict.__getitem__(metrics, key)
    value, unit, n, source = (cell[name] for name in names)
    is_text, description = isinstance(value, str), cell.get("definition")
    low, high, ci = "", "", ""
    if interval := find_interval(metrics, key):
        low, high = (_format_exact(end) for end in interval[:2])
        ci = f"clustered by {interval[2]}" if interval[2] else "if independent"
    return Row(
        key,
        words.shorten(value, 200) if is_text else metrics.words(key),
        is_text,
        words.shorten(value, 200) if is_text else _format_exact(value),
        unit,
        "" if n is None else words.count(n),
        source,
        low,
        high,
        ci,
        index_by_description.setdefault(description, len(index_by_description)) if description else None,
    )


def _format_exact(value: float | None) -> str:
    return "" if value is None else repr(value)
