"""What differs between two sets of jobs, by how much, and whether by chance: shares, distributions and medians.

Each comparison is of counts, in integers, so that the order of the rows and the number of threads cannot change a
digit; only the last steps (a root, an arc sine, a tail of the normal) are floats. It gives before and after, n_before
and n_after, test and p_value (of jobs that are independent), effect_name and effect; what cannot be told is None, with
a reason.
"""

import math

import numpy as np
from scipy.special import chdtrc, ndtr

from ttf.engine.counts import Counted
from ttf.stats.basics.p_value import never_zero

# Fewer jobs than these in one of the two say nothing of it: neither an effect nor a p-value is given.
FEWEST_VALUES = 8
# Below this a normal or chi-square approximation says little: the effect is given, a p-value is not.
FEWEST_EXPECTED = 5

NOT_THERE = "no job to compare in one of the two"
TOO_RARE = f"an expected count is below {FEWEST_EXPECTED}: no test"
TOO_FEW = f"fewer than {FEWEST_VALUES} jobs in one of the two: no effect, no test"
ALL_EQUAL = "all values are equal: nothing to test"
AS_A_WHOLE = "before and after stand in the rows of its values"


def compare_shares(hits_before: int, n_before: int, hits_after: int, n_after: int) -> dict:
    """Two shares: the two-proportion z test (pooled, two-sided) and Cohen's h (Cohen 1988), positive where it rose."""
    row = _row(n_before, n_after, "two_proportion_z", "cohen_h")
    if not (n_before and n_after):
        return row | {"reason": NOT_THERE}
    before, after = hits_before / n_before, hits_after / n_after
    row |= {"before": before, "after": after}
    if min(n_before, n_after) < FEWEST_VALUES:
        return row | {"reason": TOO_FEW}
    effect = 2 * math.asin(math.sqrt(after)) - 2 * math.asin(math.sqrt(before))
    row["effect"] = effect
    hits, n = hits_before + hits_after, n_before + n_after
    if hits in (0, n):
        return row | {"reason": ALL_EQUAL}
    if min(hits, n - hits) * min(n_before, n_after) < FEWEST_EXPECTED * n:
        return row | {"reason": TOO_RARE}
    # Imported here: see `wilson_interval`.
    from statsmodels.stats.proportion import proportions_ztest

    return row | _p_value(float(proportions_ztest([hits_after, hits_before], [n_after, n_before])[1]))


def compare_distributions(before: np.ndarray, after: np.ndarray) -> tuple[dict, list[list[int]], float]:
    """(row, cells, chi-squared) of counts by value, of two sets: Pearson's test and Cramer's V.

    Values with an expected count below FEWEST_EXPECTED in either set are one cell for both; cells: the places of
    their values.
    """
    n_before, n_after = int(before.sum()), int(after.sum())
    row = _row(n_before, n_after, "chi_square", "cramer_v") | {"reason": AS_A_WHOLE}
    if not (n_before and n_after):
        return row | {"reason": NOT_THERE}, [], 0.0
    if min(n_before, n_after) < FEWEST_VALUES:
        return row | {"reason": TOO_FEW}, [], 0.0
    n, both = n_before + n_after, before + after
    rare = both * min(n_before, n_after) < FEWEST_EXPECTED * n
    cells, together = [[place] for place in np.flatnonzero(~rare).tolist()], np.flatnonzero(rare).tolist()
    if together and both[together].sum() * min(n_before, n_after) >= FEWEST_EXPECTED * n:
        cells.append(together)
    elif cells and both[together].sum():  # still too rare: with the rarest of the others
        min(cells, key=lambda cell: both[cell].sum()).extend(together)
    if len(cells) < 2:
        return row | {"reason": TOO_RARE if len(before) > 1 else ALL_EQUAL}, [], 0.0
    # Over two rows: sum of (a n2 - b n1)^2 / ((a + b) n1 n2).
    counts = [(int(before[cell].sum()), int(after[cell].sum())) for cell in cells]
    chi2 = sum((a * n_after - b * n_before) ** 2 / ((a + b) * n_before * n_after) for a, b in counts)
    row |= {"effect": math.sqrt(chi2 / n)} | _p_value(float(chdtrc(len(cells) - 1, chi2)))
    return row, cells, chi2


def compare_medians(values: np.ndarray, before: np.ndarray, after: np.ndarray) -> dict:
    """Two samples as counts of the distinct `values`, ascending: Mann-Whitney and Cliff's delta.

    Two-sided normal approximation with ties and continuity correction, as scipy's mannwhitneyu(method="asymptotic").
    delta = P(after > before) - P(after < before), the rank-biserial correlation: 1 where every value rose.
    """
    n_before, n_after = int(before.sum()), int(after.sum())
    row = _row(n_before, n_after, "mann_whitney", "cliff_delta")
    if not (n_before and n_after):
        return row | {"reason": NOT_THERE}
    row |= {"before": Counted(values, before).median(), "after": Counted(values, after).median()}
    if min(n_before, n_after) < FEWEST_VALUES:
        return row | {"reason": TOO_FEW}
    # Twice U, in integers: jobs below count 2, jobs level with it 1. A product of two counts of jobs fits 64 bits.
    below = np.cumsum(before) - before
    doubled_u = int((after * (2 * below + before)).sum())
    product = n_before * n_after
    row |= {"effect": (doubled_u - product) / product}
    n = n_before + n_after
    sizes, how_often = np.unique(before + after, return_counts=True)
    # Python's integers: a cube of a million jobs, times their number, does not fit 64 bits.
    ties = sum(int(times) * (int(size) ** 3 - int(size)) for size, times in zip(sizes, how_often, strict=True))
    spread = (n**3 - n - ties) * product / (12 * n * (n - 1))
    if not spread:
        return row | {"reason": ALL_EQUAL}
    distance = max(abs(doubled_u - product) / 2 - 0.5, 0.0)
    return row | _two_sided(distance / math.sqrt(spread))


def _row(n_before: int, n_after: int, test: str, effect_name: str) -> dict:
    blank = dict.fromkeys(("before", "after", "p_value", "effect", "reason"))
    return blank | {"n_before": n_before, "n_after": n_after, "test": test, "effect_name": effect_name}


def _two_sided(z: float) -> dict:
    return _p_value(min(1.0, 2 * float(ndtr(-abs(z)))))


def _p_value(p: float) -> dict:
    p, tiny = never_zero(p)
    return {"p_value": p} | ({"reason": tiny} if tiny else {})
