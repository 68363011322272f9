"""Pack the raw tables of a sample into one JSON file, always the same bytes; ttf.raw.packed_samples unpacks it.

bzip2 compresses the columns as well as LZMA does, and every version of its library writes the same bytes.
"""

import base64
import bz2
import hashlib
import importlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from ttf.formats.format_declaration import load_declaration
from ttf.raw.packed_samples import hex_identifiers, table_text

from samples.draws import id_salt
from samples.pai2020.sample_tables import DIGITS

SEPARATORS = (",", "|")
# For numbers with one to three decimals; 0: whole numbers without a decimal point.
DIVISORS = (0, 1, 10, 100, 1000)
NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,3})?")
MOST_WORDS = 200
# Format -> size and seed of its embedded sample.
EMBEDDED = {"pai2020": (20_000, 2020), "philly": (3_000, 2017), "sacct": (4_000, 2025)}
# An upper limit of instances per task, for the numbers of identifiers; the mean is 6.
INSTANCES_A_TASK = 8


def write_tables(name: str, size: int, seed: int, folder: Path) -> dict[str, int]:
    """Write the raw tables of a synthetic trace in this format; return the number of rows by table."""
    return importlib.import_module(f"samples.{name}.sample").write_sample(folder, size, seed)


def packed_sample(name: str, size: int, seed: int) -> str:
    """Return the content of the packed file of a synthetic trace."""
    files = load_declaration(name)["sample"]["files"].values()
    names = [name for names in files for name in ([names] if isinstance(names, str) else names)]
    ids = Identifiers(seed, DIGITS, INSTANCES_A_TASK * size) if name == "pai2020" else None
    with tempfile.TemporaryDirectory() as folder:
        write_tables(name, size, seed, Path(folder))
        return pack_tables(Path(folder), names, ids)


class Identifiers:
    """Numbers by identifier for a sample of this seed; digits: length by kind; largest: the largest number."""

    def __init__(self, seed: int, digits: dict[int, int], largest: int) -> None:
        self.numbers = {}
        for kind, length in digits.items():
            salt = id_salt(seed, kind)
            texts = hex_identifiers(salt, np.arange(largest + 1), length).astype(str).tolist()
            self.numbers[salt, length] = dict(zip(texts, range(largest + 1), strict=True))

    def forms(self, values: Sequence[str]) -> Iterator[dict]:
        """Yield the column as numbers of the kind of identifier that most of its values have."""
        for (salt, digits), numbers in self.numbers.items():
            if 2 * sum(value in numbers for value in values) > sum(value != "" for value in values):
                column = {"kind": "ids", "salt": salt, "digits": digits}
                yield from number_forms(column, values, [numbers.get(value) for value in values])


def pack_tables(folder: Path, names: Sequence[str], ids: Identifiers | None = None) -> str:
    """Return the content of the packed file of these raw tables in the folder."""
    packed = {name: pack_table((folder / name).read_bytes(), ids) for name in names}
    return json.dumps(packed, indent=0) + "\n"


def pack_table(text: bytes, ids: Identifiers | None = None) -> dict:
    """Pack a raw table whose lines all end with a line break."""
    first_line, *lines = text.decode().removesuffix("\n").split("\n")
    separator = next((mark for mark in SEPARATORS if len({line.count(mark) for line in lines}) == 1), "")
    rows = [line.split(separator) for line in lines] if separator else [[line] for line in lines]
    columns = [pack_column(values, ids) for values in zip(*rows, strict=True)]
    digest = hashlib.sha256(text).hexdigest()
    table = {"sha256": digest, "separator": separator, "first_line": first_line, "columns": columns}
    if table_text(table) != text:
        raise ValueError("a table does not unpack to its own bytes")
    return table


def pack_column(values: Sequence[str], ids: Identifiers | None) -> dict:
    """Pack a column in the shortest possible form."""
    forms = [{"kind": "text", "packed": bz2.compress("\n".join(values).encode())}]
    for divisor in DIVISORS:
        column = {"kind": "numbers", "divisor": divisor}
        forms += number_forms(column, values, [encode_number(value, divisor) for value in values])
    forms += ids.forms(values) if ids else ()
    shortest = min(forms, key=lambda form: len(form["packed"]))
    return shortest | {"packed": base64.b85encode(shortest["packed"]).decode()}


def encode_number(value: str, divisor: int) -> int | None:
    """Return the number that encodes a value in a column with this divisor; None if there is none."""
    if not NUMBER.fullmatch(value):
        return None
    number = round(float(value) * divisor) if divisor else int(value) if value.isdecimal() else -1
    return number if value == (repr(number / divisor) if divisor else str(number)) else None


def number_forms(column: dict, values: Sequence[str], numbers: Sequence[int | None]) -> Iterator[dict]:
    """Yield the column as numbers, plain and as differences; values without a number become words."""
    words = sorted({value for value, number in zip(values, numbers, strict=True) if number is None})
    plain = np.array([number for number in numbers if number is not None], dtype=np.int64)
    if len(words) > MOST_WORDS or not len(plain):
        return
    codes_by_word = {word: code for code, word in enumerate(words)}
    steps = np.diff(plain, prepend=0)
    for differences, written in ((False, plain), (True, (steps << 1) ^ (steps >> 63))):
        following = iter((written + len(words)).tolist())
        pairs = zip(values, numbers, strict=True)
        codes = np.array([codes_by_word[value] if number is None else next(following) for value, number in pairs])
        width = max(1, (int(codes.max()).bit_length() + 7) // 8)
        planes = codes.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()
        yield column | {"words": words, "width": width, "differences": differences, "packed": bz2.compress(planes)}
