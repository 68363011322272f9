"""The mean cumulative function: how many events a unit has had by a time, on average, with its robust interval.

M(t) = sum over event times up to t of d / w, d events among w units watched then (Nelson, Recurrent Events Data
Analysis, 2003); its variance that of the units' influences, which holds when they differ (Lawless & Nadeau 1995).
"""

import numpy as np

from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.stats.basics.normal import Z_95
from ttf.stats.durations.survival import thinned

# Units times steps that the variance is worked out for, at the most.
MOST_CELLS = 1 << 23


def mean_cumulative(
    times: np.ndarray, units: np.ndarray, begin: np.ndarray, end: np.ndarray, owner: np.ndarray, most_steps: int
) -> dict[str, np.ndarray]:
    """time_s, at_risk, events, mcf, ci_low, ci_high at event times, at most so many; limits NaN of fewer than 4 units.

    times, units: of each event when, and the number of its unit; begin, end, owner: of each watch, over which a unit is
    at risk after begin up to end. All Int64.
    """
    at, events = np.unique(times, return_counts=True)
    at_risk = np.searchsorted(np.sort(begin), at) - np.searchsorted(np.sort(end), at)
    number = int(owner.max(initial=-1)) + 1
    steps = {"time_s": at, "at_risk": at_risk, "events": events, "mcf": np.cumsum(events / at_risk)}
    kept = thinned(steps | {"place": np.arange(at.size)}, min(most_steps, max(2, MOST_CELLS // max(number, 1))))
    place = kept.pop("place")
    spread = np.full(place.size, np.nan)
    if np.unique(owner).size >= FEWEST_CLUSTERS:
        spread = Z_95 * np.sqrt(_variance(steps, place, times, units, begin, end, owner)) / kept["mcf"]
    return kept | {"ci_low": kept["mcf"] * np.exp(-spread), "ci_high": kept["mcf"] * np.exp(spread)}


def _variance(steps: dict, place: np.ndarray, times, units, begin, end, owner) -> np.ndarray:
    """sum over units of (sum over its watched times of (d_own - d / w) / w)^2, at the places of the steps."""
    at, at_risk, events = (steps[name] for name in ("time_s", "at_risk", "events"))
    expected = np.concatenate(([0.0], np.cumsum(events / at_risk**2)))
    number = int(owner.max()) + 1
    first, last = np.searchsorted(at, begin, side="right"), np.searchsorted(at, end, side="right")
    order = np.argsort(times, kind="stable")
    step_of, units = np.searchsorted(at, times[order]), units[order]
    until = np.searchsorted(step_of, place, side="right")
    own, done, variance = np.zeros(number), 0, np.empty(place.size)
    for row, (step, upto) in enumerate(zip(place, until, strict=True)):
        own += np.bincount(units[done:upto], weights=1 / at_risk[step_of[done:upto]], minlength=number)
        done = upto
        watched = expected[np.minimum(last, step + 1)] - expected[np.minimum(first, step + 1)]
        variance[row] = ((own - np.bincount(owner, weights=watched, minlength=number)) ** 2).sum()
    return variance
