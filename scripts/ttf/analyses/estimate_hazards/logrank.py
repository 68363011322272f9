"""Whether strata fail alike: log-rank tests of all strata together and of every two."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl
from scipy.special import gammaincc

from ttf.analyses.estimate_hazards import LOGRANK
from ttf.stats.holm import with_holm
from ttf.stats.p_value import never_zero
from ttf.stats.strata import Lives, Times, times_by_stratum

# The pairs grow with the square of the strata, and with them what the adjustment costs every one.
MOST_STRATA = 12
# Below so many expected events the distribution of the statistic is only roughly chi-squared.
FEWEST_EXPECTED = 5

TOO_FEW_STRATA = "fewer than two strata with lives of known duration"
NO_CONTRAST = "no event while two strata were at risk: nothing to compare"
ROUGH = f"fewer than {FEWEST_EXPECTED} events expected in a stratum: the p-value is rough"


def logrank(lives: Lives, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """The log-rank test (Mantel 1966; Peto & Peto 1972) of each stratification, and of every two of its strata.

    lives, errors: see `CountedLives`; `all`, one stratum, is passed over. Of more than MOST_STRATA strata those with
    the most lives are compared, and the reason says so. A row of kind `overall` per stratification, then one of kind
    `pairwise` per pair stratum_a, stratum_b, in the order of the strata. strata: how many are compared; n, events:
    theirs. statistic: chi-squared with df degrees of freedom under equal hazards, from the hypergeometric variance with
    its factor for ties. p_adjusted: Holm over the overall tests of all stratifications, and over the pairs of each.
    What cannot be tested is blank, with a reason.
    """
    overall, rows = [], []
    for stratum_by in strata:
        if stratum_by == "all":
            continue
        found = [(label, times) for label, times in times_by_stratum(lives, event, stratum_by) if times.lives]
        largest = sorted(range(len(found)), key=lambda place: (-found[place][1].lives, place))[:MOST_STRATA]
        compared = [found[place] for place in sorted(largest)]
        names = {"event": event, "stratum_by": stratum_by}
        whole = names | {"kind": "overall"} | _test([times for _, times in compared])
        if len(found) > len(compared):
            cut = f"of {len(found)} strata the {len(compared)} with the most lives"
            whole["reason"] = "; ".join(filter(None, (cut, whole["reason"])))
        pairs = [
            names | {"kind": "pairwise", "stratum_a": a, "stratum_b": b} | _test([of_a, of_b])
            for (a, of_a), (b, of_b) in combinations(compared, 2)
        ]
        with_holm(pairs)
        overall.append(whole)
        rows += [whole, *pairs]
    with_holm(overall)
    return LOGRANK.frame(rows)


def _test(strata: list[Times]) -> dict:
    failures = sum(times.failures for times in strata)
    row = {"strata": len(strata), "n": sum(times.lives for times in strata), "events": failures, "reason": None}
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
    left_out = len(strata) - of_use.size
    reasons = (
        f"{left_out} strata without events to compare by are left out" if left_out else None,
        ROUGH if expected[of_use].min() < FEWEST_EXPECTED else None,
        tiny,
    )
    why = "; ".join(filter(None, reasons)) or None
    return row | {"statistic": statistic, "df": kept.size, "p_value": p, "reason": why}


def _events_at(times: Times, at: np.ndarray) -> np.ndarray:
    """The events of one stratum at each of some ages."""
    events = np.zeros(at.size, dtype=np.int64)
    hit = times.events > 0
    events[np.searchsorted(at, times.seconds[hit])] = times.events[hit]
    return events
