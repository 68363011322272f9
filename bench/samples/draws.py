"""Draws for the synthetic traces that come out the same on every machine, and files that are there whole or not at all.

Every draw is a uniform number or a permutation from a seeded generator and goes through tables of rounded numbers, so
that no result hangs on the last bit of a logarithm or on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import NormalDist
from typing import BinaryIO

import numpy as np
import polars as pl
from ttf.engine.errors import StudyError
from ttf.raw.packed_samples import identifiers

Ints = np.ndarray
Floats = np.ndarray
Bools = np.ndarray
Random = np.random.Generator


def check_asked(number: int, fewest: int, unit: str, shown: str, seed: int) -> None:
    """Raises StudyError for a sample too small to show every habit of what is `shown`, and for a seed below 0."""
    if number < fewest:
        raise StudyError(
            f"A sample of {number:,} {unit} is too small to show every habit of {shown}: ask for {fewest:,} or more."
        )
    if seed < 0:
        raise StudyError(f"The seed of a sample is {seed}: give a whole number of 0 or more.")


def apportion(total: int, weights: Sequence[int], floor: int = 0) -> list[int]:
    """`total` shared out in proportion to whole-number weights by largest remainder; the parts add up to it.

    Every part gets at least `floor`, taken from the largest part, so that rare habits show in small samples.
    """
    whole = sum(weights)
    parts = [total * w // whole for w in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    missing = sum(max(0, floor - part) for part in parts)
    parts = [max(floor, part) for part in parts]
    parts[parts.index(max(parts))] -= missing
    return parts


def shuffled(rng: Random, total: int, weights: Mapping[int, int], floor: int = 0) -> Ints:
    """`total` values in random order, each as often as its weight says."""
    parts = apportion(total, list(weights.values()), floor)
    return rng.permutation(np.repeat(np.array(list(weights), dtype=np.int64), parts))


def ascending(total: int, weights: Mapping[int, int]) -> Ints:
    """`total` values in ascending order, each as often as its weight says."""
    values = sorted(weights)
    return np.repeat(np.array(values, dtype=np.int64), apportion(total, [weights[v] for v in values]))


def by_the_clock(
    rng: Random, total: int, hours: Ints, local: Ints, of_day: Sequence[int], of_week: Sequence[int]
) -> Ints:
    """`total` times (s) in ascending order within `hours`, by weights of the local hour and of the weekday.

    hours: since 1970, without gaps; local: the same by the clock on the wall; of_week: Monday first.
    """
    # 1970-01-01 was a Thursday: day 0 is weekday 3.
    weights = np.array(of_day)[local % 24] * np.array(of_week)[(local // 24 + 3) % 7]
    edges = np.concatenate([[0], np.cumsum(weights)])
    position = (np.arange(total) + rng.random(total)) / total * edges[-1]
    hour = np.searchsorted(edges, position, side="right") - 1
    second = ((position - edges[hour]) / weights[hour] * 3_600).astype(np.int64)
    return np.sort(hours[hour] * 3_600 + np.minimum(second, 3_599))


def ranks(rng: Random, score: Floats) -> Ints:
    """Rank of each entry by its score; `score` should hold some noise, ties go by a random order."""
    order = rng.permutation(len(score))
    order = order[np.argsort(score[order], kind="stable")]
    rank = np.empty(len(score), dtype=np.int64)
    rank[order] = np.arange(len(score))
    return rank


def spread(rng: Random, score: Floats) -> Floats:
    """Evenly spread probabilities in (0, 1), larger ones for larger scores.

    Spread rather than drawn: the quantiles of the sample are then those asked for, at any size.
    """
    return (ranks(rng, score) + 0.5) / max(1, len(score))


def pick(rng: Random, mask: Bools, share: float, at_least: int = 3) -> Bools:
    """A random part of the rows in `mask`: its share, but `at_least` so many rows (or all there are)."""
    rows = np.flatnonzero(mask)
    wanted = min(len(rows), max(at_least, round(share * len(rows))))
    chosen = np.zeros(len(mask), dtype=bool)
    chosen[rng.permutation(rows)[:wanted]] = True
    return chosen


class QuantileFunction:
    """A quantile function as a table of 4,097 rounded values with straight lines between them.

    Rounding takes away the last bits, in which the logarithms of two machines may differ.
    """

    BINS = 4_096

    def __init__(self, knots: Mapping[float, float], log: bool = True) -> None:
        points = sorted(knots.items())
        values = []
        segment = 0
        for step in range(self.BINS + 1):
            p = step / self.BINS
            while p > points[segment + 1][0]:
                segment += 1
            (p0, v0), (p1, v1) = points[segment : segment + 2]
            part = (p - p0) / (p1 - p0)
            value = math.exp(math.log(v0) + part * math.log(v1 / v0)) if log else v0 + part * (v1 - v0)
            values.append(round(value * 4_096) / 4_096)
        self.table = np.array(values)

    def __call__(self, probability: Floats) -> Floats:
        position = probability * self.BINS
        below = np.minimum(position.astype(np.int64), self.BINS - 1)
        low = self.table[below]
        return low + (position - below) * (self.table[below + 1] - low)


def whole(values: Floats) -> Ints:
    """Nearest whole number."""
    return np.rint(values).astype(np.int64)


# ---- jobs that are not independent ----


def normal_scores(rng: Random, count: int) -> Floats:
    """Standard normal quantiles, evenly spread, in random order."""
    inner = {step / 4_096: NormalDist().inv_cdf(step / 4_096) for step in range(1, 4_096)}
    return QuantileFunction({0: -3.7, **inner, 1: 3.7}, log=False)(spread(rng, rng.random(count)))


def lognormal(rng: Random, count: int, log_sd: float) -> Floats:
    """A factor for each user, group or node: lognormal, median 1, log_sd the standard deviation of the logarithm."""
    return np.rint(np.exp(log_sd * normal_scores(rng, count)) * 4_096) / 4_096


def alike(rng: Random, *clusters: tuple[Ints, float]) -> Floats:
    """Standard normal scores, one per job, that are alike within each cluster.

    clusters: the cluster of each job, from 0, and the correlation that being in one gives to the scores of two jobs.
    """
    left = 1 - sum(share for _, share in clusters)
    scores = math.sqrt(left) * normal_scores(rng, len(clusters[0][0]))
    for code, share in clusters:
        scores += math.sqrt(share) * normal_scores(rng, int(code.max()) + 1)[code]
    return scores


def which_fail(rng: Random, number: int, odds: Floats) -> Bools:
    """The `number` entries that fail, the odds of each in proportion to its own: a logistic model with a given total.

    Each entry has odds drawn from u / (1 - u), u uniform, over its own; the smallest fail. That an entry fails has then
    the odds c x its own, with one c for all that makes up the total.
    """
    drawn = rng.random(len(odds))
    chosen = np.zeros(len(odds), dtype=bool)
    chosen[np.argsort(drawn / (1 - drawn) / odds, kind="stable")[:number]] = True
    return chosen


def sent_again(rng: Random, request: Ints, near: np.ndarray, size: QuantileFunction) -> Ints:
    """Group of each job, from 0: jobs with one request that lie side by side in the order of `near`.

    size: quantile function of the jobs a group, before groups end with their request.
    """
    order = np.lexsort((near, request))
    sizes = np.maximum(1, whole(size(spread(rng, rng.random(len(order))))))
    begins = np.zeros(len(order), dtype=bool)
    first = np.cumsum(sizes) - sizes
    begins[first[first < len(order)]] = True
    begins[1:] |= np.diff(request[order]) != 0
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(begins) - 1
    return group


# ---- identifiers ----


def hex_ids(seed: int, kind: int, numbers: Ints, digits: int) -> pl.Series:
    """Hexadecimal identifiers, the same for the same (seed, kind, number).

    From 16 digits on they are unique, because the scrambling of the first word is one-to-one.
    """
    ids = identifiers(salt_of(seed, kind), numbers, digits)
    return pl.Series(ids, dtype=pl.Binary).cast(pl.String)


def salt_of(seed: int, kind: int) -> int:
    """What keeps the identifiers of two kinds apart, and those of two seeds."""
    return int(np.random.SeedSequence([seed, kind]).generate_state(1, np.uint64)[0])


def thousandths(values: Floats) -> Floats:
    """Rounded to three decimals by operations that every machine does alike."""
    return np.rint(values * 1_000) / 1_000


# ---- files ----


@contextmanager
def staged_files(folder: Path, names: Mapping[str, str]) -> Iterator[dict[str, BinaryIO]]:
    """Files open to write, by key, under temporary names: renamed when all are whole, removed if anything goes wrong.

    names: key -> file name in `folder`, which is made if it is not there.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    parts = {key: folder / f".{name}.part" for key, name in names.items()}
    try:
        with ExitStack() as open_files:
            yield {key: open_files.enter_context(part.open("wb")) for key, part in parts.items()}
        for key, part in parts.items():
            part.replace(folder / names[key])
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
