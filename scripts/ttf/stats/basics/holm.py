"""Holm's step-down adjustment of p-values."""

from collections.abc import Iterable, Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for several tests (Holm's step-down method).

    Parameters
    ----------
    p_values : in any order; None has no test and stays None

    Returns
    -------
    adjusted p-values, at most 1, in the given order

    References
    ----------
    Holm (1979), Scand. J. Stat. 6

    Examples
    --------
    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    ranked = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(ranked):
        largest = max(largest, min(1.0, (len(ranked) - rank) * p))
        adjusted[index] = largest
    return adjusted


def add_adjusted_p(rows: Iterable[dict], column: str = "p_value", adjusted_column: str = "p_adjusted") -> list[dict]:
    """Add to each row its p-value (`column`) adjusted among the rows; blank without a p-value."""
    rows = list(rows)
    for row, p in zip(rows, holm([row.get(column) for row in rows]), strict=True):
        row[adjusted_column] = p
    return rows
