"""P-values that are never written as 0."""

import sys

# The smallest normal double: smaller p-values are written as this.
SMALLEST_P = sys.float_info.min
TINY_P = f"p is below {SMALLEST_P} and written as that"


def raise_to_smallest(p: float) -> tuple[float, str | None]:
    """Return the p-value, at least SMALLEST_P, and a reason if it was raised."""
    return (p, None) if p >= SMALLEST_P else (SMALLEST_P, TINY_P)
