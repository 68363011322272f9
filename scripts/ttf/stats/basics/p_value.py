"""A p-value is never written as 0."""

import sys

# The smallest normal double: a p-value below it is written as it.
SMALLEST_P = sys.float_info.min
TINY_P = f"p is below {SMALLEST_P} and written as that"


def never_zero(p: float) -> tuple[float, str | None]:
    """The p-value, at least SMALLEST_P, and a reason where that raised it."""
    return (p, None) if p >= SMALLEST_P else (SMALLEST_P, TINY_P)
