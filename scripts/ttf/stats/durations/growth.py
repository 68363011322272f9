"""Whether failures of a fleet become more or less frequent: Crow-AMSAA model, trend tests and change point.

Events of a fleet watched from time 0 up to, but without, T. The Crow-AMSAA (power law) process has the rate l b t^(b -
1); b above 1 means worsening (MIL-HDBK-189; NIST Dataplot, Reliability Trends Test). A growing fleet has more events
for that reason alone. So time is cumulative exposure, which changes nothing for a fleet of constant size.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, chdtrc, gammainccinv, gammaincinv, kolmogorov, ndtr, stdtr, stdtrit

from ttf.engine.columns import FEWEST_BLOCKS
from ttf.stats.basics.p_value import raise_to_smallest
from ttf.stats.clustered import FEWEST, block_spread

FEWEST_EVENTS = 3
TAIL = 0.025


def accumulate_exposure(times: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the exposure (Int64) up to each of `times`, summed over units watched from begin to end (Int64 each)."""
    return _sum_elapsed(times, np.sort(begin)) - _sum_elapsed(times, np.sort(end))


def _sum_elapsed(times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return, for each of `times`, the sum of the time since each of the edges before it."""
    n_before = np.searchsorted(edges, times)
    return n_before * times - np.concatenate(([0], np.cumsum(edges)))[n_before]


def fit_growth(at: np.ndarray, total: float) -> dict:
    """Return the columns of a stratum of `track_outages`; `at`: sorted event times above 0, at most `total`.

    n; beta = n / sum ln(T / t) with the exact interval beta chi2(2n) / 2n; laplace_u = (mean t - T / 2) / (T / sqrt(12
    n)). Two-sided p-values: the Laplace and the military handbook test (2 sum ln(T / t) is chi2(2n)) assume a Poisson
    process. Lewis and Robinson's test, laplace_u over the coefficient of variation of the gaps, does not (Lewis &
    Robinson 1974; Wang & Coit 2005). change_place: index of the event furthest from a constant rate, with Kolmogorov's
    change_point_p. change_point_p_corrected: its distance over the same coefficient, because the event share of a
    renewal process deviates more by that factor (Donsker). reasons: why values are missing.
    """
    n = at.size
    if n < FEWEST_EVENTS:
        return {"n": n, "reasons": [f"fewer than {FEWEST_EVENTS} events: no trend"]}
    logs = float(np.log(total / at).sum())
    gaps = np.diff(at, prepend=0)
    laplace = float((at.mean() - total / 2) / (total / np.sqrt(12 * n)))
    event_share = np.arange(n + 1) / n
    distance = np.maximum(event_share[1:] - at / total, at / total - event_share[:-1])
    change_index = int(distance.argmax())
    # Stephens 1970: within 0.005 of the exact p-value below 0.2, from 5 events on.
    corrected = distance[change_index] * (np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n))
    reasons: list[str] = []
    columns = {"n": n, "reasons": reasons, "laplace_u": laplace, "laplace_p": _two_sided_normal_p(laplace)}
    columns |= {"change_place": change_index, "change_point_p": _raise_to_smallest_p(kolmogorov(corrected))}
    if logs > 0:
        low, high = gammaincinv(n, TAIL) / logs, gammainccinv(n, TAIL) / logs
        columns |= {"beta": n / logs, "ci_low": float(low), "ci_high": float(high)}
        columns["mil_hdbk_p"] = _raise_to_smallest_p(min(2 * min(chdtr(2 * n, 2 * logs), chdtrc(2 * n, 2 * logs)), 1))
    else:
        reasons.append("every event at the end of the watch: no beta")
    if variation := float(gaps.std(ddof=1) / gaps.mean()):
        columns["lewis_robinson_p"] = _two_sided_normal_p(laplace / variation)
        columns["change_point_p_corrected"] = _raise_to_smallest_p(kolmogorov(corrected / variation))
    else:
        reasons.append("gaps of one length: no Lewis-Robinson test")
    return columns


def _two_sided_normal_p(statistic: float) -> float:
    return _raise_to_smallest_p(2 * ndtr(-abs(statistic)))


def _raise_to_smallest_p(p: float) -> float:
    return raise_to_smallest(float(p))[0]


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
    return t, _raise_to_smallest_p(2 * stdtr(n_effective - 1, -abs(t)))


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
