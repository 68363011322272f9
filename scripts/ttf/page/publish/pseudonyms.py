"""Published copies of tables: without the names of people and machines, and harmless in a spreadsheet.

Both go by the contract of the table. A name that stands for another is an HMAC of it, so that it is the same in every
table and after every run with the same key, and nobody without the key can try names until one fits.
"""

import hashlib
import hmac
import re

import polars as pl

from ttf.engine.contract import ANYBODY, NOBODY, TEXT, Column, Table

# What a row may be of that names nobody: the values of such columns of a cluster, and requests, stay as they are.
OF_NOBODY = (
    "all batch cage clock cpu_milli cpu_request cpu_type cpus gpu_count gpu_milli gpu_request gpu_share gpu_type gpus "
    "group history hour instances job_size level machine_type mem_mib memory memory_request model month nodes outcome "
    "partition planned qos queue_s run_length runtime_s size submit_s system task tasks time_limit weekday workload "
    "years_at_start"
)
_LETTERS = 12


def pseudonym(text: str, kind: str, key: bytes) -> str:
    """user-3f9a2c51d07e, of a name or a text; kind: user, account, node ... The same name of two kinds has two."""
    digest = hmac.new(key, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest()
    return f"{kind}-{digest[:_LETTERS]}"


def pseudonymised(frame: pl.DataFrame, table: Table, key: bytes) -> pl.DataFrame:
    """A frame of this contract in which nobody is named; blanks stay blank.

    Rows stay in their order, but for those in the order of the names, which then are in that of the pseudonyms.
    """
    named = {name: column for name, column in table.columns.items() if column.kind == TEXT and column.names != NOBODY}
    frame = frame.with_columns(_column(frame, name, column, key) for name, column in named.items())
    for name in (name for name, column in named.items() if column.sorted):
        frame = _in_order(frame, table, name)
    return frame


def _in_order(frame: pl.DataFrame, table: Table, name: str) -> pl.DataFrame:
    columns = list(table.columns)
    before = [column for column in columns[: columns.index(name)] if table.columns[column].kind == TEXT]
    is_kept = pl.col(table.columns[name].by).is_in(OF_NOBODY.split())
    by = pl.when(~is_kept).then(name).fill_null("")
    return frame.sort(pl.struct(before).rle_id(), by, maintain_order=True)


def _column(frame: pl.DataFrame, name: str, column: Column, key: bytes) -> pl.Series:
    kinds = frame[column.by] if column.by else [column.of] * frame.height
    said = {row: _said(*row, column, key) for row in set(zip(frame[name], kinds, strict=True))}
    return pl.Series(name, [said[row] for row in zip(frame[name], kinds, strict=True)], dtype=pl.String)


def _said(text: str | None, kind: str | None, column: Column, key: bytes) -> str | None:
    """A cell as it is published. One that is `all` of its kind names nobody."""
    if text is None or text in ("", "all") or kind in OF_NOBODY.split():
        return text
    if column.names == ANYBODY and column.ours and re.fullmatch(column.ours, text):
        return text
    return pseudonym(text, kind or column.of, key)


# Where a spreadsheet takes a text for a formula, also behind blanks and marks that are not seen.
_FORMULA = r"^(?:[\s\p{Cf}]*[=+\-@＝＋－＠]|[\t\r\n])"


def neutral(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """The frame with an apostrophe before each text that a spreadsheet would reckon with; numbers are what they are."""
    texts = [pl.col(name) for name, column in table.columns.items() if column.kind == TEXT]
    said = (pl.when(of.str.contains(_FORMULA)).then("'" + of).otherwise(of).name.keep() for of in texts)
    return frame.with_columns(said)
