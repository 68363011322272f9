"""Merge rows that are close in time: lines to errors, and lines to the spans in which a log was written."""

from collections.abc import Mapping, Sequence

import polars as pl

# The worst first.
_SEVERITIES = pl.Enum(["error", "warning", "info"])


class MergedRows:
    """Rows with a start and an end, merged where they are close in time, again and again as they come."""

    def __init__(self, schema: Mapping, gap_s: int) -> None:
        self.schema, self.gap_s, self._frames, self._rows = schema, gap_s, [pl.DataFrame(schema=schema)], 0

    def add(self, rows: pl.DataFrame) -> None:
        if rows.height:
            rows = merge_close(rows.cast(dict(self.schema)), self.gap_s)
            self._frames.append(rows)
            self._rows += rows.height
            if self._rows > 500_000:
                self._frames = [self.merge()]
                self._rows = self._frames[0].height // 2  # merged again when they have doubled

    def merge(self) -> pl.DataFrame:
        return merge_close(pl.concat(self._frames), self.gap_s)


def number_close_rows(keys: Sequence[str], start: str, end: str, gap_s: int) -> pl.Expr:
    """Return group numbers of rows of the same keys at most gap_s apart; the rows are sorted by keys and start."""
    latest = pl.col(end).cum_max().over(keys).shift(1).over(keys)
    return (pl.col(start) - latest > gap_s).fill_null(True).cum_sum()


def merge_close(rows: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Merge rows of the same keys whose times are at most gap_s apart.

    Keys are the other columns; the start is time_s or start_s, the end last_s or end_s. `lines`, if there, are summed,
    and the severity is the worst.
    """
    start, end = ("time_s", "last_s") if "time_s" in rows.columns else ("start_s", "end_s")
    keys = [name for name in ("node", "gpu", "code") if name in rows.columns]
    texts = [name for name in rows.columns if name not in (*keys, start, end, "lines")]
    rows = rows.sort(*keys, start, end, *texts)
    group = rows.select(number_close_rows(keys, start, end, gap_s).alias("group")).to_series()
    aggregates = {start: pl.col(start).min(), end: pl.col(end).max()} | {name: pl.col(name).first() for name in texts}
    aggregates |= {"lines": pl.col("lines").sum()} if "lines" in rows.columns else {}
    if "severity" in texts:
        aggregates["severity"] = pl.col("severity").cast(_SEVERITIES).min().cast(pl.String)
    merged = rows.with_columns(group).group_by("group", *keys, maintain_order=True).agg(**aggregates)
    return merged.select(rows.columns)
