"""Whether strata fail alike: log-rank tests of all strata together and of every two."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import gammaincc

from ttf.analyses.factors.estimate_hazards import LOGRANK
from ttf.stats.basics.holm import with_holm
from ttf.stats.basics.order import distinct, places
from ttf.stats.basics.p_value import never_zero
from ttf.stats.clustered import FEWEST, UNCLUSTERED, Clusters, too_few
from ttf.stats.durations.clustered_lives import ClusterLives
from ttf.stats.durations.strata import Lives, Times, counted_lives, times_by_stratum

# The pairs grow with the square of the strata, and with them what the adjustment costs every one.
MOST_STRATA = 12
# Below so many expected events the distribution of the statistic is only roughly chi-squared.
FEWEST_EXPECTED = 5

TOO_FEW_STRATA = "fewer than two strata of known durations"
NO_CONTRAST = "no event while two strata were at risk: nothing to compare"
NO_SPREAD = "no spread between clusters to be seen: no clustered p-value"
ROUGH = f"fewer than {FEWEST_EXPECTED} events expected in a stratum: the p-value is rough"


def logrank(lives: Lives, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """The log-rank test (Mantel 1966; Peto & Peto 1972) of each stratification, and of every two of its strata.

    lives, errors: see `CountedLives`; `all`, one stratum, is passed over. Of more than MOST_STRATA strata those with
    the most lives are compared, and the reason says so. A row of kind `overall` per stratification, then one of kind
    `pairwise` per pair stratum_a, stratum_b, in the order of the strata. strata: how many are compared; n, events:
    theirs. statistic: chi-squared with df degrees of freedom under equal hazards, from the hypergeometric variance with
    its factor for ties. p_adjusted: Holm over the overall tests of all stratifications, and over the pairs of each.
    What cannot be tested is blank, with a reason.

    p_clustered holds when clusters of lives differ. The difference of observed and expected events is a sum over lives
    (martingale residuals; Lin & Wei 1989), and its covariance V that of the sums by cluster, whether a cluster is in
    one stratum or in several; where every stratum compared is one cluster (each system), of those by their groups (its
    nodes). The statistic is the exact one with the first two moments that V gives it (Rao & Scott 1984; Satterthwaite);
    with one degree of freedom the square of the difference over its clustered variance. Sums by cluster under the null
    hypothesis include what their cluster pulls, so that the test rejects too seldom rather than too often with few
    clusters: true nulls (log SD of users 1, sizes by Zipf's law) at .05 in .03 to .07 of the time with two strata, .01
    to .05 with four, where the exact test rejects .5 to .98. Dividing by 1 - h, or F with the effective clusters, makes
    it .00 to .03, and is not done.
    """
    lives = counted_lives(lives, [event])
    code = lives.events.index(event) + 1
    overall, rows = [], []
    for stratum_by in strata:
        if stratum_by == "all":
            continue
        by_cluster = lives.by_cluster(stratum_by)
        found = [
            (label, _Stratum(times, by_cluster.get(label), code))
            for label, times in times_by_stratum(lives, event, stratum_by)
            if times.lives
        ]
        largest = sorted(range(len(found)), key=lambda place: (-found[place][1].times.lives, place))[:MOST_STRATA]
        compared = [found[place] for place in sorted(largest)]
        names = {"event": event, "stratum_by": stratum_by}
        whole = names | {"kind": "overall"} | _test([of for _, of in compared])
        if len(found) > len(compared):
            cut = f"of {len(found)} strata the {len(compared)} with most units at risk"
            whole["reason"] = "; ".join(filter(None, (cut, whole["reason"])))
        pairs = [
            names | {"kind": "pairwise", "stratum_a": a, "stratum_b": b} | _test([of_a, of_b])
            for (a, of_a), (b, of_b) in combinations(compared, 2)
        ]
        _with_holm(pairs)
        overall.append(whole)
        rows += [whole, *pairs]
    _with_holm(overall)
    return LOGRANK.frame(rows)


def _with_holm(rows: list[dict]) -> None:
    with_holm(rows)
    with_holm(rows, "p_clustered", "p_adjusted_clustered")


class _Stratum(NamedTuple):
    """Lives of one stratum, all and by cluster (None: nothing names any); code: of the event there."""

    times: Times
    of: ClusterLives | None
    code: int


def _test(compared: list[_Stratum]) -> dict:
    strata = [stratum.times for stratum in compared]
    failures = sum(times.failures for times in strata)
    row = {"strata": len(strata), "n": sum(times.lives for times in strata), "events": failures, "reason": None}
    row |= _clusters(compared)
    if len(strata) < 2:
        return row | {"reason": TOO_FEW_STRATA}
    at = np.unique(np.concatenate([times.seconds[times.events > 0] for times in strata]))
    at_risk = np.stack([times.at_risk(at) for times in strata])
    events = np.stack([_events_at(times, at) for times in strata]).sum(axis=0)
    everybody = at_risk.sum(axis=0)
    share = at_risk / everybody
    expected = (events * share).sum(axis=1)
    # The hypergeometric variance of the events at one age; where only one life is at risk there is none.
    spread = np.divide(events * (everybody - events), everybody - 1, out=np.zeros(at.size), where=everybody > 1)
    observed = np.array([times.failures for times in strata])
    # A stratum that is never at risk together with another when an event comes has nothing to be compared by.
    of_use = np.flatnonzero((spread * share * (1 - share)).sum(axis=1) > 0)
    if of_use.size < 2:
        return row | {"reason": NO_CONTRAST}
    # Differences add up to 0: one stratum follows from the others.
    kept = of_use[1:]
    variance = np.array([[(spread * share[a] * ((a == b) - share[b])).sum() for b in kept] for a in kept])
    difference = (observed - expected)[kept]
    statistic = float(difference @ np.linalg.solve(variance, difference))
    p, tiny = never_zero(float(gammaincc(kept.size / 2, statistic / 2)))
    p_clustered, untold = None, UNCLUSTERED
    if row["clusters"] is not None:
        untold = too_few(row["clusters"], row["cluster_by"], "p-value")
    if (row["clusters"] or 0) >= FEWEST:
        scores = _scores(compared, at, share, events / everybody, kept)
        p_clustered = _clustered_p(statistic, variance, scores)
        untold = NO_SPREAD if p_clustered is None else None
    left_out = len(strata) - of_use.size
    reasons = (
        f"{left_out} strata without events to compare by are left out" if left_out else None,
        ROUGH if expected[of_use].min() < FEWEST_EXPECTED else None,
        tiny,
        untold,
    )
    why = "; ".join(filter(None, reasons)) or None
    return row | {"statistic": statistic, "df": kept.size, "p_value": p, "p_clustered": p_clustered, "reason": why}


def _clusters(compared: list[_Stratum]) -> dict:
    """cluster_by and clusters (Kish's effective number) of all lives compared; blank where nothing names any."""
    if not compared or any(stratum.of is None for stratum in compared):
        return {"cluster_by": None, "clusters": None}
    numbers, members = np.concatenate(_numbers(compared)), np.concatenate([stratum.of.members for stratum in compared])
    of_clusters = np.bincount(np.searchsorted(distinct(numbers), numbers), members)
    effective = Clusters(np.zeros(of_clusters.size, np.int64), of_clusters, 1).effective
    undivided = [stratum.of.by for stratum in compared if stratum.of.divided is None]
    return {"cluster_by": (undivided or [compared[0].of.by])[0], "clusters": float(effective[0])}


def _numbers(compared: list[_Stratum]) -> list[np.ndarray]:
    """Of each stratum the number of the cluster of each of `ClusterLives.members`.

    Strata that are one cluster each are compared by their groups, else each of these counts as the cluster that it is.
    """
    by_group = all(stratum.of.divided is not None for stratum in compared)
    return [
        of.cluster[of.first] if by_group or of.divided is None else np.full(of.first.size, of.divided)
        for of in (stratum.of for stratum in compared)
    ]


def _scores(
    compared: list[_Stratum], at: np.ndarray, share: np.ndarray, hazard: np.ndarray, kept: np.ndarray
) -> np.ndarray:
    """What each cluster adds to the difference of observed and expected events: clusters by kept strata.

    at: the ages of events; share: of those at risk there, each stratum's; hazard: of all at these ages.
    """
    passed = np.concatenate(([0.0], np.cumsum(hazard)))
    expected = [np.concatenate(([0.0], np.cumsum(share[stratum] * hazard))) for stratum in kept]
    numbers = _numbers(compared)
    known = distinct(*numbers)
    scores = np.zeros((known.size, kept.size))
    for stratum, (_, of, code) in enumerate(compared):
        # After how many events' ages a life ended; beyond all of these, whether it did so by one.
        ended = places(at, of.seconds + 1)
        hit = of.code == code
        ended[hit] += passed.size
        row = np.searchsorted(known, numbers[stratum])
        for column, other in enumerate(kept):
            mine = stratum == other
            censored = expected[column] - mine * passed
            failed = censored + mine - np.concatenate(([0.0], share[other]))
            added = of.by_cluster(of.lives * np.concatenate((censored, failed))[ended])
            np.add.at(scores[:, column], row, added)
    return scores


def _clustered_p(statistic: float, variance: np.ndarray, scores: np.ndarray) -> float | None:
    """The p-value of the statistic when its variance is that of the scores, a row for each cluster."""
    ratio = np.linalg.solve(variance, scores.T @ scores)
    trace, of_square = float(np.trace(ratio)), float(np.trace(ratio @ ratio))
    if not (trace > 0 and of_square > 0):
        return None
    return never_zero(float(gammaincc(trace**2 / of_square / 2, statistic * trace / of_square / 2)))[0]


def _events_at(times: Times, at: np.ndarray) -> np.ndarray:
    """The events of one stratum at each of some ages."""
    events = np.zeros(at.size, dtype=np.int64)
    hit = times.events > 0
    events[np.searchsorted(at, times.seconds[hit])] = times.events[hit]
    return events
