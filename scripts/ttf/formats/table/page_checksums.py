"""Check the checksums of the pages of a Parquet file, which Polars ignores.

A page's header may hold the CRC-32 of the page. parquet-java (Spark, Hive) writes it; Polars and DuckDB do not. This
project has its own check, because pyarrow is a large library that it does not need otherwise.
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
# A damaged header must not fill the memory; a valid one has some hundred bytes.
_MAX_HEADER_BYTES = 1 << 20
# Errors that parsing invalid bytes may raise.
_PARSE_ERRORS = (IndexError, KeyError, TypeError, ValueError, RecursionError)


def find_damaged_column(path: Path, columns: Collection[str]) -> str | None:
    """Return the first of these columns with a damaged page, or None.

    A page is damaged if it does not match its checksum, or if its header is invalid: Polars might then allocate all
    memory. A page without a checksum is accepted. Raises OSError if the file's footer cannot be read.
    """
    with path.open("rb") as file:
        end = file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        try:
            for group in _ThriftReader(_read_content(file, end - length, length)).read_struct()[_ROW_GROUPS]:
                for metadata in (chunk[_META_DATA] for chunk in group[_COLUMNS]):
                    name = metadata[_PATH][0].decode()
                    start = min(
                        metadata[_FIRST_DATA_PAGE], metadata.get(_DICTIONARY_PAGE) or metadata[_FIRST_DATA_PAGE]
                    )
                    if name in columns and not _is_valid_chunk(
                        _read_content(file, start, metadata[_CHUNK_BYTES]), metadata[_CHUNK_VALUES]
                    ):
                        return name
        except _PARSE_ERRORS:
            raise OSError("its footer cannot be read") from None
    return None


def _read_content(file: BinaryIO, start: int, length: int) -> memoryview:
    file.seek(start)
    return memoryview(file.read(length))


def _is_valid_chunk(pages: memoryview, values: int) -> bool:
    """Return whether the pages of a chunk with this number of values match their headers."""
    try:
        while pages:
            thrift = _ThriftReader(pages[:_MAX_HEADER_BYTES])
            header = thrift.read_struct()
            page = pages[thrift.position : thrift.position + header[_PAGE_BYTES]]
            # A nested structure has the header of the kind of page.
            counts = [kind[_PAGE_VALUES] for kind in header.values() if isinstance(kind, dict)]
            if len(page) != header[_PAGE_BYTES] or not all(0 <= count <= values for count in counts):
                return False
            if _CRC in header and zlib.crc32(page) != header[_CRC] % 2**32:
                return False
            pages = pages[thrift.position + len(page) :]
    except _PARSE_ERRORS:
        return False
    return True


class _ThriftReader:
    """Read values in Thrift's compact protocol."""

    def __init__(self, content: memoryview) -> None:
        self.content, self.position = content, 0

    def read_struct(self) -> dict:
        """Return field number -> value."""
        fields, number = {}, 0
        while header := self._read_byte():
            number = number + (header >> 4) if header >> 4 else self._read_zigzag_varint()
            # The type of a boolean is its value.
            fields[number] = header & 15 == 1 if header & 15 in (1, 2) else self._read_value(header & 15)
        return fields

    def _read_value(self, kind: int):
        if kind in (1, 2, 3):
            return self._read_byte()
        if kind in (4, 5, 6):
            return self._read_zigzag_varint()
        if kind == 7:
            return self._read_bytes(8)
        if kind == 8:
            return self._read_bytes(self._read_varint())
        if kind in (9, 10):
            header = self._read_byte()
            return [
                self._read_value(header & 15) for _ in range(self._read_varint() if header >> 4 == 15 else header >> 4)
            ]
        if kind == 12:
            return self.read_struct()
        raise IndexError(kind)  # no structure of Parquet has a map

    def _read_byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def _read_bytes(self, length: int) -> bytes:
        self.position += length
        return bytes(self.content[self.position - length : self.position])

    def _read_varint(self) -> int:
        number = shift = 0
        while (byte := self._read_byte()) & 128:
            number, shift = number | (byte & 127) << shift, shift + 7
        return number | byte << shift

    def _read_zigzag_varint(self) -> int:
        number = self._read_varint()
        return number >> 1 ^ -(number & 1)
