"""Months of a trace: of the calendar (UTC) if its clock has one, else windows of 28 days from its first moment."""

from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

WINDOW_S = 28 * 86_400
# A trace that starts after this on its clock has a calendar: no trace is 30 years long.
YEAR_2000_S = 946_684_800


def has_calendar(begin_s: int | None) -> bool:
    """Return whether months are calendar months, as the clock counts from 1970; else windows of 28 days."""
    return begin_s is not None and begin_s >= YEAR_2000_S


def month_start(begin_s: int | None) -> pl.Expr:
    """Return the start (s) of the month, or of the 28 days, in which a run ended."""
    end_s = pl.col("end_s")
    if has_calendar(begin_s):
        return pl.from_epoch(end_s, time_unit="s").dt.truncate("1mo").dt.epoch("s")
    return (begin_s or 0) + (end_s - (begin_s or 0)) // WINDOW_S * WINDOW_S


def next_month_s(first_s: int, begin_s: int | None) -> int:
    """Return the start of the month after the one of first_s."""
    if not has_calendar(begin_s):
        return first_s + WINDOW_S
    month = datetime.fromtimestamp(first_s, UTC)
    year, number = divmod(month.year * 12 + month.month, 12)
    return int(datetime(year, number + 1, 1, tzinfo=UTC).timestamp())


def month_name(first_s: int, begin_s: int | None) -> str:
    """Return the month as 2020-07, or the days since the trace began."""
    if has_calendar(begin_s):
        return datetime.fromtimestamp(first_s, UTC).strftime("%Y-%m")
    day = (first_s - (begin_s or 0)) // 86_400
    return f"days {day + 1} to {day + 28}"


@dataclass(frozen=True)
class Months:
    """The calendar months (UTC) from begin_s to end_s, or windows of 28 days if the clock has no calendar.

    edges_s: begin_s, the start of each further month, end_s.
    """

    begin_s: int
    end_s: int

    @property
    def edges_s(self) -> list[int]:
        edges = [self.begin_s]
        while (next_edge_s := next_month_s(edges[-1], self.begin_s)) < self.end_s:
            edges.append(next_edge_s)
        return [*edges, self.end_s]

    @property
    def month_names(self) -> list[str]:
        return [month_name(edge_s, self.begin_s) for edge_s in self.edges_s[:-1]]

    def index_at(self, time_s: pl.Expr) -> pl.Expr:
        """Return the index of the month that contains a time, from 0."""
        if not has_calendar(self.begin_s):
            return (time_s - self.begin_s) // WINDOW_S

        def count_months(time_s: pl.Expr) -> pl.Expr:
            time = pl.from_epoch(time_s, time_unit="s")
            return time.dt.year().cast(pl.Int64) * 12 + time.dt.month()

        return count_months(time_s) - count_months(pl.lit(self.begin_s))
