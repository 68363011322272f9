"""How near in time the next outage of another member of the same place is, and what chance would make of it.

A share near 1 by chance says nothing: in long windows a clustered process lies even below one without clusters. What
exchanged times keep, and uniform ones do not, are days on which many are found, by a sweep or a monitor, and units that
fail often; exchanged within kinds, they keep batches too. What shifted histories keep is how one unit fails again and
again; they do not keep the days, so that they show what the whole fleet has in common, a rate that drifts among it.
What jittered times keep is that drift: only what is nearer than the jitter shows against them.
"""

from collections.abc import Iterator

import numpy as np

from ttf.stats.basics.order import order_by, sorted_rows

# Farther than any time, and so far that sums of two are numbers still.
NEVER = 1 << 61
# Outages that are moved about in all, each at least FEWEST times.
MOST_MOVED, FEWEST = 2_500_000, 20


def nearest(place: np.ndarray, member: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """Seconds to the nearest event, before or after, of another member of the place; NEVER without any. Int64 all."""
    order = order_by(place, time_s)
    found = np.empty(len(order), np.int64)
    found[order] = _gaps(place[order], member[order], time_s[order])
    return found


def nearest_sorted(place: np.ndarray, member: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """The same, by place and time; the smaller the numbers of members within a place, the quicker."""
    place, time_s, member = sorted_rows(place, time_s, member)
    return _gaps(place, member, time_s)


def _gaps(place: np.ndarray, member: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """Of events by place and time: the nearest others of an event stand at both ends of the run of its member."""
    if not len(place):
        return np.zeros(0, np.int64)
    new_place = np.append(True, place[1:] != place[:-1])
    new_run = new_place.copy()
    new_run[1:] |= member[1:] != member[:-1]
    first = np.flatnonzero(new_run)
    length = np.diff(first, append=len(place))
    alone = new_place[first]
    before = np.repeat(np.where(alone, -NEVER, time_s[first - 1]), length)
    after = np.repeat(np.append(np.where(alone[1:], NEVER, time_s[first[1:]]), NEVER), length)
    gap = np.minimum(time_s - before, after - time_s)
    return np.where(gap > NEVER >> 1, NEVER, gap)


def longest_chain(place: np.ndarray, time_s: np.ndarray, window_s: int) -> int:
    """The most events of a place of which each is at most window_s after the one before."""
    if not len(time_s):
        return 0
    order = np.lexsort((time_s, place))
    breaks = (np.diff(place[order]) != 0) | (np.diff(time_s[order]) > window_s)
    ends = np.flatnonzero(np.append(breaks, True))
    return int(np.diff(ends, prepend=-1).max())


def by_chance(
    others: np.ndarray, time_s: np.ndarray, from_s: np.ndarray, until_s: np.ndarray, window_s: int
) -> np.ndarray:
    """P(any of so many others is within the window), each falling anywhere between from_s and until_s alike."""
    inside = np.minimum(time_s + window_s, until_s) - np.maximum(time_s - window_s, from_s)
    part = np.clip(inside / np.maximum(until_s - from_s, 1), 0, 1)
    return 1 - (1 - part) ** others


def others_in_place(place: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Of each event, how many events other members of its place have. member: unique over places."""
    return np.bincount(place)[place] - np.bincount(member)[member]


def replicates(n: int, asked: int) -> int:
    """How many times n outages are moved about."""
    return min(asked, max(MOST_MOVED // max(n, 1), FEWEST))


def permuted(rng: np.random.Generator, time_s: np.ndarray, kind: np.ndarray, times: int) -> Iterator[np.ndarray]:
    """The times exchanged at random among events of one kind (numbers from 0 on), so many times."""
    if not kind.any():
        for _ in range(times):
            yield rng.permutation(time_s)
        return
    # Of numbers of 16 bits NumPy's stable sort is many times as fast.
    kind = kind.astype(np.uint16) if kind.max() < 1 << 16 else kind
    by_kind = np.argsort(kind, kind="stable")
    for _ in range(times):
        order = rng.permutation(len(kind))
        found = np.empty_like(time_s)
        found[by_kind] = time_s[order[np.argsort(kind[order], kind="stable")]]
        yield found


def shifted(
    rng: np.random.Generator,
    time_s: np.ndarray,
    member: np.ndarray,
    from_s: np.ndarray,
    until_s: np.ndarray,
    times: int,
) -> Iterator[np.ndarray]:
    """The times, those of each member moved on by one random time, and from the end of the watch to its begin."""
    length = np.maximum(until_s - from_s, 1)
    for _ in range(times):
        by = rng.random(member.max() + 1)[member] * length
        yield from_s + (time_s - from_s + by.astype(np.int64)) % length


def jittered(
    rng: np.random.Generator, time_s: np.ndarray, from_s: np.ndarray, until_s: np.ndarray, jitter_s: int, times: int
) -> Iterator[np.ndarray]:
    """The times, each moved by up to jitter_s either way, within the watch."""
    first, last = np.maximum(time_s - jitter_s, from_s), np.minimum(time_s + jitter_s, until_s)
    for _ in range(times):
        yield first + (rng.random(time_s.size) * (last - first)).astype(np.int64)
