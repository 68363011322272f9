"""Holm's step-down adjustment of p-values."""

from collections.abc import Iterable, Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values (Holm 1979) in the order given; blanks (None) take no part and stay blank."""
    # Not statsmodels' multipletests, which collects garbage at each call: 48 ms against 4 us, in `correlate` 240 times.
    present = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for done, (p, place) in enumerate(present):
        running = max(running, min(1.0, (len(present) - done) * p))
        adjusted[place] = running
    return adjusted


def with_holm(rows: Iterable[dict], of: str = "p_value", adjusted: str = "p_adjusted") -> list[dict]:
    """The rows, each now with its p-value (`of`) adjusted among theirs, blank where there is none."""
    rows = list(rows)
    for row, p in zip(rows, holm([row.get(of) for row in rows]), strict=True):
        row[adjusted] = p
    return rows
