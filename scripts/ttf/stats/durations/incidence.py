"""Cumulative incidence of competing events by age (Aalen-Johansen).

Also the incidence at given ages, with the range that ends at unknown times allow.
"""

from collections.abc import Sequence

import numpy as np

from ttf.stats.basics.normal import Z_95
from ttf.stats.basics.order import distinct_values
from ttf.stats.durations.clustered_durations import ClusterDurations, Influences, limits_log_log
from ttf.stats.durations.strata import Times

# The incidence counts as 1 above this value, because of rounding.
ONE = 1 - 1e-9


LIMITS = ("ci_low", "ci_high", "ci_low_clustered", "ci_high_clustered")

# (seconds, durations): number of durations of each age.
AgeCounts = tuple[np.ndarray, np.ndarray]


def incidence_curves(
    event_times: list[Times], clusters: ClusterDurations | None, codes: list[int]
) -> list[dict[str, np.ndarray]]:
    """Estimate the cumulative incidence of each of several competing events.

    Parameters
    ----------
    event_times : durations in s by distinct length, one for each event; the same durations in each
    clusters : the same durations by cluster; None for no clustered limits
    codes : of the events in `clusters`

    Returns
    -------
    for each event the columns of its curve, arrays with an element for each distinct duration: time_s, at_risk,
    censored, events, events_so_far, without_time, incidence, se, ci_low, ci_high and both limits clustered

    Notes
    -----
    Aalen & Johansen (1978), Scand. J. Stat. 5: the sum of S(t-) d / n, with S the survival of all events. Variance by
    the delta method (Dinse & Larson 1986, Biometrika 73), as in statsmodels; limits on the log(-log) scale.

    Examples
    --------
    >>> seconds, ended = np.array([10, 20, 30]), np.array([1, 1, 1])
    >>> failures, others = (Times(seconds, ended, np.array(events)) for events in ([1, 0, 1], [0, 1, 0]))
    >>> incidence_curves([failures, others], None, [1, 2])[0]["incidence"].round(4)
    array([0.3333, 0.3333, 0.6667])
    """
    first = event_times[0]
    events = sum(times.events for times in event_times)
    at_risk = first.at_risk(first.seconds)
    shared = {"time_s": first.seconds, "at_risk": at_risk, "censored": first.ended - events}
    if first.durations == 0:
        blanks = dict.fromkeys(("incidence", "se", *LIMITS), np.full(1, np.nan))
        blanks |= shared | dict.fromkeys(("events", "events_so_far"), first.events)
        return [blanks | {"without_time": np.array([times.without_time])} for times in event_times]
    survivors = at_risk - events
    survival_before = np.concatenate(([1.0], np.cumprod(survivors / at_risk)[:-1]))
    # The last term, with no survivors, is multiplied by a difference of 0 in every sum.
    greenwood = np.divide(events, at_risk * survivors, out=np.zeros(survival_before.size), where=survivors > 0)
    # Survival just before each age over the number at risk.
    weight = survival_before / at_risk
    inverse, hazard = np.divide(1, survivors, out=np.zeros(survival_before.size), where=survivors > 0), None
    blank_limits = np.full(survival_before.size, np.nan)
    if clusters is not None and not np.isnan(clusters.student()):
        influences = Influences(clusters, first.seconds)
        # Influence of durations on -log of survival.
        hazard = influences.accumulate(_influence_by_end(codes, inverse), np.cumsum(greenwood))
    curves = []
    for times, code in zip(event_times, codes, strict=True):
        d = times.events
        incidence = np.cumsum(weight * d)
        # The sums over ages s up to t of (I(t) - I(s))^2 greenwood, of weight^2 d (n - d) / n, and of
        # (I(t) - I(s)) weight d / n, with d events of n at risk and the products expanded.
        squares = incidence**2 * np.cumsum(greenwood) - 2 * incidence * np.cumsum(incidence * greenwood)
        squares += np.cumsum(incidence**2 * greenwood)
        binomial = np.cumsum(weight**2 * d * (at_risk - d) / at_risk)
        step = weight * d / at_risk
        cross_term = incidence * np.cumsum(step) - np.cumsum(incidence * step)
        # If the incidence is 1, the terms cancel up to rounding.
        se = np.where(incidence < ONE, np.sqrt(np.maximum(squares + binomial - 2 * cross_term, 0)), 0.0)
        base = np.where((incidence > 0) & (incidence < ONE), incidence, 0.5)
        # A spread beyond e^30 is an interval from 0 to 1 already.
        factor = np.exp(np.minimum(Z_95 * se / (-base * np.log(base)), 30))
        counts = {"events": d, "events_so_far": np.cumsum(d)}
        counts["without_time"] = np.full(d.size, times.without_time)
        limits = {"ci_low": base**factor, "ci_high": base ** (1 / factor)}
        limits |= {"ci_low_clustered": blank_limits, "ci_high_clustered": blank_limits}
        if hazard is not None:
            # The duration's own contribution, less the expected one while it was at risk.
            expected = np.cumsum(weight * d / at_risk + incidence * greenwood)
            influence = influences.accumulate(_influence_by_end(codes, incidence * inverse, {code: weight}), expected)
            half_width = influence.half_width(hazard, incidence) / np.where(incidence > 0, incidence, 1)
            low, high = limits_log_log(incidence, half_width)
            limits |= {"ci_low_clustered": low, "ci_high_clustered": high}
        curves.append(shared | counts | {"incidence": np.minimum(incidence, 1), "se": se} | limits)
    return curves


def _influence_by_end(
    codes: list[int], values: np.ndarray, extra: dict[int, np.ndarray] | None = None
) -> list[np.ndarray | None]:
    """Return, by code of the end (0: none), the influence by age: values, plus extra for some ends."""
    influences: list[np.ndarray | None] = [None] * (max(codes) + 1)
    for code in codes:
        influences[code] = values + extra[code] if extra and code in extra else values
    return influences


def estimate_incidence(
    age: int, index: int, recorded: Sequence[AgeCounts], unrecorded: Sequence[AgeCounts], censored: AgeCounts
) -> float:
    """Estimate the incidence of one event at an age, with unrecorded ends at given times (Aalen & Johansen 1978).

    Parameters
    ----------
    age : s
    index : of the event in `recorded`
    recorded, unrecorded : for each event the durations (s) that it ended and their numbers; those of `unrecorded` are
        an assumption
    censored : durations (s) that no event ended, and their numbers

    Returns
    -------
    incidence at `age`, between 0 and 1

    Examples
    --------
    >>> at, nobody = (np.array([10, 30]), np.array([1, 1])), (np.zeros(0, int), np.zeros(0, int))
    >>> other = np.array([20]), np.array([1])
    >>> round(estimate_incidence(15, 0, [at, other], [nobody, nobody], nobody), 4)
    0.3333
    """
    events = [
        tuple(map(np.concatenate, zip(known_ends, unknown_ends, strict=True)))
        for known_ends, unknown_ends in zip(recorded, unrecorded, strict=True)
    ]
    all_ends = [*events, censored]
    n = sum(int(count.sum()) for _, count in all_ends)
    all_ends = [(end_s[end_s <= age], count[end_s <= age]) for end_s, count in all_ends]
    seconds = distinct_values(*(end_s for end_s, _ in all_ends))
    end_counts = [np.bincount(np.searchsorted(seconds, end_s), count, seconds.size) for end_s, count in all_ends]
    at_risk = n - np.concatenate(([0], np.cumsum(sum(end_counts))))[:-1]
    survival_before = np.concatenate(([1.0], np.cumprod(1 - sum(end_counts[:-1]) / at_risk)[:-1]))
    return float(min(1.0, (survival_before * end_counts[index] / at_risk).sum()))
