"""Contract of a table: the name, content and meaning of each of its columns, in one place.

It serves typed reading, a check when the table is written, the headings of the report, the data dictionary, and the
check of claims and charts when a study is loaded. The workflow loads every declaration at each start, so this module
imports Polars only when a frame exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from ttf.engine.errors import StudyError
from ttf.engine.size_unit import SizeUnit

if TYPE_CHECKING:
    import polars as pl

# A cell is blank if the row's own column `reason` explains it.
REASON = "the column reason says why"
TEXT, TRUTH, WHOLE, REAL, ROW = "text", "truth value", "whole number", "number", "row number"
# Whom a text may name (ttf.page.publish.pseudonyms): nobody, as in the project's words and a cluster's names of parts
# and states; a user, an account or a node; or anybody, as in free text.
NOBODY, SOMEBODY, ANYBODY = "nobody", "somebody", "anybody"
# What tables count; sentences must not mix them.
THINGS = ("durations", "jobs", "units", "attempts", "runs", "outages", "faults", "records", "repairs", "nodes")
_DTYPES = {TEXT: "String", TRUTH: "Boolean", WHOLE: "Int64", REAL: "Float64", ROW: "UInt32"}


@dataclass(frozen=True)
class Column:
    """kind: TEXT, TRUTH, WHOLE, REAL or ROW. heading: on the page. description: its meaning. unit: "" for none.

    blank: why a cell may be blank, REASON if the row explains it, None if no cell may be. n: column of the row with the
    number of observations behind the cell. For a text, names: NOBODY, SOMEBODY or ANYBODY; name_kind: whom, such as
    "user"; by: column with that kind for each row; public_pattern: pattern of texts that name nobody; sorted: whether
    rows with equal preceding texts are in the order of the names, which reveals something about them.
    """

    kind: str
    heading: str
    description: str
    blank: str | None = None
    unit: str = ""
    n: str = ""
    _: KW_ONLY
    names: str = ANYBODY
    name_kind: str = "text"
    by: str = ""
    public_pattern: str = ""
    sorted: bool = False

    @property
    def types(self) -> str:
        """Return what computing and drawing depend on: kind, unit, and whether a reason explains blanks."""
        return f"{self.kind}:{self.unit}:{self.blank == REASON}"

    def in_unit(self, unit: SizeUnit) -> Column:
        """Return the column of a trace whose sizes are in this unit."""
        heading, description = unit.worded(self.heading), unit.worded(self.description)
        return replace(self, unit=unit.named(self.unit), heading=heading, description=description)


def _declare(kind: str, **fields: str) -> Callable[..., Column]:
    """Return a function of heading, description, blank, unit and n that declares a column of this kind."""
    return partial(Column, kind, **fields)  # type: ignore[arg-type]


count, number = _declare(WHOLE), _declare(REAL)
whole_seconds, seconds = _declare(WHOLE, unit="s"), _declare(REAL, unit="s")
# A number from 0 to 1.
share = _declare(REAL, unit="share")
# `row_number`: the index of a row in another product, from 0 on, as Polars counts rows.
truth, row_number = _declare(TRUTH), _declare(ROW)
# A text that may name anybody: only values that match `public_pattern` as a whole are published.
text = _declare(TEXT)
# Words of the project, or a cluster's names of partitions, states and parts: they name nobody.
words = _declare(TEXT, names=NOBODY)
# A name of a user, an account or a node, as `name_kind` or the column `by` says.
name = _declare(TEXT, names=SOMEBODY, name_kind="name")


def reason(description: str = "Why cells are blank.") -> Column:
    return words("Reason", description, blank="no cell needs a reason")


def make_schema(columns: Mapping[str, Column]) -> dict[str, type[pl.DataType]]:
    """Return column -> its Polars type."""
    import polars as pl

    return {name: getattr(pl, _DTYPES[column.kind]) for name, column in columns.items()}


def make_frame(columns: Mapping[str, Column], rows: Iterable[Mapping]) -> pl.DataFrame:
    """Return the rows as a frame of these columns; missing values are blank, extra values are dropped."""
    import polars as pl

    return pl.DataFrame([{name: row.get(name) for name in columns} for row in rows], schema=make_schema(columns))


@dataclass(frozen=True)
class Table:
    """A product with rows and columns. description: what a row is. path: under the folder of its trace.

    open: a Parquet file with further columns by the trace's format, which may stand between those here. counted: what
    the shares and rates of a row count, if the units of its counts do not show it. is_in_gpus: always in GPUs.
    """

    name: str
    description: str
    path: str
    columns: Mapping[str, Column] = field(hash=False)
    open: bool = False
    counted: str = ""
    is_in_gpus: bool = False

    @property
    def counts(self) -> str:
        """Return what the rows count: `counted` if declared, else the unit of n or of the first column in THINGS."""
        units = [self.columns[name].unit for name in sorted(self.columns, key=lambda name: name != "n")]
        return self.counted or next((unit for unit in units if unit in THINGS), "")

    @property
    def schema(self) -> dict[str, type[pl.DataType]]:
        """Return column -> its Polars type."""
        return make_schema(self.columns)

    def names_in(self, unit: SizeUnit) -> dict[str, str]:
        """Return column -> its name in the file of a trace whose sizes are in this unit.

        Two columns may share a name: with nodes as the unit, columns of GPUs and of nodes are equal.
        """
        if self.is_in_gpus:
            return dict(zip(self.columns, self.columns, strict=True))
        return {name: name if name.startswith("node_gpus") else unit.named(name) for name in self.columns}

    def in_unit(self, unit: SizeUnit) -> Table:
        """Return the contract of the file of a trace whose sizes are in this unit."""
        if self.is_in_gpus:
            return self
        names = self.names_in(unit).items()
        columns = {
            file_name: self.columns[name].in_unit(unit)
            for name, file_name in names
            if name == file_name or file_name not in self.columns
        }
        return replace(self, description=unit.worded(self.description), columns=columns)

    @property
    def types(self) -> str:
        """Return all that computing and drawing depend on: no headings and no sentences."""
        return f"{self.path} {_format_types(self.columns)}{' ...' if self.open else ''}"

    def frame(self, rows: Iterable[Mapping]) -> pl.DataFrame:
        """Return the rows as a table of this contract; missing values are blank, extra values are dropped."""
        return make_frame(self.columns, rows)

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the columns of this contract from a frame, with their types and in their order."""
        return frame.select(frame[name].cast(dtype) for name, dtype in self.schema.items())

    def check(self, frame: pl.DataFrame) -> None:
        """Raise StudyError, with table, column and rule, for a frame that breaks the contract."""
        columns = [name for name in frame.columns if name in self.columns or not self.open]
        if columns != list(self.columns):
            missing, extra = set(self.columns) - set(columns), set(columns) - set(self.columns)
            parts = (("no", missing), ("also", extra))
            problems = [f"{word} {', '.join(sorted(names))}" for word, names in parts if names]
            raise StudyError(f"table {self.name}: {'; '.join(problems) or 'another order'}, unlike its declaration")
        for name, column in self.columns.items():
            if problem := self._find_problem(frame, name, column):
                raise StudyError(f"table {self.name}, column {name}: {problem}")
            self.check_blanks({name: frame[name].null_count()})

    def check_blanks(self, blanks: Mapping[str, int]) -> None:
        """Raise StudyError if a column that is never blank has blanks. blanks: column -> number of blank rows."""
        for name, rows in blanks.items():
            if rows and self.columns[name].blank is None:
                raise StudyError(f"table {self.name}, column {name}: blank in {rows:,} rows, but declared never blank")

    def _find_problem(self, frame: pl.DataFrame, name: str, column: Column) -> str | None:
        values, dtype = frame[name], self.schema[name]
        if values.dtype != dtype:
            return f"is declared as {column.kind} ({dtype}), but is {values.dtype}"
        if column.kind == REAL and not values.drop_nulls().is_finite().all():
            return "contains NaN or infinity; a value that cannot be computed must be blank, with a reason"
        if column.blank == REASON and (unexplained := (values.is_null() & frame["reason"].is_null()).sum()):
            return f"blank in {unexplained:,} rows whose reason is blank too"
        return None


def list_types(module: ModuleType) -> str:
    """Return as text what computing and drawing use of a module of contracts: types of tables, columns, constants."""
    types_by_name = {name: _format_types(value) for name, value in vars(module).items() if not name.startswith("_")}
    return "\n".join(f"{name} {types}" for name, types in types_by_name.items() if types)


def _format_types(value: object) -> str:
    """Return the types of a column or table, or a mapping of them, or a constant; empty for any other object."""
    if isinstance(value, Column | Table):
        return value.types
    if isinstance(value, Mapping):
        return " ".join(f"{name}:{_format_types(part)}" for name, part in value.items())
    return repr(value) if isinstance(value, str | int | float | tuple) else ""


def table(name: str, description: str, counted: str = "", /, **columns: Column) -> Table:
    """Declare a CSV under tables/; its last column is `reason`, if a cell may be blank for a REASON."""
    if "reason" not in columns and any(column.blank == REASON for column in columns.values()):
        columns["reason"] = reason()
    return Table(name, description, f"tables/{name}.csv", columns, counted=counted)


def parquet(name: str, description: str, path: str, /, *, open: bool = False, **columns: Column) -> Table:
    """Declare a Parquet file, such as one with a row per job."""
    return Table(name, description, path, columns, open)
