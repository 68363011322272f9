"""Time to the nearest outage of another member of the same place, observed and expected by chance.

A share near 1 by chance has no meaning: in long windows a clustered process lies even below an unclustered one.
Exchanged times keep, unlike uniform ones, days with many findings (by a sweep or a monitor) and units that fail often;
exchanged within kinds, they keep batches too. Shifted histories keep the repeated failures of one unit, but not the
days, so they reveal what the fleet has in common, such as a drifting rate. Jittered times keep that drift: only
clustering closer than the jitter shows.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from ttf.stats.basics.order import sort_order, sort_rows

# Later than any time; sums of two still fit an Int64.
NEVER = 1 << 61
# Upper limit of resampled outages over all replicates, and lower limit of replicates.
MOST_MOVED, FEWEST = 2_500_000, 20


def nearest_gaps(location: np.ndarray, member: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """Return for each event the seconds to the nearest of another member at its location; NEVER without one.

    Parameters
    ----------
    location, member : (n,) int numbers
    time_s : (n,) Int64 s

    Returns
    -------
    (n,) Int64 s

    Examples
    --------
    >>> nearest_gaps(np.array([0, 0, 0]), np.array([0, 1, 1]), np.array([100, 130, 170])).tolist()
    [30, 30, 70]
    """
    order = sort_order(location, time_s)
    gaps = np.empty(len(order), np.int64)
    gaps[order] = _nearest_gaps(location[order], member[order], time_s[order])
    return gaps


def sorted_nearest_gaps(location: np.ndarray, member: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """Return `nearest_gaps` sorted by location and time; faster if a location has few members."""
    location, time_s, member = sort_rows(location, time_s, member)
    return _nearest_gaps(location, member, time_s)


def _nearest_gaps(location: np.ndarray, member: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """Return the seconds from each event, sorted by location and time, to the nearest of another member there."""
    if not len(location):
        return np.zeros(0, np.int64)
    is_new_location = np.append(True, location[1:] != location[:-1])
    new_run = is_new_location.copy()
    new_run[1:] |= member[1:] != member[:-1]
    run_starts = np.flatnonzero(new_run)
    length = np.diff(run_starts, append=len(location))
    is_place_start = is_new_location[run_starts]
    previous_s = np.repeat(np.where(is_place_start, -NEVER, time_s[run_starts - 1]), length)
    next_s = np.repeat(np.append(np.where(is_place_start[1:], NEVER, time_s[run_starts[1:]]), NEVER), length)
    gap = np.minimum(time_s - previous_s, next_s - time_s)
    return np.where(gap > NEVER >> 1, NEVER, gap)


def longest_chain(location: np.ndarray, time_s: np.ndarray, window_s: int) -> int:
    """Return the most events of a location in which each follows the one before within window_s.

    Parameters
    ----------
    location : (n,) int numbers
    time_s : (n,) Int64 s
    window_s : s

    Returns
    -------
    number of events

    Examples
    --------
    >>> longest_chain(np.array([0, 0, 0, 1]), np.array([0, 50, 200, 210]), 60)
    2
    """
    if not len(time_s):
        return 0
    order = np.lexsort((time_s, location))
    breaks = (np.diff(location[order]) != 0) | (np.diff(time_s[order]) > window_s)
    chain_ends = np.flatnonzero(np.append(breaks, True))
    return int(np.diff(chain_ends, prepend=-1).max())


def replicate_count(n: int, limit: int) -> int:
    """Return the number of replicates for n outages: `limit`, or fewer if so many outages cost too much."""
    return min(limit, max(MOST_MOVED // max(n, 1), FEWEST))


def permute_times(rng: np.random.Generator, time_s: np.ndarray, kind: np.ndarray, times: int) -> Iterator[np.ndarray]:
    """Yield `times` random permutations of time_s within each kind. kind: numbers from 0 on."""
    if not kind.any():
        for _ in range(times):
            yield rng.permutation(time_s)
        return
    # NumPy's stable sort is many times faster for 16-bit integers.
    kind = kind.astype(np.uint16) if kind.max() < 1 << 16 else kind
    kind_order = np.argsort(kind, kind="stable")
    for _ in range(times):
        order = rng.permutation(len(kind))
        exchanged = np.empty_like(time_s)
        exchanged[kind_order] = time_s[order[np.argsort(kind[order], kind="stable")]]
        yield exchanged


def shift_times(
    rng: np.random.Generator,
    time_s: np.ndarray,
    member: np.ndarray,
    from_s: np.ndarray,
    until_s: np.ndarray,
    times: int,
) -> Iterator[np.ndarray]:
    """Yield `times` histories, each member's times moved by one random time, cyclically within its watch."""
    length = np.maximum(until_s - from_s, 1)
    for _ in range(times):
        shift_s = rng.random(member.max() + 1)[member] * length
        yield from_s + (time_s - from_s + shift_s.astype(np.int64)) % length


def jitter_times(
    rng: np.random.Generator, time_s: np.ndarray, from_s: np.ndarray, until_s: np.ndarray, jitter_s: int, times: int
) -> Iterator[np.ndarray]:
    """Yield `times` histories, each time moved by up to jitter_s either way, within the watch."""
    first, last = np.maximum(time_s - jitter_s, from_s), np.minimum(time_s + jitter_s, until_s)
    for _ in range(times):
        yield first + (rng.random(time_s.size) * (last - first)).astype(np.int64)


def covered_shares(events: pl.DataFrame, spans: pl.DataFrame, key: str, width_s: int) -> dict:
    """Return, for each member with events and a span above 0, the share of its time that is near an event.

    Parameters
    ----------
    events : columns `key` and time_s (Int64, s), in any order
    spans : columns `key` and span_s (Int64, s), the time that each member was watched
    key : column of the members
    width_s : time after an event that counts as near, in s

    Returns
    -------
    member -> `covered_share`, at most 1

    Examples
    --------
    >>> events = pl.DataFrame({"node": ["a", "a", "b"], "time_s": [0, 5, 50]})
    >>> covered_shares(events, pl.DataFrame({"node": ["a", "b"], "span_s": [100, 40]}), "node", 10)
    {'a': 0.15, 'b': 0.25}
    """
    times = events.group_by(key).agg(pl.col("time_s").unique().sort()).join(spans, on=key).sort(key)
    rows = (row for row in times.iter_rows() if row[-1] > 0)
    return {member: min(1.0, covered_share(np.array(times_s), span_s, width_s)) for member, times_s, span_s in rows}


def covered_share(starts: np.ndarray, span_s: int, width_s: int) -> float:
    """Return the share of a circle of span_s seconds that is at most width_s after a start.

    Parameters
    ----------
    starts : int array (n,), ascending, in s
    span_s, width_s : in s

    Returns
    -------
    share from 0 to 1 if all starts are within one span

    Examples
    --------
    >>> covered_share(np.array([10, 20, 60]), span_s=100, width_s=15)
    0.4
    """
    return float(np.minimum(np.diff(starts, append=starts[0] + span_s), width_s).clip(0).sum() / span_s)
