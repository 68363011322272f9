"""Checksums of the pages of a Parquet file, which Polars reads past.

A page's header may hold the CRC-32 of the page. parquet-java (Spark, Hive) writes it, Polars and DuckDB do not. Our
own, as pyarrow, which checks it, is a large library that nothing else here needs.
"""

import os
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

# Field numbers of parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_PATH, _CHUNK_VALUES, _CHUNK_BYTES, _FIRST_DATA_PAGE, _DICTIONARY_PAGE = 3, 5, 7, 9, 11
_PAGE_BYTES, _CRC, _PAGE_VALUES = 3, 4, 1
# A damaged header must not fill the memory; a sound one has some hundred bytes.
_LONGEST_HEADER = 1 << 20
# What reading a structure that is none may raise.
_UNREADABLE = (IndexError, KeyError, TypeError, ValueError, RecursionError)


def damaged_column(path: Path, columns: Collection[str]) -> str | None:
    """Return the first of these columns with a damaged page; None where there is none.

    A page is damaged if its checksum belies it, or if its header cannot be right: Polars would ask for all the memory
    there is. A page without a checksum is taken as it is. Raises OSError where the file's footer cannot be read.
    """
    with path.open("rb") as file:
        end = file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        try:
            for group in _Thrift(_content(file, end - length, length)).struct()[_ROW_GROUPS]:
                for about in (chunk[_META_DATA] for chunk in group[_COLUMNS]):
                    name = about[_PATH][0].decode()
                    start = min(about[_FIRST_DATA_PAGE], about.get(_DICTIONARY_PAGE) or about[_FIRST_DATA_PAGE])
                    if name in columns and not _is_sound(
                        _content(file, start, about[_CHUNK_BYTES]), about[_CHUNK_VALUES]
                    ):
                        return name
        except _UNREADABLE:
            raise OSError("its footer cannot be read") from None
    return None


def _content(file: BinaryIO, start: int, length: int) -> memoryview:
    file.seek(start)
    return memoryview(file.read(length))


def _is_sound(pages: memoryview, values: int) -> bool:
    """Whether the pages of a chunk of so many values agree with their headers."""
    try:
        while pages:
            thrift = _Thrift(pages[:_LONGEST_HEADER])
            header = thrift.struct()
            page = pages[thrift.at : thrift.at + header[_PAGE_BYTES]]
            # The header of the page's own kind is a structure within.
            counts = [kind[_PAGE_VALUES] for kind in header.values() if isinstance(kind, dict)]
            if len(page) != header[_PAGE_BYTES] or not all(0 <= count <= values for count in counts):
                return False
            if _CRC in header and zlib.crc32(page) != header[_CRC] % 2**32:
                return False
            pages = pages[thrift.at + len(page) :]
    except _UNREADABLE:
        return False
    return True


class _Thrift:
    """Values in Thrift's compact protocol."""

    def __init__(self, content: memoryview):
        self.content, self.at = content, 0

    def struct(self) -> dict:
        """Field number -> value."""
        fields, number = {}, 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            # A boolean's value is its type.
            fields[number] = head & 15 == 1 if head & 15 in (1, 2) else self._value(head & 15)
        return fields

    def _value(self, kind: int):
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):
            head = self._byte()
            return [self._value(head & 15) for _ in range(self._unsigned() if head >> 4 == 15 else head >> 4)]
        if kind == 12:
            return self.struct()
        raise IndexError(kind)  # no structure of Parquet has a map

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, length: int) -> bytes:
        self.at += length
        return bytes(self.content[self.at - length : self.at])

    def _unsigned(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 128:
            number, shift = number | (byte & 127) << shift, shift + 7
        return number | byte << shift

    def _signed(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)
