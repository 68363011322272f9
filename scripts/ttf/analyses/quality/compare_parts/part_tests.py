"""Whether the last part differs from those before by more than chance, for the doubtful.

Two chances are looked at, and the larger p-value and the wider interval count. Users differ, and the same are on both
sides: a difference of ratios with the spread between clusters (`ttf.analyses.quality.measure_drift.window_tests`).
Weeks differ: one more part like those before lies within Student's prediction interval of them (Hahn & Meeker 1991,
section 4.7), each part weighing by what its ratio rests on. A test that both reject is one of "neither", and keeps its
level (intersection-union: Berger 1982). With too few parts before nothing is tested: users alone call every fifth week
of a cluster changed whose weeks differ by a log SD of 0.3.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, bdtrc, stdtr, stdtrit

from ttf.analyses.quality.compare_parts import CHANCE, CHANGED, FEWEST_PARTS, TOO_FEW, TOO_FEW_WEEKS
from ttf.analyses.quality.compare_parts.sums import Sums
from ttf.analyses.quality.measure_drift.window_tests import change_of, clusters_of
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.stats.basics.p_value import never_zero
from ttf.stats.differences import FEWEST_EXPECTED

CONFIDENCE, SIGNIFICANCE, POWER = 0.95, 0.05, 0.8
# The p-value of one change among the measures tested, so that Holm's adjustment finds it.
_ONE_OF_ALL = SIGNIFICANCE / 5
NOTHING = "nothing to count on one of the two sides"
RARE = f"fewer than {FEWEST_EXPECTED} events expected on one of the two sides"
UNTESTED = f"fewer than {FEWEST_PARTS} parts before: how parts differ is not known"


@dataclass(frozen=True)
class Tested:
    """A difference and its standard error, NaN where nothing is tested; effective: the number of clusters, or parts."""

    effective: float
    change: float = np.nan
    se: float = np.nan

    @property
    def made(self) -> bool:
        return bool(np.isfinite(self.p))

    @property
    def p(self) -> float:
        """Two-sided."""
        return float(2 * stdtr(self.effective - 1, -abs(self.change / self.se)))

    @property
    def away(self) -> float:
        """How far off 0 chance may bring the difference, at CONFIDENCE."""
        return float(stdtrit(self.effective - 1, (1 + CONFIDENCE) / 2) * self.se)

    def detectable(self, before: float) -> float:
        """The ratio to the value before that two such tests find with a chance of POWER, infinite where none is.

        What is found has to pass the test's limit by its own error, which grows with it.
        """
        limit, error = stdtrit(self.effective - 1, [1 - _ONE_OF_ALL / 2, (1 + POWER) / 2]) * self.se / before
        return float((1 + limit) / (1 - error)) if error < 1 else np.inf


def compared(sums: Sums, is_share: bool, is_count: bool) -> dict:
    """A row of CHANGES but for what it is of. is_share: the top is part of the bottom; is_count: it counts events."""
    of_sides = {name: (values[:-1].sum(), values[-1].sum()) for name, values in vars(sums).items()}
    (top, top_after), (bottom, bottom_after) = of_sides["top"], of_sides["bottom"]
    row = {f"events_{side}": int(n) for side, n in zip(("before", "after"), of_sides["events"], strict=True)}
    row |= {f"n_{side}": int(n) for side, n in zip(("before", "after"), of_sides["n"], strict=True)}
    if not (bottom > 0 and bottom_after > 0):
        return row | {"reason": NOTHING}
    difference = top_after / bottom_after - top / bottom
    row |= {"before": top / bottom, "after": top_after / bottom_after, "difference": difference}
    if _rare(*of_sides["events"], bottom, bottom_after, is_share):
        return row | {"reason": RARE}
    of_clusters, of_parts = by_clusters(sums), by_parts(sums)
    row |= {"clusters": of_clusters.effective, "p_clustered": of_clusters.p if of_clusters.made else None}
    row |= {"effective_parts": of_parts.effective, "p_parts": of_parts.p if of_parts.made else None}
    if is_count:
        row["p_exact"] = exact(int(top), int(top_after), bottom_after / (bottom + bottom_after))
    if not of_parts.made:
        return row | {"reason": UNTESTED}
    tests = [test for test in (of_clusters, of_parts) if test.made]
    away = max(test.away for test in tests)
    if top:
        ratio = max(test.detectable(top / bottom) for test in tests)
        row["detectable_ratio"] = ratio if ratio < (bottom / top if is_share else np.inf) else None
    p, tiny = never_zero(max([*(test.p for test in tests), row.get("p_exact", 0.0)]))
    return row | {"ci_low": difference - away, "ci_high": difference + away, "p_value": p, "reason": tiny}


def by_clusters(sums: Sums) -> Tested:
    """Of no difference where clusters differ; not made with fewer than FEWEST_CLUSTERS effective ones, or no spread."""
    sides = [(values[:-1].sum(axis=0), values[-1]) for values in (sums.top, sums.bottom)]
    (top, top_after), (bottom, bottom_after) = sides
    effective = float(clusters_of(bottom, bottom_after).effective[0])
    change, se = change_of(top, bottom, top_after, bottom_after)
    if effective < FEWEST_CLUSTERS or not (se > 0 and np.isfinite(se)):
        return Tested(effective)
    return Tested(effective, change, se)


def by_parts(sums: Sums) -> Tested:
    """That the last part is one more of those before; not made with fewer than FEWEST_PARTS of them.

    With weights w (of sum 1) and y the ratios: s^2 = sum w (y - mean)^2 / (1 - sum w^2), and the variance of the next
    one's distance from the mean is s^2 (1 + sum w^2), with 1 / sum w^2 - 1 degrees of freedom (Kish's number of parts).
    """
    top, bottom = sums.top.sum(axis=1), sums.bottom.sum(axis=1)
    there = bottom[:-1] > 0
    weights = bottom[:-1][there] / bottom[:-1].sum()
    ratios = top[:-1][there] / bottom[:-1][there]
    squares = float((weights**2).sum())
    effective = 1 / squares
    if there.sum() < FEWEST_PARTS or effective <= 1:
        return Tested(effective)
    mean = float((weights * ratios).sum())
    spread = float((weights * (ratios - mean) ** 2).sum()) / (1 - squares) * (1 + squares)
    if not spread > 0:
        return Tested(effective)
    return Tested(effective, top[-1] / bottom[-1] - mean, np.sqrt(spread))


def exact(events: int, events_after: int, share: float) -> float:
    """p of one rate on both sides, given how many events there are in all (Przyborowski & Wilenski 1940): two-sided,

    twice the smaller tail of Binomial(all, share), share being the part's of what the rate is over.
    """
    both = events + events_after
    above = bdtrc(events_after - 1, both, share) if events_after else 1.0
    return min(1.0, 2 * float(min(bdtr(events_after, both, share), above)))


def verdict_of(row: dict) -> str:
    """The verdict of a row with its p_adjusted."""
    if row.get("p_adjusted") is None:
        return TOO_FEW_WEEKS if row.get("reason") == UNTESTED else TOO_FEW
    return CHANGED if row["p_adjusted"] < SIGNIFICANCE else CHANCE


def _rare(events: float, events_after: float, bottom: float, bottom_after: float, is_share: bool) -> bool:
    """Whether fewer than FEWEST_EXPECTED events are expected on a side; of a share also of those that are none."""
    smaller = min(bottom, bottom_after) / (bottom + bottom_after)
    both = events + events_after
    rarest = min(both, bottom + bottom_after - both) if is_share else both
    return rarest * smaller < FEWEST_EXPECTED
