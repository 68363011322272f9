"""Numbers of the report: each is a cell of a table, with its unit, n and position."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ttf.engine.contract import TEXT, TRUTH, Column, Table
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.records.inputs import Inputs

# Fewest ended jobs of a feature value that the prose names; fewest failed jobs of a job size.
FEWEST_ENDED = 30
FEWEST_FAILURES = 10
# Columns of an interval and of its clusters; with _S of an interval in seconds.
CLUSTERS = "cluster_by clusters"
CI = f"ci_low ci_high ci_low_clustered ci_high_clustered {CLUSTERS}"
CI_S = f"ci_low_s ci_high_s ci_low_clustered_s ci_high_clustered_s {CLUSTERS}"
_LINE = "line in the file"
# Name -> table.
Tables = Inputs | Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Cells:
    """Cells of the rows of a table that match `where`, in the order of `sort`: see `cells`."""

    table: Table
    key: str
    columns: Mapping[str, str]
    where: tuple[pl.Expr, ...]
    n: str
    sort: tuple[str, ...]
    take: int
    ends: tuple[str, ...]
    unit_by: str

    def rows(self, frame: pl.DataFrame) -> Iterator[tuple[str, dict]]:
        """Yield (key, row) of each row with numbers. The row also has its line in the file; headings are line 1."""
        rows = frame.with_row_index(_LINE, offset=2).filter(*self.where)
        if self.sort:
            descending = [name.startswith("-") for name in self.sort]
            names = [name.removeprefix("-") for name in self.sort]
            rows = rows.sort(names, descending=descending, nulls_last=True, maintain_order=True)
        if self.take:
            rows = rows.head(self.take) if self.take > 0 else rows.tail(-self.take)
        if self.ends:
            rows = pl.concat([rows.head(1), rows.tail(1)]) if rows.height > 1 else rows.clear()
        for number, row in enumerate(rows.iter_rows(named=True)):
            cell_words = {name: str(value).replace(", ", "_").replace(" ", "_") for name, value in row.items()}
            key = self.key.format(**cell_words, rank=number + 1)
            yield f"{key}.{self.ends[number]}" if self.ends else key, row


def cells(
    table: Table,
    key: str,
    columns: str = "",
    *where: pl.Expr,
    not_blank: str = "",
    n: str = "n",
    sort: str = "",
    take: int = 0,
    ends: str = "",
    unit_by: str = "",
    **equal: str | float | bool,
) -> Cells:
    """Declare cells of a table as numbers, named `key.column`.

    Parameters
    ----------
    table: contract of the table.
    key: with column names in braces for the row's cells (a space becomes _), {rank} for the row's rank.
    columns: column names; `name=column` for a number with another name. Default: all columns but `reason`.
    where, equal: conditions on the rows.
    not_blank: columns that are not blank in these rows.
    n: column with the n of columns whose contract has none; ignored if the table lacks it.
    sort: columns to sort the rows by, with - before the name for descending order; blanks last.
    take: number of rows from the first, or from the last if negative.
    ends: two words; the numbers are those of the first and the last of at least two rows, with keys that end in
    `.word`.
    unit_by: column of the row that holds the unit of its numbers.
    """
    names = columns.split() or [name for name in table.columns if name != "reason"]
    pairs = (name.partition("=") for name in names)
    mapping = {name: column or name for name, _, column in pairs}
    tests = [pl.col(name) == value for name, value in equal.items()]
    tests += [pl.col(name).is_not_null() for name in not_blank.split()]
    return Cells(table, key, mapping, (*where, *tests), n, tuple(sort.split()), take, tuple(ends.split()), unit_by)


class Metrics(dict):
    """Key -> {value, unit, n, source, column, line, definition}: the cell in that line and column of `source`.

    A blank cell is no number; sentences omit it. unit: unit of the sizes of jobs.
    """

    unit: SizeUnit = GPU

    def add(self, declared: Iterable[Cells], inputs: Tables) -> None:
        """Add the declared cells whose tables are among the inputs."""
        for selection in declared:
            if selection.table.name in inputs:
                for key, row in selection.rows(inputs[selection.table.name]):
                    self._add_row(selection, key, row)

    def _add_row(self, selection: Cells, key: str, row: Mapping) -> None:
        table, file_columns = selection.table, selection.table.names_in(self.unit)
        for name, column in selection.columns.items():
            if row[column] is None:
                continue
            n = table.columns[column].n or (selection.n if selection.n in table.columns else "")
            self[f"{key}.{name}" if name else key] = {
                "value": row[column],
                "unit": self.unit.named(row.get(selection.unit_by) or unit_of(column, table.columns[column])),
                "n": row[n] if n and n != column else None,
                "source": table.path,
                "column": file_columns[column],
                "line": row[_LINE],
                "definition": self.unit.worded(table.columns[column].description),
            }


def unit_of(name: str, column: Column) -> str:
    """Return the unit of the numbers of a column, as in metrics.json and on the page."""
    if column.kind in (TEXT, TRUTH):
        return "label" if column.kind == TEXT else "truth"
    if column.unit == "h" and "_hours" in name:
        return "node-hours" if "node_hours" in name else "GPU-hours"
    return column.unit or "1"
