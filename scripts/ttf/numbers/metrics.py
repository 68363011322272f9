"""What a number of the report's prose is: a value with its unit, n and source table."""

from collections.abc import Iterator, Mapping

import polars as pl

from ttf.size_unit import GPU, SizeUnit

# A value of a feature is named in the prose only if at least so many of its jobs ended; a job size, if so many failed.
FEWEST_ENDED = 30
FEWEST_FAILURES = 10
# By what a clustered interval or test is clustered.
CLUSTERS = {"cluster_by": "label", "clusters": "clusters"}
# Of a number that is named like its column; or the column and the unit.
Unit = str | tuple[str, str]


def ends(unit: str, suffix: str = "") -> dict[str, Unit]:
    """The units of an exact and a clustered interval, ci_low and so on, with what it is clustered by."""
    names = ("ci_low", "ci_high", "ci_low_clustered", "ci_high_clustered")
    return {f"{name}{suffix}": unit for name in names} | CLUSTERS


class Metrics(dict):
    """Key -> {value, unit, n, source}. A number that cannot be computed has none: the prose goes without it.

    unit: in which the sizes are told that are put as numbers of GPUs.
    """

    unit: SizeUnit = GPU

    def put(self, key: str, value: float | int | str | None, unit: str, source: str, n: int | None = None) -> None:
        if value is not None:
            self[key] = {"value": value, "unit": self.unit.named(unit), "n": n, "source": source}

    def put_row(
        self, key: str, row: Mapping, units: Mapping[str, Unit], source: str, n: int | None = None, prefix: str = ""
    ) -> None:
        """Cells of a row of a table as key.name; prefix: of the names of columns, which the numbers lack."""
        for name, unit in units.items():
            column, unit = unit if isinstance(unit, tuple) else (prefix + name, unit)
            self.put(f"{key}.{name}", row[column], unit, source, n)

    def put_rows(
        self, key: str, rows: pl.DataFrame, units: Mapping[str, Unit], source: str, n: str | None = "n"
    ) -> None:
        """Cells of rows; key: with names of columns in braces for their cells; n: the column of the number behind."""
        for row in rows.iter_rows(named=True):
            self.put_row(key.format(**row), row, units, source, n and row[n])


def ends_of(rows: pl.DataFrame, first: str, last: str) -> Iterator[tuple[str, dict]]:
    """The first and the last row by these names, of two rows or more; of fewer neither."""
    if rows.height >= 2:
        yield first, rows.row(0, named=True)
        yield last, rows.row(-1, named=True)
