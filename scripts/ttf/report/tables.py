"""Tables of the report, as Great Tables: cells are text that words.py has made, labels name the units."""

import re
from collections.abc import Callable

import polars as pl
from great_tables import GT

from ttf.report import words

BLANK = "–"
# A text from here on asks for a column that is wide enough to read it in.
LONG_TEXT = 40
# A number with so much beside it (an interval, a p-value) may be broken, though not within the interval.
LONG_NUMBER = 20
_INTERVAL = re.compile(r"\[[^]]*\]|\([^)]*\)|[p±] [=<>]?")
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_TAG = re.compile(r"<(table|thead|tbody|tr|th|td)\b([^>]*)>([^<]*)")
_COLSPAN = re.compile(r'colspan="(\d+)"')
# A line per row.
_WITHIN_ROW = re.compile(r"\s*\n\s*(?=<t[hd]\b|</tr>)")
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
    return f'<div id="{identifier}" class="great-table">{_lean(table.as_raw_html(inline_css=False))}</div>'


def _lean(html: str) -> str:
    """The <table> alone, without the classes and ids that each cell repeats: report/tables.html has its style.

    A group of rows is a <tbody>, which its heading heads. Texts (class l) stand at the left, long ones (class t) are
    not squeezed; all else is a number, which is not broken unless much stands beside it (class w). Great Tables escapes
    cells and headings, so that every tag here is its own.
    """
    table = _TAG.sub(_lean_tag, _TABLE.search(html)[0])
    lines = "\n".join(line.strip() for line in _WITHIN_ROW.sub("", table).splitlines() if line.strip())
    return lines.replace("<tbody>\n</tbody>\n", "", 1)


def _lean_tag(match: re.Match) -> str:
    name, attributes, text = match.groups()
    if name == "th" and "gt_group_heading" in attributes:
        return f'<th colspan="{_COLSPAN.search(attributes)[1]}" scope="rowgroup">{text}'
    if name == "tr" and "gt_group_heading_row" in attributes:
        return f"</tbody>\n<tbody>\n<tr>{text}"
    kept = ' scope="col"' if name == "th" else ""
    if name in ("th", "td") and "gt_left" in attributes:
        kept += ' class="l t"' if name == "td" and len(text) > LONG_TEXT else ' class="l"'
    elif name == "td" and len(text) > LONG_NUMBER:
        kept = ' class="w"'
    return f"<{name}{kept}>{text}"


def _cell(value: object, worded: Callable[[object], str] | None, longest: int) -> str:
    if value is None:
        return BLANK
    # Great Tables escapes what HTML would read; a line break would let a cell leave its line of the raw block.
    text = words.shorten(str(value), longest) if worded is None else worded(value)
    flat = " ".join(text.splitlines())
    return flat if worded is None else _INTERVAL.sub(lambda match: match[0].replace(" ", "\u00a0"), flat)
