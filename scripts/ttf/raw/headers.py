"""Read the header row of a raw table and find the columns that it lacks.

Ingest uses the same rules. This module works without Polars, so that a wrong header is reported before the first job.
"""

import contextlib
import csv
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Delimiters to look for if a header row lacks the expected one.
DELIMITERS = ",;\t|"


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


def match_columns(names: Iterable[str], columns: Sequence[AnyColumn]) -> tuple[dict[str, AnyColumn], list[AnyColumn]]:
    """Map each known name in the header to its column; also return the required columns that the header lacks.

    The first of several names of a column counts; the last of two columns with the same name counts.
    """
    names = set(names)
    column_by_word, missing = {}, []
    for column in columns:
        word = next((word for word in (column.name, *column.also) if word in names), None)
        if word is not None:
            column_by_word[word] = column
        elif not column.optional:
            missing.append(column)
    return column_by_word, missing
