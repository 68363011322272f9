"""Tables of the report, as Great Tables: cells are text that words.py has made, labels name the units."""

import re
from collections.abc import Callable

import polars as pl
from great_tables import GT

from ttf.report import words

BLANK = "–"
_CLASS = "great-table"
_STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)
Column = tuple[str, Callable[[object], str] | None]


def html_table(
    frame: pl.DataFrame,
    columns: dict[str, Column],
    identifier: str,
    group: str | None = None,
    longest: int = words.LONGEST_LABEL,
) -> str:
    """The HTML of a table: `columns` maps a column to its heading and the function that words its cells.

    A column without a function holds text from a trace or from us: it is shortened and shown literally, at the left;
    numbers stand at the right; a null is a dash. `group` names a column whose values head groups of rows. A
    text is cut after `longest` characters.
    """
    names = [*columns] if group is None else [*columns, group]
    cells = frame.select(
        pl.Series(
            name, [_cell(value, columns.get(name, ("", None))[1], longest) for value in frame[name]], dtype=pl.String
        )
        for name in names
    )
    texts = [name for name, (_, worded) in columns.items() if worded is None]
    numbers = [name for name in columns if name not in texts]
    table = (
        GT(cells, id=identifier, groupname_col=group)
        .cols_label({name: heading for name, (heading, _) in columns.items()})
        .cols_align("left", columns=texts)
        .cols_align("right", columns=numbers)
    )
    # Its style, which is that of every table, stands once in the page's header: see `table_style`.
    html = _STYLE.sub("", table.as_raw_html(inline_css=False), count=1)
    return html.replace(f'<div id="{identifier}" style=', f'<div id="{identifier}" class="{_CLASS}" style=', 1)


def table_style() -> str:
    """The <style> of every `html_table`, for the head of the page."""
    table = GT(pl.DataFrame({"a": [""]}), id=_CLASS).tab_options(
        table_font_size="0.9em", table_width="100%", data_row_padding="4px"
    )
    style = _STYLE.search(table.as_raw_html(inline_css=False))[0].replace(f"#{_CLASS} ", f".{_CLASS} ")
    numbers = f".{_CLASS} td.gt_right {{ font-variant-numeric: tabular-nums; white-space: nowrap; }}\n"
    return style.replace("</style>", f"{numbers}</style>")


def _cell(value: object, worded: Callable[[object], str] | None, longest: int) -> str:
    if value is None:
        return BLANK
    # Great Tables escapes what HTML would read; a line break would let a cell leave its line of the raw block.
    text = words.shorten(str(value), longest) if worded is None else worded(value)
    return " ".join(text.splitlines())
