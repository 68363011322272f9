"""Compare two sets of jobs by shares, distributions and medians: effect sizes and tests.

Each comparison uses integer counts, so the order of rows and the number of threads cannot change a digit. Only the last
steps (a root, an arc sine, a normal tail) are floats. A result has before, after, n_before, n_after, test, p_value (for
independent jobs), effect_name and effect. A missing value is None, with a reason.
"""

import math

import numpy as np
from scipy.special import chdtrc, ndtr

from ttf.engine.counts import ValueCounts
from ttf.stats.basics.p_value import raise_to_smallest

# With fewer jobs in either set there is neither an effect nor a p-value.
FEWEST_VALUES = 8
# Below this expected count the normal or chi-square approximation is poor: an effect, but no p-value.
FEWEST_EXPECTED = 5

NOT_THERE = "no job to compare in one of the two"
TOO_RARE = f"an expected count is below {FEWEST_EXPECTED}: no test"
TOO_FEW = f"fewer than {FEWEST_VALUES} jobs in one of the two: no effect, no test"
ALL_EQUAL = "all values are equal: nothing to test"
AS_A_WHOLE = "before and after stand in the rows of its values"


def compare_shares(hits_before: int, n_before: int, hits_after: int, n_after: int) -> dict:
    """Compare two shares: two-proportion z test (pooled, two-sided) and Cohen's h, positive for a rise.

    Parameters
    ----------
    hits_before, n_before, hits_after, n_after : numbers of hits and of jobs in each window

    Returns
    -------
    cells of a row of the comparison

    References
    ----------
    Cohen (1988), Statistical Power Analysis for the Behavioral Sciences, chapter 6

    Examples
    --------
    >>> round(compare_shares(10, 100, 20, 100)["p_value"], 5)
    0.04767
    """
    row = _blank_row(n_before, n_after, "two_proportion_z", "cohen_h")
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
    pooled = hits / n
    z = (after - before) / math.sqrt(pooled * (1 - pooled) * (1 / n_before + 1 / n_after))
    return row | _p_value_cells(2 * float(ndtr(-abs(z))))


def compare_distributions(before: np.ndarray, after: np.ndarray) -> tuple[dict, list[list[int]], float]:
    """Compare counts by value of two sets by Pearson's test and Cramer's V: (row, cells, chi-squared).

    Values with an expected count below FEWEST_EXPECTED in either set share one cell. cells: indices of their values.
    """
    n_before, n_after = int(before.sum()), int(after.sum())
    row = _blank_row(n_before, n_after, "chi_square", "cramer_v") | {"reason": AS_A_WHOLE}
    if not (n_before and n_after):
        return row | {"reason": NOT_THERE}, [], 0.0
    if min(n_before, n_after) < FEWEST_VALUES:
        return row | {"reason": TOO_FEW}, [], 0.0
    n, combined = n_before + n_after, before + after
    rare = combined * min(n_before, n_after) < FEWEST_EXPECTED * n
    cells, rare_values = [[index] for index in np.flatnonzero(~rare).tolist()], np.flatnonzero(rare).tolist()
    if rare_values and combined[rare_values].sum() * min(n_before, n_after) >= FEWEST_EXPECTED * n:
        cells.append(rare_values)
    elif cells and combined[rare_values].sum():  # still too rare: join the rarest of the other cells
        min(cells, key=lambda cell: combined[cell].sum()).extend(rare_values)
    if len(cells) < 2:
        return row | {"reason": TOO_RARE if len(before) > 1 else ALL_EQUAL}, [], 0.0
    # Over two rows: sum of (a n2 - b n1)^2 / ((a + b) n1 n2).
    counts = [(int(before[cell].sum()), int(after[cell].sum())) for cell in cells]
    chi2 = sum((a * n_after - b * n_before) ** 2 / ((a + b) * n_before * n_after) for a, b in counts)
    row |= {"effect": math.sqrt(chi2 / n)} | _p_value_cells(float(chdtrc(len(cells) - 1, chi2)))
    return row, cells, chi2


def compare_medians(values: np.ndarray, before: np.ndarray, after: np.ndarray) -> dict:
    """Compare two samples by Mann-Whitney's test and Cliff's delta, as counts of the distinct ascending `values`.

    Two-sided normal approximation with ties and continuity correction, as scipy's mannwhitneyu(method="asymptotic").
    delta = P(after > before) - P(after < before), the rank-biserial correlation: 1 if every value rose.
    """
    n_before, n_after = int(before.sum()), int(after.sum())
    row = _blank_row(n_before, n_after, "mann_whitney", "cliff_delta")
    if not (n_before and n_after):
        return row | {"reason": NOT_THERE}
    row |= {"before": ValueCounts(values, before).median(), "after": ValueCounts(values, after).median()}
    if min(n_before, n_after) < FEWEST_VALUES:
        return row | {"reason": TOO_FEW}
    # Twice U in integers: jobs below count 2, ties count 1. A product of two counts of jobs fits 64 bits.
    n_below = np.cumsum(before) - before
    doubled_u = int((after * (2 * n_below + before)).sum())
    product = n_before * n_after
    row |= {"effect": (doubled_u - product) / product}
    n = n_before + n_after
    sizes, times = np.unique(before + after, return_counts=True)
    # Python's integers: the cube of a million jobs, times their number, does not fit 64 bits.
    ties = sum(int(n_equal) * (int(size) ** 3 - int(size)) for size, n_equal in zip(sizes, times, strict=True))
    variance = (n**3 - n - ties) * product / (12 * n * (n - 1))
    if not variance:
        return row | {"reason": ALL_EQUAL}
    distance = max(abs(doubled_u - product) / 2 - 0.5, 0.0)
    return row | _p_value_cells(min(1.0, 2 * float(ndtr(-distance / math.sqrt(variance)))))


def _blank_row(n_before: int, n_after: int, test: str, effect_name: str) -> dict:
    blank = dict.fromkeys(("before", "after", "p_value", "effect", "reason"))
    return blank | {"n_before": n_before, "n_after": n_after, "test": test, "effect_name": effect_name}


def _p_value_cells(p: float) -> dict:
    p, reason = raise_to_smallest(p)
    return {"p_value": p} | ({"reason": reason} if reason else {})
