"""How many failures the next week brings, of the weeks seen, and whether such forecasts held.

A week's count is overdispersed: its variance is its mean times a dispersion, 1 or more. The interval of one more week
is that of the quasi-Poisson model (Menssen et al. 2024, arXiv:2404.05282: dispersion times mean times 1 + 1/W), on the
scale of the square root, where the variance of such a count is a quarter of the dispersion (Anscombe 1948), with
Student's t: the mean root of W weeks -/+ t(W - 1) s sqrt(1 + 1/W). s is theirs, and at least a half, as of a Poisson
count. Its ends are the whole numbers within.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

WEEK_S = 7 * 86_400
CONFIDENCE = 0.9
# So few weeks say nothing of how weeks differ.
FEWEST_WEEKS = 4
TOO_FEW_WEEKS = f"fewer than {FEWEST_WEEKS} whole weeks before"
NO_WEEK = "the records hold no whole week"
NO_CAUSES = "causes are not recorded: any failure would count"
# Anscombe's, by which the variance of a root is a quarter also of small counts.
_SHIFT = 3 / 8


def next_week(counts: Sequence[int]) -> dict:
    """expected, low, high (whole numbers) and dispersion of one more week, or the reason why there are none."""
    weeks = np.asarray(counts, float)
    if weeks.size < FEWEST_WEEKS:
        return {"reason": TOO_FEW_WEEKS}
    roots, mean = np.sqrt(weeks + _SHIFT), float(weeks.mean())
    spread = max(float(roots.std(ddof=1)), 0.5)
    away = float(stdtrit(weeks.size - 1, (1 + CONFIDENCE) / 2)) * spread * np.sqrt(1 + 1 / weeks.size)
    low, high = (max(roots.mean() + sign * away, 0.0) ** 2 - _SHIFT for sign in (-1, 1))
    return {
        "expected": mean,
        "low": max(0, int(np.ceil(low))),
        "high": int(np.floor(high)),
        "dispersion": float(weeks.var(ddof=1)) / mean if mean else None,
        "reason": None if mean else "no failure in the weeks before: no dispersion",
    }


def rolling(counts: Sequence[int], end_s: int) -> list[dict]:
    """Rows of FORECAST but for what it is of: each week's forecast from those before it, and the next week's.

    counts: of whole weeks in their order, the last of which ends at end_s.
    """
    rows = []
    for week in range(len(counts) + 1):
        is_over = week < len(counts)
        row = {"week": week + 1, "weeks_before": week, "start_s": end_s - (len(counts) - week) * WEEK_S}
        row |= next_week(counts[:week]) | {"observed": int(counts[week]) if is_over else None}
        if is_over and row.get("high") is not None:
            row["held"] = row["low"] <= row["observed"] <= row["high"]
        rows.append(row)
    return rows
