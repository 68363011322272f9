"""Read the header row of a raw table, and fit its names to the columns of the table.

Ingest, the check of headers and the recognition of formats use this fit. It works without Polars, so that a wrong
header is reported before the first job.
"""

import contextlib
import csv
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from ttf.engine.closest_match import closest_match

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Delimiters to look for if a header row lacks the expected one.
DELIMITERS = ",;\t|"
# A message has this many missing names, each compared with this many of the header.
MOST_NAMES, MOST_COMPARED = 8, 500
LONGEST_NAME = 80


class HeaderColumn(Protocol):
    """A column to find in a header row: its name, alternative names, and whether the header may lack it."""

    @property
    def name(self) -> str: ...

    @property
    def also(self) -> Sequence[str]:
        """Alternative names in the header row."""

    @property
    def optional(self) -> bool:
        """Whether the header row may lack the column."""


AnyColumn = TypeVar("AnyColumn", bound=HeaderColumn)


class RequestedColumn(NamedTuple):
    """The least HeaderColumn."""

    name: str
    also: Sequence[str] = ()
    optional: bool = False


def parse_header(header: bytes, delimiter: str = ",", quoted: bool = False) -> list[str]:
    """Return the names in a header row, without surrounding blanks. quoted: double quotes may enclose a name.

    If the expected delimiter is `|`, `|#` also separates names (see has_marked_names).
    """
    if delimiter == "|" and has_marked_names(header):
        header = header.replace(b"|#", b"|")
    text = header.removeprefix(BYTE_ORDER_MARK).decode("utf-8", errors="replace").strip("\r")
    fields = text.split(delimiter)
    if quoted:
        with contextlib.suppress(csv.Error):  # such as a field of more than 128 kB
            fields = next(csv.reader([text], delimiter=delimiter))
    return [name.strip() for name in fields]


def has_marked_names(header: bytes) -> bool:
    """Return whether `|#` separates the names of a header row, as in dumps of sacct whose cells may hold `|`."""
    return b"|#" in header and header.count(b"|#") == header.count(b"|")


class HeaderFit(NamedTuple, Generic[AnyColumn]):
    """How the names of a header row fit the columns of a table.

    column_by_name: known name in the header -> its column. missing: required columns that the header lacks. repeated:
    known names that occur more than once where they may not.
    """

    names: Sequence[str]
    column_by_name: dict[str, AnyColumn]
    missing: list[AnyColumn]
    repeated: list[str]

    @property
    def is_valid(self) -> bool:
        return not self.missing and not self.repeated

    def describe_problem(self, delimiter: str) -> str:
        """Return what is wrong with an invalid header row: "has no column ..."."""
        if not self.missing:
            return f"names {', '.join(self.repeated)} more than once."
        candidates = [name for name in self.names[:MOST_COMPARED] if name.isprintable() and len(name) <= LONGEST_NAME]
        matches = {column.name: closest_match(column.name, candidates) for column in self.missing[:MOST_NAMES]}
        columns = ", ".join(f"{name} (did you mean {match}?)" if match else name for name, match in matches.items())
        more = f" and {len(self.missing) - MOST_NAMES} more" if len(self.missing) > MOST_NAMES else ""
        marks = [mark for mark in DELIMITERS if len(self.names) == 1 and mark != delimiter and mark in self.names[0]]
        hint = f" It is one field: {marks[0]!r} stands where {delimiter!r} is expected." if marks else ""
        return f"has no column{'s' if len(self.missing) > 1 else ''} {columns}{more}.{hint}"


def fit_header(names: Sequence[str], columns: Sequence[AnyColumn], may_repeat: bool = False) -> HeaderFit[AnyColumn]:
    """Fit the names of a header row to the columns of a table.

    The first of several names of a column counts; the last of two columns with the same name counts.
    """
    known, column_by_name, missing = set(names), {}, []
    for column in columns:
        name = next((name for name in (column.name, *column.also) if name in known), None)
        if name is not None:
            column_by_name[name] = column
        elif not column.optional:
            missing.append(column)
    repeated = [name for name in column_by_name if not may_repeat and names.count(name) > 1]
    return HeaderFit(names, column_by_name, missing, repeated)
