"""The contract of a table: what each of its columns is called, holds and means, in one place.

It serves typed reading, a check when the table is written, the headings of the report, the data dictionary, and the
check of claims and charts when a study is loaded. The workflow loads every declaration at each start, so that nothing
here imports Polars before a frame is at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

from ttf.engine.errors import StudyError
from ttf.engine.size_unit import SizeUnit

if TYPE_CHECKING:
    import polars as pl

# Blank where the row's own column `reason` says why.
REASON = "the column reason says why"
TEXT, TRUTH, WHOLE, REAL, ROW = "text", "truth value", "whole number", "number", "row number"
# What a text may name (ttf.page.publish.pseudonyms): nobody, as in our own words and those of a cluster for its parts
# and states; a user, an account or a node; or anybody, as in what people wrote.
NOBODY, SOMEBODY, ANYBODY = "nobody", "somebody", "anybody"
# What tables count, which sentences must not exchange for each other.
THINGS = ("lives", "jobs", "units", "attempts", "runs", "outages", "faults", "records", "repairs", "nodes")
_DTYPES = {TEXT: "String", TRUTH: "Boolean", WHOLE: "Int64", REAL: "Float64", ROW: "UInt32"}


@dataclass(frozen=True)
class Column:
    """kind: TEXT, TRUTH, WHOLE, REAL or ROW; unit: "" for none; heading: on the page; about: a plain sentence.

    blank: why a cell may be blank, REASON where the row says it, None where no cell may be. n: the column of the row
    that says from how many the cell is computed. Of a text, names: NOBODY, SOMEBODY or ANYBODY; of: whom, "user"; by:
    the column that says it of each row; ours: a pattern of texts that name nobody; sorted: as of `name`.
    """

    kind: str
    unit: str
    heading: str
    about: str
    blank: str | None = None
    names: str = ANYBODY
    of: str = "text"
    by: str = ""
    ours: str = ""
    sorted: bool = False
    n: str = ""

    @property
    def types(self) -> str:
        return f"{self.kind}:{self.unit}:{self.blank == REASON}"

    def in_unit(self, unit: SizeUnit) -> Column:
        """The column of a trace whose sizes are told in this unit."""
        words = {name: unit.worded(getattr(self, name)) for name in ("heading", "about")}
        return replace(self, unit=unit.named(self.unit), **words)


def text(heading: str, about: str, blank: str | None = None, ours: str = "") -> Column:
    """Text that may name anybody: it is never published, but for what matches `ours` as a whole."""
    return Column(TEXT, "", heading, about, blank, ANYBODY, ours=ours)


def words(heading: str, about: str, blank: str | None = None, n: str = "") -> Column:
    """Words of ours, or of a cluster for its partitions, states and parts: they name nobody."""
    return Column(TEXT, "", heading, about, blank, NOBODY, n=n)


def name(
    heading: str, about: str, blank: str | None = None, of: str = "name", by: str = "", sorted: bool = False
) -> Column:
    """A name. of: of whom, a user, an account or a node; by: the column of the table that says it of each row.

    sorted: rows that are alike in the texts before it stand in the order of the names, which tells of them too.
    """
    return Column(TEXT, "", heading, about, blank, SOMEBODY, of, by, sorted=sorted)


def truth(heading: str, about: str, blank: str | None = None) -> Column:
    return Column(TRUTH, "", heading, about, blank)


def count(heading: str, about: str, blank: str | None = None, unit: str = "", n: str = "") -> Column:
    """A whole number of things."""
    return Column(WHOLE, unit, heading, about, blank, n=n)


def row_number(heading: str, about: str, blank: str | None = None) -> Column:
    """The place of a row in another product, from 0 on, as Polars counts rows."""
    return Column(ROW, "", heading, about, blank)


def whole_seconds(heading: str, about: str, blank: str | None = None, n: str = "") -> Column:
    return Column(WHOLE, "s", heading, about, blank, n=n)


def seconds(heading: str, about: str, blank: str | None = None, n: str = "") -> Column:
    return Column(REAL, "s", heading, about, blank, n=n)


def share(heading: str, about: str, blank: str | None = None, n: str = "") -> Column:
    """A number from 0 to 1."""
    return Column(REAL, "share", heading, about, blank, n=n)


def number(heading: str, about: str, blank: str | None = None, unit: str = "", n: str = "") -> Column:
    return Column(REAL, unit, heading, about, blank, n=n)


def reason(about: str = "Why cells of the row are blank.") -> Column:
    return words("Reason", about, blank="nothing is amiss")


def schema_of(columns: Mapping[str, Column]) -> dict[str, pl.DataType]:
    """Column -> the type that Polars has for it."""
    import polars as pl

    return {name: getattr(pl, _DTYPES[column.kind]) for name, column in columns.items()}


def frame_of(columns: Mapping[str, Column], rows: Iterable[Mapping]) -> pl.DataFrame:
    """The rows as a frame of these columns; what a row does not have is blank, what the columns lack left out."""
    import polars as pl

    return pl.DataFrame([{name: row.get(name) for name in columns} for row in rows], schema=schema_of(columns))


@dataclass(frozen=True)
class Table:
    """A product with rows and columns. about: what a row is; path: under the folder of its trace.

    open: a Parquet file of which a trace's format decides the further columns; they may stand between those here.
    counted: what the shares and rates of a row are of, where its counts do not say it by their units.
    of_gpus: GPUs are meant, in whatever unit the sizes of the trace's jobs are told.
    """

    name: str
    about: str
    path: str
    columns: Mapping[str, Column] = field(hash=False)
    open: bool = False
    counted: str = ""
    of_gpus: bool = False

    @property
    def counts(self) -> str:
        """What a row counts, one of THINGS: the unit of its n, else of its first count. Sentences take their noun from
        here; "" where the table counts none."""
        units = [self.columns[name].unit for name in sorted(self.columns, key=lambda name: name != "n")]
        return self.counted or next((unit for unit in units if unit in THINGS), "")

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Column -> the type that Polars has for it."""
        return schema_of(self.columns)

    def names_in(self, unit: SizeUnit) -> dict[str, str]:
        """Column -> its name in the file of a trace whose sizes are told in this unit.

        Two may have one name: what the contract has of GPUs and of nodes is the same where the unit is nodes.
        """
        if self.of_gpus:
            return dict(zip(self.columns, self.columns, strict=True))
        return {name: name if name.startswith("node_gpus") else unit.named(name) for name in self.columns}

    def in_unit(self, unit: SizeUnit) -> Table:
        """The contract of that file."""
        if self.of_gpus:
            return self
        names = self.names_in(unit).items()
        columns = {
            there: self.columns[name].in_unit(unit)
            for name, there in names
            if name == there or there not in self.columns
        }
        return replace(self, about=unit.worded(self.about), columns=columns)

    @property
    def types(self) -> str:
        """All that computing and drawing depend on: no heading and no sentence."""
        return f"{self.path} {_types(self.columns)}{' ...' if self.open else ''}"

    def frame(self, rows: Iterable[Mapping]) -> pl.DataFrame:
        """The rows as a table of this contract; what a row does not have is blank, what the contract lacks left out."""
        return frame_of(self.columns, rows)

    def typed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The columns of this contract out of a frame that has them, with their types and in their order."""
        return frame.select(frame[name].cast(dtype) for name, dtype in self.schema.items())

    def check(self, frame: pl.DataFrame) -> None:
        """Raises StudyError, with table, column and rule, for a frame that breaks the contract."""
        columns = [name for name in frame.columns if name in self.columns or not self.open]
        if columns != list(self.columns):
            missing, more = set(self.columns) - set(columns), set(columns) - set(self.columns)
            said = [f"{what} {', '.join(sorted(names))}" for what, names in (("no", missing), ("also", more)) if names]
            raise StudyError(f"table {self.name}: {'; '.join(said) or 'another order'} than its declaration says")
        for name, column in self.columns.items():
            if problem := self._problem(frame, name, column):
                raise StudyError(f"table {self.name}, column {name}: {problem}")
            self.check_blanks({name: frame[name].null_count()})

    def check_blanks(self, blanks: Mapping[str, int]) -> None:
        """Raises StudyError where a column that is never to be blank has blanks. blanks: column -> how many."""
        for name, rows in blanks.items():
            if rows and self.columns[name].blank is None:
                raise StudyError(f"table {self.name}, column {name}: blank in {rows:,} rows, and declared never blank")

    def _problem(self, frame: pl.DataFrame, name: str, column: Column) -> str | None:
        values, dtype = frame[name], self.schema[name]
        if values.dtype != dtype:
            return f"is declared a {column.kind} ({dtype}), and is {values.dtype}"
        if column.kind == REAL and not values.drop_nulls().is_finite().all():
            return "holds NaN or an infinity; what cannot be computed is blank, with a reason"
        if column.blank == REASON and (unsaid := (values.is_null() & frame["reason"].is_null()).sum()):
            return f"blank in {unsaid:,} rows whose reason is blank too"
        return None


def types_in(module: ModuleType) -> str:
    """What computing and drawing go by in a module of contracts: tables, columns, and constants that are public."""
    typed = {name: _types(value) for name, value in vars(module).items() if not name.startswith("_")}
    return "\n".join(f"{name} {types}" for name, types in typed.items() if types)


def _types(value: object) -> str:
    if isinstance(value, Column | Table):
        return value.types
    if isinstance(value, Mapping):
        return " ".join(f"{name}:{_types(part)}" for name, part in value.items())
    return repr(value) if isinstance(value, str | int | float | tuple) else ""


def table(name: str, about: str, counted: str = "", /, **columns: Column) -> Table:
    """A CSV under tables/. If a cell may be blank for a REASON, the last column is `reason`, unless it is given."""
    if "reason" not in columns and any(column.blank == REASON for column in columns.values()):
        columns["reason"] = reason()
    return Table(name, about, f"tables/{name}.csv", columns, counted=counted)


def parquet(name: str, about: str, path: str, /, *, open: bool = False, **columns: Column) -> Table:
    """A Parquet file, such as one with a row per job."""
    return Table(name, about, path, columns, open)
