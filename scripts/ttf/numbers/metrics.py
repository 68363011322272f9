"""What a number of the report's prose is: a value with its unit, n and source table."""

from collections.abc import Mapping

# A value of a feature is named in the prose only if at least so many of its jobs ended; a job size, if so many failed.
FEWEST_ENDED = 30
FEWEST_FAILURES = 10


class Metrics(dict):
    """Key -> {value, unit, n, source}. A number that cannot be computed is left out: the prose then goes without it."""

    def put(self, key: str, value: float | int | str | None, unit: str, source: str, n: int | None = None) -> None:
        if value is not None:
            self[key] = {"value": value, "unit": unit, "n": n, "source": source}

    def put_row(
        self, key: str, row: Mapping, units: Mapping[str, str], source: str, n: int | None = None, prefix: str = ""
    ) -> None:
        """Cells of a row of a table as key.column; units: column -> unit, columns without the prefix of their names."""
        for name, unit in units.items():
            self.put(f"{key}.{name}", row[prefix + name], unit, source, n)
