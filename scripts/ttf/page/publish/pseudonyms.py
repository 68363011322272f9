"""Published copies of tables: without names of people and machines, or prices, and safe in a spreadsheet.

The contract of a table decides which columns change. A pseudonym is an HMAC of the name: the same in every table and
run with the same key, and without the key nobody can test guesses of names.
"""

import hashlib
import hmac
import re

import polars as pl

from ttf.engine.contract import ANYBODY, NOBODY, TEXT, Column, Table
from ttf.engine.size_unit import UNITS

# Kinds whose values identify nobody, such as properties of a cluster and requests; they stay as they are. In a trace
# without GPUs gpu_count is node_count, core_count or job_count.
_KINDS = (
    "all batch cage clock cpu_milli cpu_request cpu_type cpus gpu_count gpu_milli gpu_request gpu_share gpu_type gpus "
    "group history hour instances job_size level machine_type mem_mib memory memory_request model month node_gpus "
    "nodes outcome partition planned qos queue_s run_length runtime_s size submit_s system task tasks time_limit "
    "weekday workload years_at_start"
)
ANONYMOUS_KINDS = frozenset(unit.named(kind) for kind in _KINDS.split() for unit in UNITS)
_LETTERS = 12


def make_pseudonym(text: str, kind: str, key: bytes) -> str:
    """Return the pseudonym user-3f9a2c51d07e of a name; kind: user, account, node ..., part of the hashed text."""
    digest = hmac.new(key, f"{kind}\0{text}".encode(), hashlib.sha256).hexdigest()
    return f"{kind}-{digest[:_LETTERS]}"


def pseudonymise(frame: pl.DataFrame, table: Table, key: bytes) -> pl.DataFrame:
    """Replace names by pseudonyms; blanks stay. Rows keep their order, but those sorted by name are sorted anew."""
    texts = {name: column for name, column in table.columns.items() if column.kind == TEXT and column.names != NOBODY}
    frame = frame.with_columns(_pseudonymise_column(frame, name, column, key) for name, column in texts.items())
    for name in (name for name, column in texts.items() if column.sorted):
        frame = _sort_by_pseudonym(frame, table, name)
    return frame


def hide_prices(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Blank the columns of costs, and the currency."""
    names = [name for name, column in table.columns.items() if name == "currency" or column.unit == "currency"]
    return frame.with_columns(pl.lit(None, frame.schema[name]).alias(name) for name in names)


def _sort_by_pseudonym(frame: pl.DataFrame, table: Table, name: str) -> pl.DataFrame:
    """Sort by the column `name` within equal values of the text columns before it."""
    columns = list(table.columns)
    columns_before = [column for column in columns[: columns.index(name)] if table.columns[column].kind == TEXT]
    is_anonymous = pl.col(table.columns[name].by).is_in(list(ANONYMOUS_KINDS))
    sort_key = pl.when(~is_anonymous).then(name).fill_null("")
    return frame.sort(pl.struct(columns_before).rle_id(), sort_key, maintain_order=True)


def _pseudonymise_column(frame: pl.DataFrame, name: str, column: Column, key: bytes) -> pl.Series:
    kinds = frame[column.by] if column.by else [column.name_kind] * frame.height
    text_by_cell = {row: _pseudonymise_cell(*row, column, key) for row in set(zip(frame[name], kinds, strict=True))}
    return pl.Series(name, [text_by_cell[row] for row in zip(frame[name], kinds, strict=True)], dtype=pl.String)


def _pseudonymise_cell(text: str | None, kind: str | None, column: Column, key: bytes) -> str | None:
    if text is None or text in ("", "all") or kind in ANONYMOUS_KINDS:
        return text
    if column.names == ANYBODY and column.public_pattern and re.fullmatch(column.public_pattern, text):
        return text
    return make_pseudonym(text, kind or column.name_kind, key)


# Texts that a spreadsheet evaluates as a formula, also after blanks and invisible characters.
_FORMULA = r"^(?:[\s\p{Cf}]*[=+\-@＝＋－＠]|[\t\r\n])"


def escape_formulas(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Put an apostrophe before each text that a spreadsheet would evaluate; numbers stay."""
    texts = [pl.col(name) for name, column in table.columns.items() if column.kind == TEXT]
    return frame.with_columns(
        pl.when(text.str.contains(_FORMULA)).then("'" + text).otherwise(text).name.keep() for text in texts
    )
