"""The header row of a raw table: the names in it, and which columns of the table it lacks.

The rule of ingest, apart from it and without Polars, so that a wrong header can be told before the first job.
"""

import contextlib
import csv
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What may stand between the names of a header row in place of the delimiter that is expected.
DELIMITERS = ",;\t|"


class Named(Protocol):
    """A column as its header row is looked through: its word, other words for it, and whether it may be left out."""

    @property
    def name(self) -> str: ...

    @property
    def also(self) -> Sequence[str]: ...

    @property
    def optional(self) -> bool: ...


class Wanted(NamedTuple):
    """No more of a column than its header row is looked through for."""

    name: str
    also: Sequence[str] = ()
    optional: bool = False


def names_of(header: bytes, delimiter: str = ",", quoted: bool = False) -> list[str]:
    """The names in a header row, without blanks around them; quoted: they may stand in double quotes.

    Of a delimiter `|#` (see has_marked_names) both signs stand between names, where `|` is expected.
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
    """Whether `|#` stands between the names of a header row, as in dumps of sacct in which `|` may stand in a cell."""
    return b"|#" in header and header.count(b"|#") == header.count(b"|")


def found_and_missing(names: Iterable[str], columns: Sequence[Named]) -> tuple[dict[str, Named], list[Named]]:
    """Name in the header -> its column; and the columns that the header must have and has not.

    Of several words for a column the first one counts; of two columns for one word the last.
    """
    names = set(names)
    found, missing = {}, []
    for column in columns:
        word = next((word for word in (column.name, *column.also) if word in names), None)
        if word is not None:
            found[word] = column
        elif not column.optional:
            missing.append(column)
    return found, missing
