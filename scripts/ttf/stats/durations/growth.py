"""Whether events of a fleet become more or less frequent: the Crow-AMSAA model, tests of trend, the point of change.

Events of a fleet watched from time 0 to T, T not being one of them. The Crow-AMSAA (power law) process has the rate
l b t^(b - 1): b above 1 is getting worse (MIL-HDBK-189; NIST Dataplot, Reliability Trends Test). A fleet that grows has
more events for that alone: time is its cumulative exposure then, which changes nothing where it does not grow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, chdtrc, gammainccinv, gammaincinv, kolmogorov, ndtr, stdtr, stdtrit

from ttf.engine.columns import FEWEST_BLOCKS
from ttf.stats.basics.p_value import never_zero
from ttf.stats.clustered import FEWEST, block_spread

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


@dataclass(frozen=True)
class Stratum:
    """Events of units with one rate up to its growth, and the blocks of time in which they came.

    at: the share of the time watched that had passed at each event, above 0 and at most 1; block: the number of the
    block of each (Int64); passed: the same share at the edges of blocks, from 0 to 1, one more than there are blocks.
    """

    at: np.ndarray
    block: np.ndarray
    passed: np.ndarray


def common_growth(strata: Sequence[Stratum]) -> dict:
    """The growth that strata have in common, with what holds when events come in bursts and their rate drifts.

    Strata of different ages, each with a constant rate, have a trend together that none has (Simpson): so each has a
    rate of its own, and its own time. beta = N / sum ln(1 / at), the likelihood's, with its interval on the log scale;
    effective_blocks: of it. trend_t, trend_p: that beta is 1, by the mean time of the events (Laplace's statistic, in
    which all blocks weigh), in standard errors. homogeneity_p: that no stratum has another beta, the smallest p of
    their mean times multiplied by their number. Spreads are those of blocks about the fitted growth (`block_spread`),
    not Poisson's. reasons: why any lacks.
    """
    n = sum(one.at.size for one in strata)
    blocks = max((one.passed.size - 1 for one in strata), default=0)
    logs = -sum(float(np.log(one.at).sum()) for one in strata)
    found = {"strata": len(strata), "reasons": []}
    if n < FEWEST_EVENTS or blocks < FEWEST_BLOCKS or not logs:
        return found | {"reasons": [f"fewer than {FEWEST_BLOCKS} blocks of time, or {FEWEST_EVENTS} events: no trend"]}
    beta = n / logs
    se, effective = _spread(strata, _log_scores, beta)
    se *= beta / n
    found |= {"beta": beta, "effective_blocks": float(effective)}
    found |= dict(zip(("trend_t", "trend_p"), _test_of_mean_time(strata, beta, 1.0), strict=True))
    if effective >= FEWEST and np.isfinite(se):
        factor = float(np.exp(se * stdtrit(effective - 1, 1 - TAIL)))
        found |= {"ci_low": beta / factor, "ci_high": beta * factor}
    else:
        found["reasons"].append(f"{effective:.1f} effective blocks of time, fewer than {FEWEST}: no interval of beta")
    if found["trend_p"] is None:
        found["reasons"].append("too few effective blocks of time: no test of trend")
    if len(strata) > 1:
        tested = [_test_of_mean_time([one], _beta(one), beta)[1] for one in strata if one.at.size >= FEWEST_EVENTS]
        known = [p for p in tested if p is not None]
        found["homogeneity_p"] = min(len(known) * min(known), 1.0) if known else None
    return found


def _beta(one: Stratum) -> float:
    return one.at.size / -float(np.log(one.at).sum())


def _test_of_mean_time(strata: Sequence[Stratum], fitted: float, null: float) -> tuple[float | None, float | None]:
    """(t, two-sided p) of a growth `null` by the mean time of events; its spread is that about the fitted growth."""
    se, effective = _spread(strata, _mean_scores, fitted)
    if effective < FEWEST or not np.isfinite(se):
        return None, None
    t = sum(float((one.at - null / (null + 1)).sum()) for one in strata) / float(se)
    return t, _above_zero(2 * stdtr(effective - 1, -abs(t)))


# Of events and edges: the scores of the events, and at the edges the integrals over time, up to each and for one event,
# of the score and of its square at growth beta.
Scores = Callable[[Stratum, float], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _log_scores(one: Stratum, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    power, log = one.passed**beta, np.log(np.where(one.passed > 0, one.passed, 1))
    return 1 / beta + np.log(one.at), power * log, power * (log**2 + 1 / beta**2)


def _mean_scores(one: Stratum, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    passed, mean = one.passed, beta / (beta + 1)
    square = beta / (beta + 2) * passed**2 - 2 * mean**2 * passed + mean**2
    return one.at - mean, mean * passed**beta * (passed - 1), passed**beta * square


def _spread(strata: Sequence[Stratum], scores: Scores, beta: float) -> tuple[float, float]:
    """The standard error of the sum of scores of all events at growth beta, and the effective number of blocks."""
    blocks = max(one.passed.size - 1 for one in strata)
    residual, variance, apart = np.zeros((3, blocks))
    for one in strata:
        of_events, expected, squares = scores(one, beta)
        residual += np.bincount(one.block, weights=of_events, minlength=blocks) - one.at.size * np.diff(expected)
        apart += np.bincount(one.block, weights=of_events**2, minlength=blocks)
        variance += one.at.size * np.diff(squares)
    se, effective = block_spread(residual, variance / variance.sum(), apart)
    return float(se), float(effective)
