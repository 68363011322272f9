"""Unpack an embedded sample: a JSON file with raw tables stored by column (workflow/samples/README.md).

It is text, because a workflow that fetches this one through git may damage a binary file. Columns compress to half the
size of rows. Identifiers look random and do not compress, so they are numbers that a one-to-one function scrambles.
"""

import base64
import bz2
import hashlib
import json
from pathlib import Path

import numpy as np
import polars as pl

from ttf.engine.errors import StudyError

_BASE85_DIGITS = np.zeros(256, dtype=np.int64)
_BASE85_DIGITS[[base64.b85encode(digit.to_bytes(4))[-1] for digit in range(85)]] = np.arange(85)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HEX_PAIRS = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint16)


def unpack_sample(packed: Path, sha256: str, folder: Path) -> int:
    """Write the raw tables of a sample into `folder`; return their number. Raises StudyError for another SHA-256."""
    content = packed.read_bytes()
    actual = hashlib.sha256(content).hexdigest()
    if actual != sha256:
        raise StudyError(
            f"{packed}: the SHA-256 is {actual}; expected {sha256}. The file was edited or truncated: "
            "restore it, in a checkout with git restore workflow/samples."
        )
    tables = json.loads(content)
    for name, table in tables.items():
        text = table_text(table)
        if hashlib.sha256(text).hexdigest() != table["sha256"]:
            raise StudyError(f"{packed}: {name} does not unpack to the bytes that were packed.")
        (folder / name).write_bytes(text)
    return len(tables)


def table_text(table: dict) -> bytes:
    """Return the bytes of a raw table: its first line, then its columns."""
    columns = [unpack_column(column).alias(str(number)) for number, column in enumerate(table["columns"])]
    separator = table["separator"] or ","  # a table of one column has none
    rows = pl.DataFrame(columns).write_csv(include_header=False, separator=separator, quote_style="never")
    return f"{table['first_line']}\n{rows}".encode()


def unpack_column(column: dict) -> pl.Series:
    """Return the values of a column below the first line.

    The column is packed as text, or as whole numbers: the lowest byte of all rows, then the next byte. The smallest
    numbers are indices into `words`; `restore_numbers` decodes the others.
    """
    content = bz2.decompress(decode_base85(column["packed"]))
    if column["kind"] == "text":
        return pl.Series(content.decode().split("\n"))
    digits = np.frombuffer(content, dtype=np.uint8).reshape(column["width"], -1).astype(np.int64)
    codes = np.sum(digits << (8 * np.arange(column["width"]))[:, None], axis=0)
    words = pl.Series(column["words"], dtype=pl.String)
    is_number = codes >= words.len()
    numbers = restore_numbers(codes[is_number] - words.len(), column)
    if is_number.all():
        return numbers
    # The index of each value in the concatenation of all words and all numbers.
    row_indices = np.where(is_number, words.len() + np.cumsum(is_number) - 1, codes)
    return pl.concat([words, numbers.cast(pl.String)]).gather(row_indices)


def decode_base85(text: str) -> bytes:
    """Decode as base64.b85decode does, but 0.25 s faster for a sample."""
    digits = _BASE85_DIGITS[np.frombuffer(text.encode() + b"~" * (-len(text) % 5), dtype=np.uint8)].reshape(-1, 5)
    numbers = digits @ 85 ** np.arange(4, -1, -1)
    return numbers.astype(">u4").tobytes()[: len(text) * 4 // 5]


def restore_numbers(numbers: np.ndarray, column: dict) -> pl.Series:
    """Restore the values of a column: identifiers, whole numbers, or decimals if it has a divisor.

    With `differences`, the numbers are zigzag-encoded differences to the row above (2d, or -2d - 1 if d < 0).
    """
    if column["differences"]:
        numbers = np.cumsum((numbers >> 1) ^ -(numbers & 1))
    if column["kind"] == "ids":
        return pl.Series(hex_identifiers(column["salt"], numbers, column["digits"]).astype(str))
    divisor = column["divisor"]
    return pl.Series(numbers / divisor if divisor else numbers)


def hex_identifiers(salt: int, numbers: np.ndarray, digits: int) -> np.ndarray:
    """Return a hexadecimal identifier for each number, as bytes; identifiers of 16 digits or more are unique."""
    words = -(-digits // 16)
    counters = numbers.astype(np.uint64)[:, None] * np.uint64(words) + np.arange(words, dtype=np.uint64)
    raw = scramble(counters + np.uint64(salt)).astype(">u8").view(np.uint8)
    return _HEX_PAIRS[raw[:, : digits // 2]].view(f"S{digits}").reshape(-1)


def scramble(numbers: np.ndarray) -> np.ndarray:
    """Scramble 64-bit numbers one-to-one (SplitMix64)."""
    z = numbers * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
