"""How many failures the next week brings, of the weeks seen, and whether such forecasts held.

Rates grow, and a bad week follows a bad week: the forecast is the mean of the last two weeks, and its error is how far
off such forecasts were in the weeks seen (the root of their mean square, of which growth is a part), by Student's
quantile. The scale is one on which the error of few failures (a root's) and of many (a logarithm's) is the same:
asinh(sqrt((n + 3/8) / SCALE)) (Anscombe 1948; 1 / SCALE is the part of the variance that grows as the square of the
mean). The error is at least that of Poisson counts. The ends are the whole numbers within.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

WEEK_S = 7 * 86_400
CONFIDENCE = 0.9
# Weeks whose mean is the forecast.
RECENT = 2
# With fewer weeks there are fewer than six residuals.
FEWEST_WEEKS = 8
TOO_FEW_WEEKS = f"fewer than {FEWEST_WEEKS} whole weeks before"
NO_WEEK = "the records hold no whole week"
NO_CAUSES = "causes are not recorded: any failure would count"
SCALE, _SHIFT = 10, 3 / 8


def next_week(counts: Sequence[int]) -> dict:
    """expected, low, high (whole numbers) and dispersion of one more week, or the reason why there are none."""
    weeks = np.asarray(counts, float)
    if weeks.size < FEWEST_WEEKS:
        return {"reason": TOO_FEW_WEEKS}
    scaled = np.arcsinh(np.sqrt((weeks + _SHIFT) / SCALE))
    recent = np.convolve(scaled, np.full(RECENT, 1 / RECENT), "valid")
    residuals = scaled[RECENT:] - recent[:-1]
    poisson = 0.5 * np.sqrt((1 + 1 / RECENT) / (weeks[-RECENT:].mean() + SCALE + _SHIFT))
    error = max(float(np.sqrt((residuals**2).mean())), poisson)
    away = stdtrit(residuals.size, (1 + CONFIDENCE) / 2) * error
    low, expected, high = SCALE * np.sinh(np.maximum(recent[-1] + np.array([-away, 0, away]), 0)) ** 2 - _SHIFT
    mean = float(weeks.mean())
    return {
        "expected": max(0.0, float(expected)),
        "low": max(0, int(np.ceil(low))),
        "high": int(np.floor(high)),
        "dispersion": float(weeks.var(ddof=1)) / mean if mean else None,
        "reason": None if mean else "no failure in the weeks before: no dispersion",
    }


def rolling(counts: Sequence[int], end_s: int) -> list[dict]:
    """Rows of FORECAST but for what it is of: each week's forecast from those before it, and the next week's.

    counts: of whole weeks in their order, the last of which ends at end_s.
    """
    rows, helds = [], []
    for week in range(len(counts) + 1):
        is_over = week < len(counts)
        row = {"week": week + 1, "weeks_before": week, "start_s": end_s - (len(counts) - week) * WEEK_S}
        row |= {"tried": len(helds), "held_of_tried": sum(helds) if helds else None}
        row |= next_week(counts[:week]) | {"observed": int(counts[week]) if is_over else None}
        if is_over and row.get("high") is not None:
            row["held"] = row["low"] <= row["observed"] <= row["high"]
            helds.append(row["held"])
        rows.append(row)
    return rows
