"""Mean cumulative function: the mean number of events of a unit by a time, with a robust interval.

M(t) = sum over event times up to t of d / w, d events among w units watched then (Nelson 1995). Its variance is that
of the units' influences, which holds when units differ (Lawless & Nadeau 1995).
"""

import numpy as np

from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.stats.basics.normal import Z_95
from ttf.stats.durations.survival import thin_arrays

# Upper limit of units times steps in the variance.
MOST_CELLS = 1 << 23


def mean_cumulative(
    times: np.ndarray, units: np.ndarray, begin: np.ndarray, end: np.ndarray, owner: np.ndarray, most_steps: int
) -> dict[str, np.ndarray]:
    """Return the mean cumulative number of events per unit, at up to `most_steps` event times.

    Parameters
    ----------
    times, units : time and unit number of each event (Int64)
    begin, end, owner : start, end and unit number of each watch (Int64)
        A unit is at risk after `begin`, up to and including `end`.
    most_steps : number of event times at most

    Returns
    -------
    time_s, at_risk, events, mcf, ci_low, ci_high: arrays of one length. Limits are NaN for fewer than FEWEST_CLUSTERS
    units.

    References
    ----------
    Nelson (1995), Technometrics 37, as in the MCF of SAS; Lawless & Nadeau (1995), Technometrics 37, as in R's reda

    Examples
    --------
    >>> watch = np.array([0, 0]), np.array([100, 50]), np.array([0, 1])
    >>> mean_cumulative(np.array([20, 80]), np.array([0, 0]), *watch, 9)["mcf"]
    array([0.5, 1.5])
    """
    at_s, events = np.unique(times, return_counts=True)
    at_risk = np.searchsorted(np.sort(begin), at_s) - np.searchsorted(np.sort(end), at_s)
    n_units = int(owner.max(initial=-1)) + 1
    steps = {"time_s": at_s, "at_risk": at_risk, "events": events, "mcf": np.cumsum(events / at_risk)}
    curve = thin_arrays(steps | {"index": np.arange(at_s.size)}, min(most_steps, max(2, MOST_CELLS // max(n_units, 1))))
    indices = curve.pop("index")
    log_width = np.full(indices.size, np.nan)
    if np.unique(owner).size >= FEWEST_CLUSTERS:
        log_width = Z_95 * np.sqrt(_variance(steps, indices, times, units, begin, end, owner)) / curve["mcf"]
    return curve | {"ci_low": curve["mcf"] * np.exp(-log_width), "ci_high": curve["mcf"] * np.exp(log_width)}


def _variance(
    steps: dict,
    indices: np.ndarray,
    times: np.ndarray,
    units: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    owner: np.ndarray,
) -> np.ndarray:
    """Sum over units of (sum over its watched times of (d_own - d / w) / w)^2, at the indices of the steps."""
    event_times, at_risk, events = (steps[name] for name in ("time_s", "at_risk", "events"))
    expected = np.concatenate(([0.0], np.cumsum(events / at_risk**2)))
    n_units = int(owner.max()) + 1
    first, last = np.searchsorted(event_times, begin, side="right"), np.searchsorted(event_times, end, side="right")
    order = np.argsort(times, kind="stable")
    event_steps, units = np.searchsorted(event_times, times[order]), units[order]
    stops = np.searchsorted(event_steps, indices, side="right")
    unit_sums, start, variance = np.zeros(n_units), 0, np.empty(indices.size)
    for row, (step, stop) in enumerate(zip(indices, stops, strict=True)):
        unit_sums += np.bincount(units[start:stop], weights=1 / at_risk[event_steps[start:stop]], minlength=n_units)
        start = stop
        watched = expected[np.minimum(last, step + 1)] - expected[np.minimum(first, step + 1)]
        variance[row] = ((unit_sums - np.bincount(owner, weights=watched, minlength=n_units)) ** 2).sum()
    return variance
