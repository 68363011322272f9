"""Test whether the last part differs from earlier ones by more than random variation.

There are two tests; the larger p-value and the wider interval count. Users differ, and the same users are on both
sides: a difference of ratios with the spread between clusters (`ttf.stats.clustered_differences`).
Weeks differ: a further part lies within Student's prediction interval of the earlier parts (Hahn & Meeker 1991, section
4.7), each weighted by the denominator of its ratio. Rejecting only if both tests reject keeps the level
(intersection-union: Berger 1982). With too few earlier parts nothing is tested: by users alone, every fifth week of a
cluster whose weeks differ by a log SD of 0.3 would count as changed.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from ttf.analyses.quality.compare_parts import CHANCE, CHANGED, FEWEST_PARTS, TOO_FEW, TOO_FEW_WEEKS
from ttf.analyses.quality.compare_parts.sums import Sums
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.stats.basics.p_value import exact_p, raise_to_smallest
from ttf.stats.clustered_differences import combine_clusters, difference_and_se
from ttf.stats.differences import FEWEST_EXPECTED

CONFIDENCE, SIGNIFICANCE, POWER = 0.95, 0.05, 0.8
# The p-value at which Holm's adjustment detects a single change among the measures.
_SINGLE_P = SIGNIFICANCE / 5
NO_EVENTS = "nothing to count on one of the two sides"
RARE = f"fewer than {FEWEST_EXPECTED} events expected on one of the two sides"
UNTESTED = f"fewer than {FEWEST_PARTS} parts before: how parts differ is not known"


@dataclass(frozen=True)
class DifferenceTest:
    """A difference and its standard error, NaN if untested; effective: number of clusters or parts."""

    effective: float
    change: float = np.nan
    se: float = np.nan

    @property
    def is_valid(self) -> bool:
        return bool(np.isfinite(self.p))

    @property
    def p(self) -> float:
        return float(2 * stdtr(self.effective - 1, -abs(self.change / self.se)))

    @property
    def margin(self) -> float:
        """Return half the width of the interval of the difference at CONFIDENCE."""
        return float(stdtrit(self.effective - 1, (1 + CONFIDENCE) / 2) * self.se)

    def detectable_ratio(self, value_before: float) -> float:
        """Return the ratio to the value before that two such tests detect with power POWER; infinite if none.

        A detected change has to pass the test's limit by its own error, which grows with it.
        """
        limit, error = stdtrit(self.effective - 1, [1 - _SINGLE_P / 2, (1 + POWER) / 2]) * self.se / value_before
        return float((1 + limit) / (1 - error)) if error < 1 else np.inf


def compare_sides(sums: Sums, is_share: bool, is_count: bool) -> dict:
    """Return a row of CHANGES without its measure. is_share: top is part of bottom; is_count: top counts events."""
    sides = {name: (values[:-1].sum(), values[-1].sum()) for name, values in vars(sums).items()}
    (top, top_after), (bottom, bottom_after) = sides["top"], sides["bottom"]
    row: dict = {f"events_{side}": int(n) for side, n in zip(("before", "after"), sides["events"], strict=True)}
    row |= {f"n_{side}": int(n) for side, n in zip(("before", "after"), sides["n"], strict=True)}
    if not (bottom > 0 and bottom_after > 0):
        return row | {"reason": NO_EVENTS}
    difference = top_after / bottom_after - top / bottom
    row |= {"before": top / bottom, "after": top_after / bottom_after, "difference": difference}
    if _is_rare(*sides["events"], bottom, bottom_after, is_share):
        return row | {"reason": RARE}
    cluster_test, part_test = compare_by_clusters(sums), compare_by_parts(sums)
    row |= {"clusters": cluster_test.effective, "p_clustered": cluster_test.p if cluster_test.is_valid else None}
    row |= {"effective_parts": part_test.effective, "p_parts": part_test.p if part_test.is_valid else None}
    if is_count:
        row["p_exact"] = exact_p(int(top), int(top_after), bottom_after / (bottom + bottom_after))
    if not part_test.is_valid:
        return row | {"reason": UNTESTED}
    tests = [test for test in (cluster_test, part_test) if test.is_valid]
    margin = max(test.margin for test in tests)
    if top:
        ratio = max(test.detectable_ratio(top / bottom) for test in tests)
        row["detectable_ratio"] = ratio if ratio < (bottom / top if is_share else np.inf) else None
    p, reason = raise_to_smallest(max([*(test.p for test in tests), row.get("p_exact", 0.0)]))
    return row | {"ci_low": difference - margin, "ci_high": difference + margin, "p_value": p, "reason": reason}


def compare_by_clusters(sums: Sums) -> DifferenceTest:
    """Test for no difference between clusters; invalid with fewer than FEWEST_CLUSTERS of them, or no spread."""
    sides = [(values[:-1].sum(axis=0), values[-1]) for values in (sums.top, sums.bottom)]
    (top, top_after), (bottom, bottom_after) = sides
    effective = float(combine_clusters(bottom, bottom_after).effective[0])
    change, se = difference_and_se(top, bottom, top_after, bottom_after)
    if effective < FEWEST_CLUSTERS or not (se > 0 and np.isfinite(se)):
        return DifferenceTest(effective)
    return DifferenceTest(effective, change, se)


def compare_by_parts(sums: Sums) -> DifferenceTest:
    """Test whether the last part is like the earlier ones; invalid with fewer than FEWEST_PARTS of them.

    With weights w (of sum 1) and y the ratios: s^2 = sum w (y - mean)^2 / (1 - sum w^2). The next ratio's distance from
    the mean has variance s^2 (1 + sum w^2), with 1 / sum w^2 - 1 degrees of freedom (Kish's number of parts).
    """
    top, bottom = sums.top.sum(axis=1), sums.bottom.sum(axis=1)
    is_present = bottom[:-1] > 0
    weights = bottom[:-1][is_present] / bottom[:-1].sum()
    ratios = top[:-1][is_present] / bottom[:-1][is_present]
    squares = float((weights**2).sum())
    effective = 1 / squares
    if is_present.sum() < FEWEST_PARTS or effective <= 1:
        return DifferenceTest(effective)
    mean = float((weights * ratios).sum())
    spread = float((weights * (ratios - mean) ** 2).sum()) / (1 - squares) * (1 + squares)
    if not spread > 0:
        return DifferenceTest(effective)
    return DifferenceTest(effective, top[-1] / bottom[-1] - mean, np.sqrt(spread))


def decide_verdict(row: dict) -> str:
    """Return the verdict on a row of CHANGES: CHANGED, CHANCE or a kind of too few data."""
    if row.get("p_adjusted") is None:
        return TOO_FEW_WEEKS if row.get("reason") == UNTESTED else TOO_FEW
    return CHANGED if row["p_adjusted"] < SIGNIFICANCE else CHANCE


def _is_rare(events: float, events_after: float, bottom: float, bottom_after: float, is_share: bool) -> bool:
    """Return whether fewer than FEWEST_EXPECTED events, or for a share non-events, are expected on a side."""
    smaller_share = min(bottom, bottom_after) / (bottom + bottom_after)
    total = events + events_after
    rarest_total = min(total, bottom + bottom_after - total) if is_share else total
    return rarest_total * smaller_share < FEWEST_EXPECTED
