"""Tables of the report, as Great Tables: cells are text that words.py has made, headings name the units."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
from great_tables import GT

from ttf.display.metrics import FEWEST_ENDED
from ttf.display.phrases import unturned
from ttf.engine import contract as contracts
from ttf.engine import words
from ttf.engine.contract import Table
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.engine.words import NO_BREAK

BLANK = "–"
# Columns whose cells are words of ours that name sizes.
OF_OUR_WORDS = {"stratum_by", "covariate", "population", "scenario", "kind", "of_size"}
_INTERVAL = re.compile(r"\[[^]]*\]|\([^)]*\)|[p±] [=<>]?")
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_TAG = re.compile(r"<(table|thead|tbody|tr|th|td)\b([^>]*)>([^<]*)")
_COLSPAN = re.compile(r'colspan="(\d+)"')
# A line per row.
_WITHIN_ROW = re.compile(r"\s*\n\s*(?=<t[hd]\b|</tr>)")
Words = Callable[[object], str]


class Interval(NamedTuple):
    """A column whose cells also give the interval of the estimate: the columns of its ends.

    Heading and wording follow from the contract where they are not given.
    """

    heading: str | None = None
    worded: Words | None = None
    low: str = ""
    high: str = ""


class Mean(NamedTuple):
    """A column of means, marked where few are behind one; of: the column that counts them.

    Heading and wording follow from the contract where they are not given.
    """

    heading: str | None = None
    worded: Words | None = None
    of: str = ""


# As most tables have them.
WITH_INTERVAL, MEAN_OF_N = Interval(low="ci_low", high="ci_high"), Mean(of="n")
CLUSTERED = Interval(low="ci_low_clustered", high="ci_high_clustered")
# A heading with the function that words the cells, or the heading alone, or None for what the contract says.
Column = tuple[str, Words | None] | Interval | Mean | str | None


class Shown(NamedTuple):
    """A table of the page as `html_table` takes it: not there without rows. The file it links is its contract's.

    unit: in which the sizes are told that its headings name after GPUs.
    """

    frame: pl.DataFrame
    columns: Mapping[str, Column] | Sequence[str]
    contract: Table
    group: str | None = None
    longest: int = words.LONGEST_LABEL
    unit: SizeUnit = GPU

    def html(self, name: str) -> str:
        return html_table(self.frame, self.columns, name, self.group, self.longest, self.contract, self.unit)


def span(column: str) -> pl.Expr:
    """A column of our own labels of numbers, with the dash of a span: 2-4 as 2–4."""
    return pl.col(column).str.replace("-", "–", literal=True)


def yes_or_no(column: str) -> pl.Expr:
    return pl.when(column).then(pl.lit("yes")).otherwise(pl.lit("no")).alias(column)


def texts(frame: pl.DataFrame, columns: Sequence[str], worded: Callable[..., str]) -> pl.Series:
    """A text for each row, by a function of these columns; blank where the first of them is."""
    rows = frame.select(columns).iter_rows()
    return pl.Series([None if row[0] is None else worded(*row) for row in rows], dtype=pl.String)


def with_sizes(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with the GPUs of their bucket in words: 1; 3–4."""
    return frame.with_columns(gpus=texts(frame, ("gpus_low", "gpus_high"), words.gpus_label))


def html_table(
    frame: pl.DataFrame,
    columns: Mapping[str, Column] | Sequence[str],
    name: str,
    group: str | None = None,
    longest: int = words.LONGEST_LABEL,
    contract: Table | None = None,
    unit: SizeUnit = GPU,
) -> str:
    """The HTML of a table: `columns` maps a column to its heading and the function that words its cells.

    What is not said of a column follows from the contract: its heading, its wording by kind and unit, or both, as for
    all columns of a plain sequence of names.

    A column without a function holds text from a trace or from us: shortened and shown literally, at the left;
    numbers stand at the right, each with its exact value (data-v); a null is a dash. What all cells of a column
    measure in stands in its heading. The first column heads the rows; `group` names a column whose values head groups
    of rows. A text is cut after `longest` characters.
    """
    if not isinstance(columns, Mapping):
        columns = dict.fromkeys(columns)
    columns = {column: _completed(column, given, contract) for column, given in columns.items()}
    headings, cells = {}, {}
    for column, given in columns.items():
        heading, cells[column] = _column(frame, column, given, longest)
        headings[column] = unit.worded(heading)
    if group is not None:
        cells[group] = [_text(value, longest) for value in frame[group]]
    for column in cells.keys() & OF_OUR_WORDS:
        cells[column] = [unit.worded(text) for text in cells[column]]
    first, *others = columns
    table = (
        GT(
            pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String)),
            id=name,
            rowname_col=first,
            groupname_col=group,
        )
        .tab_stubhead(headings[first])
        .cols_label({column: headings[column] for column in others})
        .cols_align("left", columns=[column for column in others if columns[column][1] is None])
        .cols_align("right", columns=[column for column in others if columns[column][1] is not None])
    )
    rows = _in_order(frame, group)
    exact = iter([_exact(rows[column][row]) for row in range(rows.height) for column in others])
    lean = _lean(table.as_raw_html(inline_css=False), iter(columns), exact)
    named = words.attribute(name)
    lean = lean.replace("<table", f'<table data-name="{named}"', 1)
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Table {named}">{lean}</div>'


def _in_order(frame: pl.DataFrame, group: str | None) -> pl.DataFrame:
    """The rows as Great Tables shows them: groups one after the other, as they first appear."""
    if group is None:
        return frame
    place = {value: place for place, value in enumerate(frame[group].unique(maintain_order=True))}
    order = pl.Series([place[value] for value in frame[group]], dtype=pl.Int64).arg_sort()
    return frame[order]


def _exact(value: object) -> str | None:
    """A number as its shortest text; None for what is no number."""
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _completed(name: str, column: Column, contract: Table | None) -> tuple[str, Words | None] | Interval | Mean:
    """The column with the heading and the wording that its contract gives it, where it has none of its own."""
    if column is None or isinstance(column, str):
        return column or contract.columns[name].heading, _worded(contract.columns[name])
    if isinstance(column, Interval | Mean) and None in column:
        declared = contract.columns[name]
        return column._replace(heading=column.heading or declared.heading, worded=column.worded or _worded(declared))
    return column


def _worded(column: contracts.Column) -> Words | None:
    """How the cells of a column are worded: by its unit, else by its kind."""
    of_kind = {contracts.WHOLE: words.count, contracts.REAL: words.number}
    return {"s": words.duration, "share": words.share}.get(column.unit, of_kind.get(column.kind))


def _column(frame: pl.DataFrame, name: str, column: Column, longest: int) -> tuple[str, list[str]]:
    """The heading and the cells of a column."""
    if isinstance(column, Mean):
        heading, texts = _column(frame, name, column[:2], longest)
        few = [(n or 0) < FEWEST_ENDED and text != BLANK for n, text in zip(frame[column.of], texts, strict=True)]
        heading += f", *: n < {FEWEST_ENDED}" if any(few) else ""
        return heading, [f"{text}*" if is_few else text for text, is_few in zip(texts, few, strict=True)]
    heading, worded, *ends = column
    if worded is None:
        return heading, [_text(value, longest) for value in frame[name]]
    rows = frame.select(name, *ends).rows()
    known = [value for row in rows for value in row if value is not None]
    if worded is words.duration and (unit := words.unit_of(known)):
        worded = words.in_unit(unit)
    texts = [in_words(row, worded) for row in rows]
    units = {_unit(text) for row in texts for text in row if text is not None}
    if worded is not str and len(units) == 1 and (unit := units.pop()):
        heading = f"{heading} ({unit})"
        texts = [tuple(text and text.removesuffix(f"{NO_BREAK}{unit}") for text in row) for row in texts]
    return heading, [_number(words.interval(*row) if ends else row[0]) for row in texts]


def in_words(row: Sequence, worded: Words) -> tuple[str | None, ...]:
    """An estimate and the ends of its interval; times in one unit."""
    if worded is words.duration and None not in row:
        return tuple(words.alike(row[0], *row))
    return tuple(None if value is None else worded(value) for value in row)


def _unit(text: str) -> str:
    return text.rpartition(NO_BREAK)[2] if NO_BREAK in text else ""


def _text(value: object, longest: int) -> str:
    # Great Tables escapes what HTML would read; a line break would let a cell leave its line of the raw block.
    # One of a trace may hold signs that turn the direction of all that follows.
    if value is None:
        return BLANK
    return words.unbroken(" ".join(words.shorten(unturned(str(value)), longest).splitlines()))


def _number(text: str | None) -> str:
    if text is None:
        return BLANK
    return _INTERVAL.sub(lambda match: match[0].replace(" ", NO_BREAK), " ".join(text.splitlines()))


def _lean(html: str, names: Iterator[str], exact: Iterator[str | None]) -> str:
    """The <table> alone, without the classes and ids that each cell repeats: report/page/page.css has its style.

    A group of rows is a <tbody>, which its heading heads. Texts (class l) stand at the left; all else is a number. A
    heading has the name of its column, a cell its exact value. Great Tables escapes cells and headings, so that every
    tag here is its own.
    """
    table = _TAG.sub(lambda at: _lean_tag(at, names, exact), _TABLE.search(html)[0])
    lines = "\n".join(line.strip() for line in _WITHIN_ROW.sub("", table).splitlines() if line.strip())
    return lines.replace("<tbody>\n</tbody>\n", "", 1)


def _lean_tag(match: re.Match, names: Iterator[str], exact: Iterator[str | None]) -> str:
    tag, attributes, text = match.groups()
    if tag == "th" and "gt_group_heading" in attributes:
        return f'<th colspan="{_COLSPAN.search(attributes)[1]}" scope="rowgroup">{text}'
    if tag == "tr" and "gt_group_heading_row" in attributes:
        return f"</tbody>\n<tbody>\n<tr>{text}"
    kept = ""
    if tag == "th":
        kept = ' scope="row"' if "gt_stub" in attributes else f' scope="col" data-name="{words.attribute(next(names))}"'
    elif tag == "td" and (value := next(exact)) is not None:
        kept = f' data-v="{value}"'
    if tag in ("th", "td") and "gt_left" in attributes:
        kept += ' class="l"'
    return f"<{tag}{kept}>{text}"
