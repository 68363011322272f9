"""Whether failures of a fleet become more or less frequent: Crow-AMSAA model and test of trend.

Events of a fleet watched from time 0 up to, but without, T. The Crow-AMSAA (power law) process has the rate l b t^(b -
1); b above 1 means worsening (MIL-HDBK-189; NIST Dataplot, Reliability Trends Test). A growing fleet has more events
for that reason alone. So time is cumulative exposure, which changes nothing for a fleet of constant size.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from ttf.engine.columns import FEWEST_BLOCKS
from ttf.stats.basics.p_value import raise_to_smallest
from ttf.stats.clustered import FEWEST, block_spread

FEWEST_EVENTS = 3
TAIL = 0.025


def accumulate_exposure(times: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the exposure up to each time, summed over units.

    Parameters
    ----------
    times : (n,) Int64 s, in any order
    begin, end : (units,) Int64 s, when the watch of each unit begins and ends

    Returns
    -------
    (n,) Int64 unit-seconds

    Examples
    --------
    >>> accumulate_exposure(np.array([5, 20]), np.array([0, 4]), np.array([10, 12]))
    array([ 6, 18])
    """
    return _sum_elapsed(times, np.sort(begin)) - _sum_elapsed(times, np.sort(end))


def _sum_elapsed(times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return, for each of `times`, the sum of the time since each of the edges before it."""
    n_before = np.searchsorted(edges, times)
    return n_before * times - np.concatenate(([0], np.cumsum(edges)))[n_before]


@dataclass(frozen=True)
class Stratum:
    """Events of units with one rate apart from its growth, and the blocks of time in which they occurred.

    at: share of the watched time elapsed at each event, above 0 and at most 1. block: number of the block of each event
    (Int64). passed: the same share at the edges of blocks, from 0 to 1, one more than there are blocks.
    """

    at: np.ndarray
    block: np.ndarray
    passed: np.ndarray


def fit_common_growth(strata: Sequence[Stratum]) -> dict:
    """Return the common growth of strata, with tests that hold when events come in bursts and their rate drifts.

    Strata of different ages, each with a constant rate, show a joint trend that none has (Simpson). So each stratum has
    its own rate and its own time. beta = N / sum ln(1 / at), by maximum likelihood, with its interval on the log scale.
    effective_blocks: of beta. trend_t, trend_p: test of beta = 1 by the mean event time (Laplace's statistic, in which
    all blocks weigh), in standard errors. homogeneity_p: test that no stratum has another beta, by the smallest p of
    their mean times, multiplied by their number. Variances are those of blocks about the fitted growth
    (`block_spread`), not Poisson's. reasons: why values are missing.
    """
    n = sum(stratum.at.size for stratum in strata)
    blocks = max((stratum.passed.size - 1 for stratum in strata), default=0)
    logs = -sum(float(np.log(stratum.at).sum()) for stratum in strata)
    reasons: list[str] = []
    row = {"strata": len(strata), "reasons": reasons}
    if n < FEWEST_EVENTS or blocks < FEWEST_BLOCKS or not logs:
        return row | {"reasons": [f"fewer than {FEWEST_BLOCKS} blocks of time, or {FEWEST_EVENTS} events: no trend"]}
    beta = n / logs
    se, effective = _score_se(strata, _log_scores, beta)
    se *= beta / n
    row |= {"beta": beta, "effective_blocks": float(effective)}
    row |= dict(zip(("trend_t", "trend_p"), _test_mean_time(strata, beta, 1.0), strict=True))
    if effective >= FEWEST and np.isfinite(se):
        factor = float(np.exp(se * stdtrit(effective - 1, 1 - TAIL)))
        row |= {"ci_low": beta / factor, "ci_high": beta * factor}
    else:
        reasons.append(f"{effective:.1f} effective blocks of time, fewer than {FEWEST}: no interval of beta")
    if row["trend_p"] is None:
        reasons.append("too few effective blocks of time: no test of trend")
    if len(strata) > 1:
        tested = [stratum for stratum in strata if stratum.at.size >= FEWEST_EVENTS]
        p_values = [_test_mean_time([s], s.at.size / -float(np.log(s.at).sum()), beta)[1] for s in tested]
        valid_p = [p for p in p_values if p is not None]
        row["homogeneity_p"] = min(len(valid_p) * min(valid_p), 1.0) if valid_p else None
    return row


def _test_mean_time(strata: Sequence[Stratum], fitted: float, null: float) -> tuple[float | None, float | None]:
    """Return (t, two-sided p) of a growth `null` by the mean event time; the variance is about the fitted growth."""
    se, n_effective = _score_se(strata, _mean_scores, fitted)
    if n_effective < FEWEST or not np.isfinite(se):
        return None, None
    t = sum(float((stratum.at - null / (null + 1)).sum()) for stratum in strata) / float(se)
    return t, raise_to_smallest(float(2 * stdtr(n_effective - 1, -abs(t))))[0]


# (stratum, beta) -> scores of the events; at the edges, integrals over time, up to each edge and for one event, of the
# score and of its square.
Scores = Callable[[Stratum, float], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _log_scores(stratum: Stratum, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the `Scores` of the likelihood: its derivative in beta, per event."""
    power, log = stratum.passed**beta, np.log(np.where(stratum.passed > 0, stratum.passed, 1))
    return 1 / beta + np.log(stratum.at), power * log, power * (log**2 + 1 / beta**2)


def _mean_scores(stratum: Stratum, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the `Scores` of the mean event time: `at` less its expected value."""
    share, mean = stratum.passed, beta / (beta + 1)
    square = beta / (beta + 2) * share**2 - 2 * mean**2 * share + mean**2
    return stratum.at - mean, mean * share**beta * (share - 1), share**beta * square


def _score_se(strata: Sequence[Stratum], scores: Scores, beta: float) -> tuple[float, float]:
    """Return the standard error of the sum of all scores, and the effective number of blocks behind it."""
    blocks = max(stratum.passed.size - 1 for stratum in strata)
    residual, variance, event_squares = np.zeros((3, blocks))
    for stratum in strata:
        event_scores, expected, squares = scores(stratum, beta)
        residual += np.bincount(stratum.block, weights=event_scores, minlength=blocks) - stratum.at.size * np.diff(
            expected
        )
        event_squares += np.bincount(stratum.block, weights=event_scores**2, minlength=blocks)
        variance += stratum.at.size * np.diff(squares)
    se, n_effective = block_spread(residual, variance / variance.sum(), event_squares)
    return float(se), float(n_effective)
