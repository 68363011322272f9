"""Tables of the report as HTML by Great Tables; cells are formatted by words.py, headings name the units."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
from great_tables import GT

from ttf.display.metrics import FEWEST_ENDED
from ttf.display.phrases import remove_direction_marks
from ttf.engine import contract as contracts
from ttf.engine import words
from ttf.engine.contract import Table
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.engine.words import NO_BREAK

BLANK = "–"
# Columns whose cells are labels of the project that name sizes.
SIZE_LABEL_COLUMNS = {"stratum_by", "covariate", "population", "scenario", "kind", "of_size"}
_INTERVAL = re.compile(r"\[[^]]*\]|\([^)]*\)|[p±] [=<>]?")
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_TAG = re.compile(r"<(table|thead|tbody|tr|th|td)\b([^>]*)>([^<]*)")
_COLSPAN = re.compile(r'colspan="(\d+)"')
# A line per row.
_BREAK_IN_ROW = re.compile(r"\s*\n\s*(?=<t[hd]\b|</tr>)")
Formatter = Callable[..., str]


class Interval(NamedTuple):
    """A column of estimates with their intervals; low, high: the columns with the bounds.

    Default heading and formatter: those of the contract.
    """

    heading: str | None = None
    worded: Formatter | None = None
    low: str = ""
    high: str = ""


class Mean(NamedTuple):
    """A column of means, marked with * if few values are behind one; count_column: their number.

    Default heading and formatter: those of the contract.
    """

    heading: str | None = None
    worded: Formatter | None = None
    count_column: str = ""


# The column names of most tables.
WITH_INTERVAL, MEAN_OF_N = Interval(low="ci_low", high="ci_high"), Mean(count_column="n")
CLUSTERED = Interval(low="ci_low_clustered", high="ci_high_clustered")
# (heading, formatter), a heading alone, or None for the heading and formatter of the contract.
Column = tuple[str, Formatter | None] | Interval | Mean | str | None


class PageTable(NamedTuple):
    """A table of the page; a table without rows is not shown.

    columns: column -> heading and formatter, or names alone; the contract supplies what is missing. A column without a
        formatter holds text: left-aligned, cut after `longest` characters. The first column heads the rows.
    group: column whose values head groups of rows.
    unit: replaces GPUs in headings and size labels.
    classes: column -> column of the frame with the HTML class of each of its cells.
    """

    frame: pl.DataFrame
    columns: Mapping[str, Column] | Sequence[str]
    contract: Table
    group: str | None = None
    longest: int = words.LONGEST_LABEL
    unit: SizeUnit = GPU
    classes: Mapping[str, str] = {}

    def html(self, name: str) -> str:
        """Return the HTML of the table. name: its id. Numbers carry their exact value (data-v)."""
        columns, rows = [*self.columns], self.frame
        if self.group is not None:
            # Great Tables shows group by group, in order of first appearance.
            rows = pl.concat(rows.partition_by(self.group, maintain_order=True) or [rows])
        cell_attributes = (
            _format_attributes(row[column], row[self.classes[column]] if column in self.classes else "")
            for row in rows.iter_rows(named=True)
            for column in columns[1:]
        )
        source = self.great_table().with_id(name).as_raw_html(inline_css=False)
        slim = _slim_html(source, iter(columns), cell_attributes)
        attribute = words.attribute(name)
        slim = slim.replace("<table", f'<table data-name="{attribute}"', 1)
        return f'<div class="scroll" tabindex="0" role="region" aria-label="Table {attribute}">{slim}</div>'

    def great_table(self) -> GT:
        """Return the table for Great Tables, which writes HTML and LaTeX. Numbers are right-aligned."""
        texts, headings, is_number = self.format_cells()
        stub, *data_columns = self.columns
        return (
            GT(texts, rowname_col=stub, groupname_col=self.group)
            .tab_stubhead(headings[stub])
            .cols_label({column: headings[column] for column in data_columns})
            .cols_align("left", columns=[column for column in data_columns if not is_number[column]])
            .cols_align("right", columns=[column for column in data_columns if is_number[column]])
        )

    def format_cells(self) -> tuple[pl.DataFrame, dict[str, str], dict[str, bool]]:
        """Return the cells as texts, nulls as dashes; and for each column its heading, and whether it has numbers.

        A unit that all cells of a column share moves to the heading.
        """
        columns = self.columns if isinstance(self.columns, Mapping) else dict.fromkeys(self.columns)
        is_number, headings, cells = {}, {}, {}
        for column, declared in columns.items():
            heading, formatter = _complete(column, declared, self.contract)
            heading, cells[column] = _format_column(self.frame, column, declared, heading, formatter, self.longest)
            headings[column], is_number[column] = self.unit.worded(heading), formatter is not None
        if self.group is not None:
            cells[self.group] = [_format_text(value, self.longest) for value in self.frame[self.group]]
        for column in cells.keys() & SIZE_LABEL_COLUMNS:
            cells[column] = [self.unit.worded(text) for text in cells[column]]
        return pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String)), headings, is_number


def format_range(column: str) -> pl.Expr:
    """Return the column of ranges with an en dash: 2-4 as 2–4."""
    return pl.col(column).str.replace("-", "–", literal=True)


def format_boolean(column: str) -> pl.Expr:
    return pl.when(column).then(pl.lit("yes")).otherwise(pl.lit("no")).alias(column)


def format_rows(frame: pl.DataFrame, columns: Sequence[str], formatter: Callable[..., str]) -> pl.Series:
    """Return `formatter(*columns)` for each row, or null if the first column is null."""
    rows = frame.select(columns).iter_rows()
    return pl.Series([None if row[0] is None else formatter(*row) for row in rows], dtype=pl.String)


def merge_collinear_rows(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Make one row of rows that differ in this column alone: features in a fixed ratio have the same numbers."""
    others = [name for name in frame.columns if name != column]
    merged = frame.group_by(others, maintain_order=True).agg(column).select(frame.columns)
    names = [
        values[0] if len(values) == 1 else f"{words.join_list(values)} (in a fixed ratio: one)"
        for values in merged[column].to_list()
    ]
    return merged.with_columns(pl.Series(column, names, dtype=pl.String))


def add_size_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the column `gpus` with the label of each size bucket: 1; 3–4."""
    return frame.with_columns(gpus=format_rows(frame, ("gpus_low", "gpus_high"), words.gpus_label))


def _format_attributes(value: object, class_name: str) -> str:
    """Return the attributes of a cell: its exact number, its class."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (f' data-v="{value!r}"' if is_number else "") + (f' class="{class_name}"' if class_name else "")


def _complete(name: str, column: Column, contract: Table) -> tuple[str, Formatter | None]:
    """Return the heading and formatter of a column, those of the contract where the declaration has none."""
    heading, formatter = column[:2] if isinstance(column, tuple) else (column, None)
    if heading is None or (formatter is None and type(column) is not tuple):
        default = contract.columns[name]
        return heading or default.heading, formatter or _default_formatter(default)
    return heading, formatter


def _default_formatter(column: contracts.Column) -> Formatter | None:
    formatter_by_kind: dict[str, Formatter] = {contracts.WHOLE: words.count, contracts.REAL: words.number}
    return {"s": words.duration, "share": words.share}.get(column.unit, formatter_by_kind.get(column.kind))


def _format_column(
    frame: pl.DataFrame, name: str, column: Column, heading: str, formatter: Formatter | None, longest: int
) -> tuple[str, list[str]]:
    """Return the heading and the cells of a column."""
    if isinstance(column, Mean):
        heading, means = _format_column(frame, name, None, heading, formatter, longest)
        few = [
            (n or 0) < FEWEST_ENDED and text != BLANK for n, text in zip(frame[column.count_column], means, strict=True)
        ]
        heading += f", *: n < {FEWEST_ENDED}" if any(few) else ""
        return heading, [f"{text}*" if is_few else text for text, is_few in zip(means, few, strict=True)]
    bound_columns = (column.low, column.high) if isinstance(column, Interval) else ()
    if formatter is None:
        return heading, [_format_text(value, longest) for value in frame[name]]
    rows = frame.select(name, *bound_columns).rows()
    values = [value for row in rows for value in row if value is not None]
    if formatter is words.duration and (unit := words.common_unit(values)):
        formatter = words.make_unit_formatter(unit)
    texts = [format_estimate(row, formatter) for row in rows]
    units = {_unit_suffix(text) for row in texts for text in row if text is not None}
    if formatter is not str and len(units) == 1 and (unit := units.pop()):
        heading = f"{heading} ({unit})"
        texts = [tuple(text and text.removesuffix(f"{NO_BREAK}{unit}") for text in row) for row in texts]
    return heading, [_glue_number(words.interval(*row) if bound_columns else row[0]) for row in texts]


def format_estimate(row: Sequence, formatter: Formatter) -> tuple[str | None, ...]:
    """Format an estimate and its bounds; times share one unit."""
    if formatter is words.duration and None not in row:
        return tuple(words.in_common_unit(row[0], *row))
    return tuple(None if value is None else formatter(value) for value in row)


def _unit_suffix(text: str) -> str:
    return text.rpartition(NO_BREAK)[2] if NO_BREAK in text else ""


def _format_text(value: object, longest: int) -> str:
    # Great Tables escapes HTML. A line break would end the raw block, and text of a trace may hold direction marks.
    if value is None:
        return BLANK
    return words.add_no_break_spaces(" ".join(words.shorten(remove_direction_marks(str(value)), longest).splitlines()))


def _glue_number(text: str | None) -> str:
    """Put no-break spaces into brackets, and after p and ±, of a formatted number; return a dash for None."""
    if text is None:
        return BLANK
    return _INTERVAL.sub(lambda match: match[0].replace(" ", NO_BREAK), " ".join(text.splitlines()))


def _slim_html(source: str, names: Iterator[str], cell_attributes: Iterator[str]) -> str:
    """Return the <table> without the classes and ids of each cell; report/page/page.css styles it.

    Each group of rows is a <tbody> with a heading. Cells of class l are left-aligned text, all others numbers. Headings
    carry their column name, cells their exact value. Great Tables escapes all cells, so every tag here is its own.
    """
    table = _TAG.sub(lambda match: _shorten_tag(match, names, cell_attributes), _TABLE.findall(source)[0])
    lines = "\n".join(line.strip() for line in _BREAK_IN_ROW.sub("", table).splitlines() if line.strip())
    return lines.replace("<tbody>\n</tbody>\n", "", 1)


def _shorten_tag(match: re.Match, names: Iterator[str], cell_attributes: Iterator[str]) -> str:
    tag, attributes, text = match.groups()
    if tag == "th" and "gt_group_heading" in attributes:
        return f'<th colspan="{_COLSPAN.findall(attributes)[0]}" scope="rowgroup">{text}'
    if tag == "tr" and "gt_group_heading_row" in attributes:
        return f"</tbody>\n<tbody>\n<tr>{text}"
    slim = ""
    if tag == "th":
        slim = ' scope="row"' if "gt_stub" in attributes else f' scope="col" data-name="{words.attribute(next(names))}"'
    elif tag == "td":
        slim = next(cell_attributes)
    if tag in ("th", "td") and "gt_left" in attributes:
        slim += ' class="l"'
    return f"<{tag}{slim}>{text}"
