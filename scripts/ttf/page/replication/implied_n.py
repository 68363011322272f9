"""How many points a printed correlation was computed over: what its r and p, as rounded, leave possible."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr

# A p-value that n would have to exceed this for is one of no study.
LARGEST_N = 10**12


@dataclass(frozen=True)
class Printed:
    """A number as it was printed: its value, and the values that print alike, to half a unit of the last digit."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> "Printed":
        """Raises ValueError for a text that is no number, such as 3.19e-0.1."""
        try:
            number = Decimal(text)
            half = Decimal(5).scaleb(number.as_tuple().exponent - 1)
        except (InvalidOperation, TypeError):
            raise ValueError(f"{text!r} is not a number") from None
        return cls(float(number), float(number - half), float(number + half))


def p_value(r: float, n: int | float) -> float:
    """The two-sided p-value of Pearson's r over n points, of t = r sqrt((n - 2) / (1 - r^2)) with n - 2 degrees."""
    if n <= 2 or abs(r) >= 1:
        raise ValueError(f"no p-value for r = {r} over {n} points")
    return float(2 * stdtr(n - 2, -abs(r) * np.sqrt((n - 2) / (1 - r * r))))


def implied_n(r: str, p: str) -> tuple[int | None, int | None, int | None]:
    """(smallest, best, largest) number of points that fit a printed r and two-sided p.

    r and p move within their rounding. The p-value falls as n or |r| grows, so the smallest n takes |r| at its largest
    and p at its largest, and the largest n the opposite; best: the whole number nearest to the n of the printed values
    themselves. None where there is no bound (an r that may be 0 fits a large p at any n), all None where no n fits.
    Raises ValueError for a text that is no number, or no correlation or p-value.
    """
    printed_r, printed_p = Printed.of(r), Printed.of(p)
    if not abs(printed_r.value) <= 1 or not 0 < printed_p.value <= 1:
        raise ValueError(f"r = {r}, p = {p}: not a correlation with its p-value")
    weak, strong = sorted((abs(printed_r.low), abs(printed_r.high)))
    if printed_r.low <= 0 <= printed_r.high:
        weak = 0.0
    least = _crossing(min(strong, 1 - 1e-12), min(printed_p.high, 1.0))
    most = _crossing(weak, max(printed_p.low, 0.0))
    smallest = None if least is None else max(3, int(np.ceil(least - 1e-9)))
    largest = None if most is None else int(np.floor(most + 1e-9))
    # Over three points the p-value may be too small already, so the smallest is tried as well.
    fits = smallest is None or weak == 0 or p_value(min(weak, 1 - 1e-12), smallest) >= printed_p.low
    if not fits or (smallest is not None and largest is not None and smallest > largest):
        return None, None, None
    middle = _crossing(min(abs(printed_r.value), 1 - 1e-12), printed_p.value)
    best = None if middle is None else round(middle)
    if best is not None:
        best = max(best, smallest or 3)
        best = best if largest is None else min(best, largest)
    return smallest, best, largest


def _crossing(r: float, p: float) -> float | None:
    """The (real) n at which the p-value of r comes down to p; None if it stays above p for every n of a study."""
    if r == 0 or p == 0 or p_value(r, LARGEST_N) > p:
        return None
    if p_value(r, 3) <= p:
        return 3.0
    return float(np.exp(brentq(lambda log_n: p_value(r, np.exp(log_n)) - p, np.log(3), np.log(LARGEST_N), xtol=1e-14)))
