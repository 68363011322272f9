"""P-values: of equal rates, and never written as 0."""

import sys

from scipy.special import bdtr, bdtrc

# The smallest normal double: smaller p-values are written as this.
SMALLEST_P = sys.float_info.min
TINY_P = f"p is below {SMALLEST_P} and written as that"


def raise_to_smallest(p: float) -> tuple[float, str | None]:
    """Return the p-value, at least SMALLEST_P, and a reason if it was raised."""
    return (p, None) if p >= SMALLEST_P else (SMALLEST_P, TINY_P)


def exact_p(events: int, events_after: int, share: float) -> float:
    """Return the two-sided p of equal rates given the total of events: twice the smaller binomial tail, at most 1.

    Parameters
    ----------
    events, events_after : number of events before and after
    share : that of the exposure after, between 0 and 1

    Returns
    -------
    p-value

    References
    ----------
    Przyborowski & Wilenski (1940), Biometrika 31

    Examples
    --------
    >>> round(exact_p(0, 6, 0.5), 5)  # 2 / 2**6
    0.03125
    """
    total = events + events_after
    upper_tail = bdtrc(events_after - 1, total, share) if events_after else 1.0
    return min(1.0, 2 * float(min(bdtr(events_after, total, share), upper_tail)))
