"""Simulate false reports of a change where nothing changes, and the coverage of the forecast of the next week.

Users differ in activity and failure rate, constantly over the weeks. Each week has a common factor, an AR(1) on the log
scale. All nodes fail at one constant rate, except a few that fail many times as often.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from ttf.analyses.quality.compare_parts.forecast import next_week
from ttf.analyses.quality.compare_parts.news import compare_suspects
from ttf.analyses.quality.compare_parts.part_tests import SIGNIFICANCE, compare_sides
from ttf.analyses.quality.compare_parts.sums import Sums
from ttf.stats.basics.holm import holm
from ttf.stats.nodes.excess_failures import compare_by_exposure, with_verdict

USERS = 40
DAY_S = 86_400


def week_factors(rng: np.random.Generator, weeks: int, sd: float, ar: float, growth: float = 1.0) -> np.ndarray:
    """Draw the weeks' common factors: mean 1, log SD `sd`, autocorrelation `ar`, times the growth."""
    steps = rng.normal(size=weeks)
    for week in range(1, weeks):
        steps[week] = ar * steps[week - 1] + np.sqrt(1 - ar**2) * steps[week]
    return np.exp(sd * steps - sd**2 / 2) * growth ** np.arange(weeks)


def simulate_rows(rng: np.random.Generator, factors: np.ndarray, last_factor: float = 1.0) -> list[dict]:
    """Simulate failure share and failure rate as `compared`; last_factor multiplies those of the last week."""
    parts = factors.size
    factors = (factors * np.append(np.ones(parts - 1), last_factor))[:, None]
    active, failure_share = rng.lognormal(0, 1, USERS), rng.beta(1.5, 8, USERS)
    n = rng.poisson(active / active.sum() * 1500 * rng.gamma(3, 1 / 3, (parts, USERS)))
    failed = rng.binomial(n, np.clip(failure_share * factors * rng.lognormal(-0.045, 0.3, n.shape), 0, 1)).astype(float)
    days = active / active.sum() * 200 * rng.gamma(2, 1 / 2, (parts, USERS))
    failures = rng.poisson(days * 0.2 * rng.gamma(2, 1 / 2, USERS) * factors).astype(float)
    jobs_by_part = n.sum(axis=1)
    return [
        compare_sides(Sums(failed, failed, n.astype(float), jobs_by_part), is_share=True, is_count=False),
        compare_sides(Sums(failures, failures, days, jobs_by_part), is_share=False, is_count=True),
    ]


def false_changes(weeks_before: int, sd: float, ar: float, repetitions: int, seed: int) -> tuple[float, float]:
    """Return how often either measure is said to have changed, and how often there is a verdict."""
    rng, wrong, verdicts = np.random.default_rng(seed), 0, 0
    for _ in range(repetitions):
        rows = simulate_rows(rng, week_factors(rng, weeks_before + 1, sd, ar))
        adjusted = holm([row.get("p_value") for row in rows])
        wrong += any(p is not None and p < SIGNIFICANCE for p in adjusted)
        verdicts += any(p is not None for p in adjusted)
    return wrong / repetitions, verdicts / repetitions


def power(weeks_before: int, sd: float, repetitions: int, seed: int) -> tuple[float, float]:
    """Return how often a change by the median detectable ratio is detected, and this ratio."""
    rng = np.random.default_rng(seed)

    def rates(last_factor: float) -> list[dict]:
        factors = (week_factors(rng, weeks_before + 1, sd, 0) for _ in range(repetitions))
        return [simulate_rows(rng, week_factor, last_factor)[1] for week_factor in factors]

    ratio = float(np.median([row["detectable_ratio"] or np.inf for row in rates(1.0)]))
    # The first of Holm's five tests.
    return float(np.mean([5 * row["p_value"] < SIGNIFICANCE for row in rates(ratio)])), ratio


def false_suspects(weeks: int, per_week: float, repetitions: int, seed: int, nodes: int = 200) -> float:
    """Return how often suspect nodes are said to have changed last week; three always fail 18 times as often."""
    rng, wrong = np.random.default_rng(seed), 0
    rate = per_week * np.where(np.arange(nodes) < 3, 18, 1)
    for _ in range(repetitions):
        counts = rng.poisson(rate, (weeks, nodes))
        # Both spans of a comparison have the same length; the second ends a week later.
        spans = (slice(0, weeks), slice(0, weeks - 1), slice(1, weeks), slice(weeks - 1, weeks))
        tables = []
        for span in spans:
            counted = counts[span].sum(axis=0)
            exposure = np.full(nodes, (span.stop - span.start) * 7 * DAY_S)
            table = {"node": np.arange(nodes).astype(str), "fleet": "x", "counted": counted, "exposure_s": exposure}
            compared = compare_by_exposure(pl.DataFrame(table)).with_columns(detectable_ratio=pl.lit(1.0))
            tables.append(with_verdict(compared, SIGNIFICANCE)[0])
        wrong += compare_suspects(*tables)[2]["p_value"] < SIGNIFICANCE
    return wrong / repetitions


def forecast_coverage(
    weeks: int, mean: float, sd: float, ar: float, growth: float, repetitions: int, seed: int
) -> float:
    """Return how often the next week lies within its 90% prediction interval."""
    rng, covered = np.random.default_rng(seed), 0
    for _ in range(repetitions):
        *counts, next_count = rng.poisson(mean * week_factors(rng, weeks + 1, sd, ar, growth))
        forecast = next_week(counts)
        covered += forecast["low"] <= next_count <= forecast["high"]
    return covered / repetitions


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


def change_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for weeks_before, sd, ar in NOTHING_CHANGED:
        wrong, verdict_share = false_changes(weeks_before, sd, ar, repetitions, seed)
        detection = "–"
        if verdict_share and not ar:
            power_share, ratio = power(weeks_before, sd, repetitions, seed)
            detection = f"{power_share:.2f} of {ratio:.2f} times"
        yield [f"{weeks_before}", f"{sd:g}", f"{ar:g}", f"**{wrong:.3f}**", f"{verdict_share:.2f}", detection]


def suspect_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for weeks, per_week in SUSPECTS:
        wrong = false_suspects(weeks, per_week, repetitions, seed)
        yield [f"{weeks}", f"{per_week:g}", f"**{wrong:.3f}**"]


def forecast_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sd, ar, growth) in FORECAST.items():
        for mean in MEANS:
            shares = [forecast_coverage(weeks, mean, sd, ar, growth, repetitions, seed) for weeks in WEEKS]
            yield [name, f"{mean:,}", *(f"{share:.3f}" for share in shares)]
