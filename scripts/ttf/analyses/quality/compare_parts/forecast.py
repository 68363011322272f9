"""Forecast the failures of the next week from earlier weeks, and check past forecasts.

Rates grow, and a bad week follows a bad week. So the forecast is the mean of the last two weeks. Its error is the root
mean square error of such forecasts in the past, growth included, times Student's quantile, and at least that of Poisson
counts. Counts are transformed by asinh(sqrt((n + 3/8) / SCALE)), so that few failures (a square root's error) and many
(a logarithm's) have the same error (Anscombe 1948; 1 / SCALE is the part of the variance that grows as the square of
the mean). The bounds are the outermost whole numbers inside the interval.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

WEEK_S = 7 * 86_400
CONFIDENCE = 0.9
# Weeks whose mean is the forecast.
RECENT_WEEKS = 2
# With fewer weeks there are fewer than six residuals.
FEWEST_WEEKS = 8
TOO_FEW_WEEKS = f"fewer than {FEWEST_WEEKS} whole weeks before"
NO_WEEK = "the records hold no whole week"
NO_CAUSES = "causes are not recorded: any failure would count"
SCALE, _SHIFT = 10, 3 / 8


def next_week(counts: Sequence[int]) -> dict:
    """Forecast one more week: expected, low, high (whole numbers) and dispersion, or the reason why not."""
    weeks = np.asarray(counts, float)
    if weeks.size < FEWEST_WEEKS:
        return {"reason": TOO_FEW_WEEKS}
    scaled = np.arcsinh(np.sqrt((weeks + _SHIFT) / SCALE))
    recent = np.convolve(scaled, np.full(RECENT_WEEKS, 1 / RECENT_WEEKS), "valid")
    residuals = scaled[RECENT_WEEKS:] - recent[:-1]
    poisson_error = 0.5 * np.sqrt((1 + 1 / RECENT_WEEKS) / (weeks[-RECENT_WEEKS:].mean() + SCALE + _SHIFT))
    error = max(float(np.sqrt((residuals**2).mean())), poisson_error)
    margin = stdtrit(residuals.size, (1 + CONFIDENCE) / 2) * error
    low, expected, high = SCALE * np.sinh(np.maximum(recent[-1] + np.array([-margin, 0, margin]), 0)) ** 2 - _SHIFT
    mean = float(weeks.mean())
    return {
        "expected": max(0.0, float(expected)),
        "low": max(0, int(np.ceil(low))),
        "high": int(np.floor(high)),
        "dispersion": float(weeks.var(ddof=1)) / mean if mean else None,
        "reason": None if mean else "no failure in the weeks before: no dispersion",
    }


def rolling_forecasts(counts: Sequence[int], end_s: int) -> list[dict]:
    """Return rows of FORECAST without `what`: each week's forecast from earlier weeks, then that of the next week.

    counts: of complete weeks in order, the last of which ends at end_s.
    """
    rows, results = [], list[bool]()
    for week in range(len(counts) + 1):
        is_over = week < len(counts)
        row: dict = {"week": week + 1, "weeks_before": week, "start_s": end_s - (len(counts) - week) * WEEK_S}
        row |= {"tried": len(results), "held_of_tried": sum(results) if results else None}
        row |= next_week(counts[:week]) | {"observed": int(counts[week]) if is_over else None}
        if is_over and row.get("high") is not None:
            row["held"] = row["low"] <= row["observed"] <= row["high"]
            results.append(row["held"])
        rows.append(row)
    return rows
