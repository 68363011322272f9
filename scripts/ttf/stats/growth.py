"""Whether events of a fleet become more or less frequent: the Crow-AMSAA model, tests of trend, the point of change.

Events of a fleet watched from time 0 to T, T not being one of them. The Crow-AMSAA (power law) process has the rate
l b t^(b - 1): b above 1 is getting worse (MIL-HDBK-189; NIST Dataplot, Reliability Trends Test). A fleet that grows has
more events for that alone: time is its cumulative exposure then, which changes nothing where it does not grow.
"""

import numpy as np
from scipy.special import chdtr, chdtrc, gammainccinv, gammaincinv, kolmogorov, ndtr

from ttf.stats.p_value import never_zero

FEWEST_EVENTS = 3
TAIL = 0.025


def cumulative(times: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The time that units watched from begin to end (Int64 each) have had together by each of some times: Int64."""
    return sum(sign * _since(times, np.sort(edges)) for sign, edges in ((1, begin), (-1, end)))


def _since(times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The sum over edges, sorted, of the time that has passed since each that has passed."""
    passed = np.searchsorted(edges, times)
    return passed * times - np.concatenate(([0], np.cumsum(edges)))[passed]


def growth(at: np.ndarray, total: float) -> dict:
    """The columns of a stratum of `follow_outages` of events at these times, sorted, above 0 and at most `total`.

    n; beta = n / sum ln(T / t) with the exact interval beta chi2(2n) / 2n; laplace_u = (mean t - T / 2) / (T / sqrt(12
    n)); two-sided p-values of the Laplace and the military handbook test (2 sum ln(T / t) is chi2(2n)), which suppose a
    Poisson process, and of Lewis and Robinson's, laplace_u over the coefficient of variation of the gaps, which does
    not (Lewis & Robinson 1974; Wang & Coit 2005). change_place: the event, counted from 0, at which they are furthest
    from what a constant rate gives, with Kolmogorov's change_point_p, and change_point_p_corrected, its distance over
    the same coefficient: the share of a renewal process that has come by a time strays by so much more (Donsker).
    reasons: why any lacks.
    """
    n = at.size
    if n < FEWEST_EVENTS:
        return {"n": n, "reasons": [f"fewer than {FEWEST_EVENTS} events: no trend"]}
    logs = float(np.log(total / at).sum())
    gaps = np.diff(at, prepend=0)
    laplace = float((at.mean() - total / 2) / (total / np.sqrt(12 * n)))
    come = np.arange(n + 1) / n
    away = np.maximum(come[1:] - at / total, at / total - come[:-1])
    place = int(away.argmax())
    # Stephens 1970: within 0.005 of the exact p-value below 0.2, from 5 events on.
    corrected = away[place] * (np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n))
    found = {"n": n, "reasons": [], "laplace_u": laplace, "laplace_p": _two_sided(laplace)}
    found |= {"change_place": place, "change_point_p": _above_zero(kolmogorov(corrected))}
    if logs > 0:
        low, high = gammaincinv(n, TAIL) / logs, gammainccinv(n, TAIL) / logs
        found |= {"beta": n / logs, "ci_low": float(low), "ci_high": float(high)}
        found["mil_hdbk_p"] = _above_zero(min(2 * min(chdtr(2 * n, 2 * logs), chdtrc(2 * n, 2 * logs)), 1))
    else:
        found["reasons"].append("every event at the end of the watch: no beta")
    if variation := float(gaps.std(ddof=1) / gaps.mean()):
        found["lewis_robinson_p"] = _two_sided(laplace / variation)
        found["change_point_p_corrected"] = _above_zero(kolmogorov(corrected / variation))
    else:
        found["reasons"].append("gaps of one length: no Lewis-Robinson test")
    return found


def _two_sided(statistic: float) -> float:
    return _above_zero(2 * ndtr(-abs(statistic)))


def _above_zero(p: float) -> float:
    """A p-value too small for a double is the smallest that there is."""
    return never_zero(float(p))[0]
