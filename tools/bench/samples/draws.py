"""Draw random values that are the same on every machine, and write files completely or not at all.

Every draw is a uniform number or a permutation from a seeded generator and goes through tables of rounded numbers. So
no result depends on the last bit of a logarithm or on the number of threads.
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
from ttf.raw.packed_samples import hex_identifiers

Ints = np.ndarray
Floats = np.ndarray
Bools = np.ndarray
Random = np.random.Generator


def check_sample_size(size: int, fewest: int, unit: str, described: str, seed: int) -> None:
    """Raise StudyError if the sample is too small to contain every habit of the data, or the seed is negative."""
    if size < fewest:
        raise StudyError(
            f"A sample of {size:,} {unit} is too small to show every habit of {described}: ask for {fewest:,} or more."
        )
    if seed < 0:
        raise StudyError(f"The seed of a sample is {seed}: give a whole number of 0 or more.")


def apportion(total: int, weights: Sequence[int], floor: int = 0) -> list[int]:
    """Divide `total` in proportion to whole-number weights by largest remainder; the parts add up to it.

    Every part gets at least `floor`, taken from the largest part, so that small samples contain rare habits.
    """
    weight_sum = sum(weights)
    parts = [total * w // weight_sum for w in weights]
    remainder_order = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % weight_sum), i))
    for i in remainder_order[: total - sum(parts)]:
        parts[i] += 1
    shortfall = sum(max(0, floor - part) for part in parts)
    parts = [max(floor, part) for part in parts]
    parts[parts.index(max(parts))] -= shortfall
    return parts


def shuffled_values(rng: Random, total: int, weights: Mapping[int, int], floor: int = 0) -> Ints:
    """Return `total` values in random order, each in proportion to its weight."""
    parts = apportion(total, list(weights.values()), floor)
    return rng.permutation(np.repeat(np.array(list(weights), dtype=np.int64), parts))


def ascending_values(total: int, weights: Mapping[int, int]) -> Ints:
    """Return `total` values in ascending order, each in proportion to its weight."""
    values = sorted(weights)
    return np.repeat(np.array(values, dtype=np.int64), apportion(total, [weights[v] for v in values]))


def submission_times(
    rng: Random, total: int, hours: Ints, local_hours: Ints, day_weights: Sequence[int], week_weights: Sequence[int]
) -> Ints:
    """Draw `total` times (s) in ascending order within `hours`, weighted by local hour and weekday.

    hours: since 1970, without gaps; local_hours: the same in local time; week_weights: Monday first.
    """
    # 1970-01-01 was a Thursday: day 0 is weekday 3.
    weights = np.array(day_weights)[local_hours % 24] * np.array(week_weights)[(local_hours // 24 + 3) % 7]
    edges = np.concatenate([[0], np.cumsum(weights)])
    position = (np.arange(total) + rng.random(total)) / total * edges[-1]
    hour = np.searchsorted(edges, position, side="right") - 1
    second = ((position - edges[hour]) / weights[hour] * 3_600).astype(np.int64)
    return np.sort(hours[hour] * 3_600 + np.minimum(second, 3_599))


def ranks(rng: Random, score: Floats) -> Ints:
    """Return the rank of each entry by its score; ties are in random order."""
    order = rng.permutation(len(score))
    order = order[np.argsort(score[order], kind="stable")]
    rank = np.empty(len(score), dtype=np.int64)
    rank[order] = np.arange(len(score))
    return rank


def spread_probabilities(rng: Random, score: Floats) -> Floats:
    """Return evenly spread probabilities in (0, 1), larger ones for larger scores.

    They are spread, not drawn, so that a sample of any size has the requested quantiles.
    """
    return (ranks(rng, score) + 0.5) / max(1, len(score))


def pick(rng: Random, mask: Bools, share: float, min_rows: int = 3) -> Bools:
    """Pick a random share of the rows in `mask`, but at least `min_rows` rows (or all of them)."""
    rows = np.flatnonzero(mask)
    count = min(len(rows), max(min_rows, round(share * len(rows))))
    is_picked = np.zeros(len(mask), dtype=bool)
    is_picked[rng.permutation(rows)[:count]] = True
    return is_picked


class QuantileFunction:
    """A quantile function as a table of 4,097 rounded values, interpolated linearly.

    Rounding removes the last bits, in which the logarithms of two machines may differ.
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
            fraction = (p - p0) / (p1 - p0)
            value = math.exp(math.log(v0) + fraction * math.log(v1 / v0)) if log else v0 + fraction * (v1 - v0)
            values.append(round(value * 4_096) / 4_096)
        self.table = np.array(values)

    def __call__(self, probability: Floats) -> Floats:
        position = probability * self.BINS
        bin_index = np.minimum(position.astype(np.int64), self.BINS - 1)
        low = self.table[bin_index]
        return low + (position - bin_index) * (self.table[bin_index + 1] - low)


def round_to_int(values: Floats) -> Ints:
    """Round to the nearest whole number."""
    return np.rint(values).astype(np.int64)


# ---- jobs that are not independent ----


def normal_scores(rng: Random, count: int) -> Floats:
    """Return evenly spread standard normal quantiles in random order."""
    inner = {step / 4_096: NormalDist().inv_cdf(step / 4_096) for step in range(1, 4_096)}
    return QuantileFunction({0: -3.7, **inner, 1: 3.7}, log=False)(spread_probabilities(rng, rng.random(count)))


def lognormal(rng: Random, count: int, log_sd: float) -> Floats:
    """Draw a lognormal factor for each user, group or node: median 1, `log_sd` the SD of the logarithm."""
    return np.rint(np.exp(log_sd * normal_scores(rng, count)) * 4_096) / 4_096


def correlated_scores(rng: Random, *clusters: tuple[Ints, float]) -> Floats:
    """Draw one standard normal score per job, correlated within each cluster.

    clusters: the cluster of each job, from 0, and the correlation that it adds to the scores of two of its jobs.
    """
    own_share = 1 - sum(share for _, share in clusters)
    scores = math.sqrt(own_share) * normal_scores(rng, len(clusters[0][0]))
    for code, share in clusters:
        scores += math.sqrt(share) * normal_scores(rng, int(code.max()) + 1)[code]
    return scores


def draw_failures(rng: Random, failures: int, odds: Floats) -> Bools:
    """Draw which entries fail, in proportion to their odds: a logistic model with a fixed number of failures.

    Each entry draws u / (1 - u), u uniform, divided by its odds; the smallest fail. The odds that an entry fails are
    then c x its own, with one constant c that gives the number of failures.
    """
    draws = rng.random(len(odds))
    fails = np.zeros(len(odds), dtype=bool)
    fails[np.argsort(draws / (1 - draws) / odds, kind="stable")[:failures]] = True
    return fails


def resubmission_groups(rng: Random, request: Ints, proximity: np.ndarray, size: QuantileFunction) -> Ints:
    """Group jobs with the same request that are neighbours in the order of `proximity`; return each group, from 0.

    size: quantile function of the jobs per group, before groups end with their request.
    """
    order = np.lexsort((proximity, request))
    sizes = np.maximum(1, round_to_int(size(spread_probabilities(rng, rng.random(len(order))))))
    is_first = np.zeros(len(order), dtype=bool)
    first = np.cumsum(sizes) - sizes
    is_first[first[first < len(order)]] = True
    is_first[1:] |= np.diff(request[order]) != 0
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(is_first) - 1
    return group


# ---- identifiers ----


def hex_ids(seed: int, kind: int, numbers: Ints, digits: int) -> pl.Series:
    """Return hexadecimal identifiers, the same for the same (seed, kind, number).

    Identifiers of 16 digits or more are unique, because the scrambling of the first word is one-to-one.
    """
    ids = hex_identifiers(id_salt(seed, kind), numbers, digits)
    return pl.Series(ids, dtype=pl.Binary).cast(pl.String)


def id_salt(seed: int, kind: int) -> int:
    """Return the salt that makes identifiers differ between kinds and between seeds."""
    return int(np.random.SeedSequence([seed, kind]).generate_state(1, np.uint64)[0])


def round_to_thousandths(values: Floats) -> Floats:
    """Round to three decimals by operations that give the same result on every machine."""
    return np.rint(values * 1_000) / 1_000


# ---- files ----


@contextmanager
def staged_files(folder: Path, names: Mapping[str, str]) -> Iterator[dict[str, BinaryIO]]:
    """Open files for writing under temporary names; rename them when all are complete, remove them on any error.

    names: key -> file name in `folder`, which is made if it does not exist.
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
