"""How often a world in which nothing changes is said to have changed, and how often the next week is as forecast.

Users differ in how much they do and how often they fail, the same in all weeks; weeks have a factor in common, an AR(1)
on the log scale. Nodes fail at one rate, and a few of them at many times that rate, always.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from ttf.analyses.nodes.find_lemon_nodes.compute import with_verdict
from ttf.analyses.nodes.find_lemon_nodes.excess import compared_by_exposure
from ttf.analyses.quality.compare_parts.forecast import next_week
from ttf.analyses.quality.compare_parts.news import suspects
from ttf.analyses.quality.compare_parts.part_tests import SIGNIFICANCE, compared
from ttf.analyses.quality.compare_parts.sums import Sums
from ttf.stats.basics.holm import holm

USERS = 40
DAY_S = 86_400


def week_factors(rng: np.random.Generator, weeks: int, sd: float, ar: float, growth: float = 1.0) -> np.ndarray:
    """The weeks' common factors: of mean 1 and this log SD, each like the one before (AR), times their growth."""
    steps = rng.normal(size=weeks)
    for week in range(1, weeks):
        steps[week] = ar * steps[week - 1] + np.sqrt(1 - ar**2) * steps[week]
    return np.exp(sd * steps - sd**2 / 2) * growth ** np.arange(weeks)


def rows_of_world(rng: np.random.Generator, factors: np.ndarray, last: float = 1.0) -> list[dict]:
    """Failure share and failure rate as `compared`; last: by how much the last week's are multiplied."""
    parts = factors.size
    factors = (factors * np.append(np.ones(parts - 1), last))[:, None]
    active, prone = rng.lognormal(0, 1, USERS), rng.beta(1.5, 8, USERS)
    n = rng.poisson(active / active.sum() * 1500 * rng.gamma(3, 1 / 3, (parts, USERS)))
    failed = rng.binomial(n, np.clip(prone * factors * rng.lognormal(-0.045, 0.3, n.shape), 0, 1)).astype(float)
    days = active / active.sum() * 200 * rng.gamma(2, 1 / 2, (parts, USERS))
    hits = rng.poisson(days * 0.2 * rng.gamma(2, 1 / 2, USERS) * factors).astype(float)
    of_parts = n.sum(axis=1)
    return [
        compared(Sums(failed, failed, n.astype(float), of_parts), is_share=True, is_count=False),
        compared(Sums(hits, hits, days, of_parts), is_share=False, is_count=True),
    ]


def false_changes(before: int, sd: float, ar: float, repetitions: int, seed: int) -> tuple[float, float]:
    """How often any of both is said to have changed, and how often there is a verdict."""
    rng, wrong, given = np.random.default_rng(seed), 0, 0
    for _ in range(repetitions):
        rows = rows_of_world(rng, week_factors(rng, before + 1, sd, ar))
        adjusted = holm([row.get("p_value") for row in rows])
        wrong += any(p is not None and p < SIGNIFICANCE for p in adjusted)
        given += any(p is not None for p in adjusted)
    return wrong / repetitions, given / repetitions


def power(before: int, sd: float, repetitions: int, seed: int) -> tuple[float, float]:
    """How often a rate is found to have changed that did by the median detectable ratio; and this ratio."""
    rng = np.random.default_rng(seed)

    def rates(last: float) -> list[dict]:
        return [rows_of_world(rng, week_factors(rng, before + 1, sd, 0), last)[1] for _ in range(repetitions)]

    ratio = float(np.median([row["detectable_ratio"] or np.inf for row in rates(1.0)]))
    # The first of Holm's five tests.
    return float(np.mean([5 * row["p_value"] < SIGNIFICANCE for row in rates(ratio)])), ratio


def false_suspects(weeks: int, per_week: float, repetitions: int, seed: int, nodes: int = 200) -> float:
    """How often suspect nodes are said to have changed with the last week; three always fail 18 times as often."""
    rng, wrong = np.random.default_rng(seed), 0
    rate = per_week * np.where(np.arange(nodes) < 3, 18, 1)
    for _ in range(repetitions):
        counts = rng.poisson(rate, (weeks, nodes))
        # The time before is the same span as that at the end, which ends a week later.
        spans = (slice(0, weeks), slice(0, weeks - 1), slice(1, weeks), slice(weeks - 1, weeks))
        tables = []
        for span in spans:
            counted = counts[span].sum(axis=0)
            exposure = np.full(nodes, (span.stop - span.start) * 7 * DAY_S)
            table = {"node": np.arange(nodes).astype(str), "fleet": "x", "counted": counted, "exposure_s": exposure}
            tables.append(with_verdict(compared_by_exposure(pl.DataFrame(table)), SIGNIFICANCE)[0])
        wrong += suspects(*tables)[1]["p_value"] < SIGNIFICANCE
    return wrong / repetitions


def forecast_coverage(
    weeks: int, mean: float, sd: float, ar: float, growth: float, repetitions: int, seed: int
) -> float:
    """How often the week after these is within its 90% prediction interval."""
    rng, held = np.random.default_rng(seed), 0
    for _ in range(repetitions):
        *counts, last = rng.poisson(mean * week_factors(rng, weeks + 1, sd, ar, growth))
        found = next_week(counts)
        held += found["low"] <= last <= found["high"]
    return held / repetitions


# Weeks before, log SD, AR.
NOTHING_CHANGED = ((1, 0.3, 0.0), (4, 0.0, 0.0), (4, 0.3, 0.0), (8, 0.3, 0.0), (12, 0.3, 0.0), (12, 0.3, 0.8))
# Name -> log SD, AR, growth a week.
FORECAST = {
    "weeks alike": (0.0, 0.0, 1.0),
    "growth of 5% a week": (0.0, 0.0, 1.05),
    "AR 0.8, log SD 0.3": (0.3, 0.8, 1.0),
    "both": (0.3, 0.8, 1.05),
}
WEEKS, MEANS = (8, 12, 26, 52), (8, 100, 1_000)
# Weeks, failures a node and week.
SUSPECTS = ((2, 0.2), (9, 0.05), (26, 0.02))


def rows_of_changes(repetitions: int, seed: int) -> Iterator[list[str]]:
    for before, sd, ar in NOTHING_CHANGED:
        wrong, given = false_changes(before, sd, ar, repetitions, seed)
        found = "–"
        if given and not ar:
            chance, ratio = power(before, sd, repetitions, seed)
            found = f"{chance:.2f} of {ratio:.2f} times"
        yield [f"{before}", f"{sd:g}", f"{ar:g}", f"**{wrong:.3f}**", f"{given:.2f}", found]


def rows_of_suspects(repetitions: int, seed: int) -> Iterator[list[str]]:
    for weeks, per_week in SUSPECTS:
        wrong = false_suspects(weeks, per_week, repetitions, seed)
        yield [f"{weeks}", f"{per_week:g}", f"**{wrong:.3f}**"]


def rows_of_forecasts(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sd, ar, growth) in FORECAST.items():
        for mean in MEANS:
            found = [forecast_coverage(weeks, mean, sd, ar, growth, repetitions, seed) for weeks in WEEKS]
            yield [name, f"{mean:,}", *(f"{share:.3f}" for share in found)]
