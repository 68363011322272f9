"""The number of points of a printed correlation, as implied by its rounded r and p."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr

# No study has more points.
LARGEST_N = 10**12


@dataclass(frozen=True)
class Printed:
    """A printed number: its value, and the range that rounds to the same text (half a unit of the last digit)."""

    value: float
    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> "Printed":
        """Parse a printed number. Raises ValueError for other texts, such as 3.19e-0.1."""
        try:
            number = Decimal(text)
            half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)
        except (InvalidOperation, TypeError, ValueError):
            raise ValueError(f"{text!r} is not a number") from None
        return cls(float(number), float(number - half), float(number + half))


def p_value(r: float, n: float) -> float:
    """Return the two-sided p-value of Pearson's r over n points: t = r sqrt((n - 2) / (1 - r^2)), n - 2 degrees."""
    if n <= 2 or abs(r) >= 1:
        raise ValueError(f"no p-value for r = {r} over {n} points")
    return float(2 * stdtr(n - 2, -abs(r) * np.sqrt((n - 2) / (1 - r * r))))


def implied_n(r: str, p: str) -> tuple[int | None, int | None, int | None]:
    """Return (smallest, best, largest) number of points that fit a printed r and two-sided p.

    r and p vary within their rounding. The p-value falls as n or |r| grows, so the smallest n combines the largest |r|
    with the largest p, and the largest n the opposite. best: the integer nearest to the n of the printed values. A
    bound is None if there is none (an r that may be 0 fits a large p at any n); all are None if no n fits.
    Raises ValueError if r or p is not a number, or not a correlation or p-value.
    """
    printed_r, printed_p = Printed.parse(r), Printed.parse(p)
    if not abs(printed_r.value) <= 1 or not 0 < printed_p.value <= 1:
        raise ValueError(f"r = {r}, p = {p}: not a correlation with its p-value")
    r_low, r_high = sorted((abs(printed_r.low), abs(printed_r.high)))
    if printed_r.low <= 0 <= printed_r.high:
        r_low = 0.0
    low_crossing = _crossing(min(r_high, 1 - 1e-12), min(printed_p.high, 1.0))
    high_crossing = _crossing(r_low, max(printed_p.low, 0.0))
    smallest = None if low_crossing is None else max(3, int(np.ceil(low_crossing - 1e-9)))
    largest = None if high_crossing is None else int(np.floor(high_crossing + 1e-9))
    # With three points the p-value may already be too small, so the smallest n is checked too.
    has_fit = smallest is None or r_low == 0 or p_value(min(r_low, 1 - 1e-12), smallest) >= printed_p.low
    if not has_fit or (smallest is not None and largest is not None and smallest > largest):
        return None, None, None
    printed_crossing = _crossing(min(abs(printed_r.value), 1 - 1e-12), printed_p.value)
    if printed_crossing is None:
        return smallest, None, largest
    return smallest, min(max(round(printed_crossing), smallest or 3), largest or LARGEST_N), largest


def _crossing(r: float, p: float) -> float | None:
    """Return the real n at which the p-value of r equals p, or None if it exceeds p for every n up to LARGEST_N."""
    if r == 0 or p == 0 or p_value(r, LARGEST_N) > p:
        return None
    if p_value(r, 3) <= p:
        return 3.0
    return float(np.exp(brentq(lambda log_n: p_value(r, np.exp(log_n)) - p, np.log(3), np.log(LARGEST_N), xtol=1e-14)))
