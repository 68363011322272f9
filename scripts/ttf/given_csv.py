"""Small CSV files that a person adds to a trace: health events, losses. One wrong line refuses the file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from ttf.errors import StudyError
from ttf.on_disk import read_csv


def read_text_columns(path: str | Path, what: str, columns: Sequence[str]) -> pl.DataFrame:
    """The lines of a CSV file with a header, every column as text, at least these.

    what: what the file holds, for the messages. Raises StudyError where it is no CSV or a column is missing.
    """
    try:
        table = read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise StudyError(
            f"{path}: the {what} cannot be read as CSV: {str(error).splitlines()[0]} "
            "Expected UTF-8 text, a header, and commas between the columns."
        ) from None
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise StudyError(
            f"{path}: the {what} have no column {', '.join(missing)}; expected the columns {', '.join(columns)}, "
            f"found {', '.join(table.columns)}."
        )
    return table


def moment_s(column: str) -> pl.Expr:
    """Whole seconds, or a time such as 2025-03-01T08:00:00 with an offset (without one: UTC), as Int64 seconds."""
    text = pl.col(column).str.strip_chars()
    has_zone = text.str.contains(r"(?:Z|[+-]\d{2}:?\d{2})$")
    moment = pl.when(has_zone).then(text).otherwise(pl.concat_str(text, pl.lit("Z")))
    stamp = moment.str.to_datetime("%Y-%m-%dT%H:%M:%S%#z", strict=False, time_zone="UTC")
    return pl.coalesce(text.cast(pl.Int64, strict=False), stamp.dt.epoch("s"))


def refuse_blank(path: str | Path, table: pl.DataFrame, lacks: Mapping[str, str], expected: str) -> None:
    """Raise StudyError at the first line that lacks something, and say how many do.

    table: the lines of the file in order; lacks: column -> what is said of a line where it is blank.
    """
    bad = table.with_row_index("line", 2).filter(pl.any_horizontal(pl.col(*lacks).is_null()))
    if bad.height:
        first = bad.row(0, named=True)
        blank = next(name for name in lacks if first[name] is None)
        others = f" (the first of {bad.height:,} such lines)" if bad.height > 1 else ""
        raise StudyError(f"{path}: line {first['line']} {lacks[blank]}{others}. {expected}")
