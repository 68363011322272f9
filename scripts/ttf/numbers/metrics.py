"""What a number of the report's prose is: a value with its unit, n and source table."""

from collections.abc import Iterator, Mapping

import polars as pl

# A value of a feature is named in the prose only if at least so many of its jobs ended; a job size, if so many failed.
FEWEST_ENDED = 30
FEWEST_FAILURES = 10


class Metrics(dict):
    """Key -> {value, unit, n, source}. A number that cannot be computed has none: the prose goes without it."""

    def put(self, key: str, value: float | int | str | None, unit: str, source: str, n: int | None = None) -> None:
        if value is not None:
            self[key] = {"value": value, "unit": unit, "n": n, "source": source}

    def put_row(
        self, key: str, row: Mapping, units: Mapping[str, str], source: str, n: int | None = None, prefix: str = ""
    ) -> None:
        """Cells of a row of a table as key.column; units: column -> unit, columns without the prefix of their names."""
        for name, unit in units.items():
            self.put(f"{key}.{name}", row[prefix + name], unit, source, n)


def ends_of(rows: pl.DataFrame, first: str, last: str) -> Iterator[tuple[str, dict]]:
    """The first and the last row by these names, of two rows or more; of fewer neither."""
    if rows.height >= 2:
        yield first, rows.row(0, named=True)
        yield last, rows.row(-1, named=True)
