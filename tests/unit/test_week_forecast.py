"""The forecast of the next week: its formula, its simulated coverage, and its test on past weeks."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from memory_tables import compute_metrics
from scipy import stats
from ttf.analyses.quality.compare_parts import FORECAST
from ttf.analyses.quality.compare_parts.forecast import (
    FEWEST_WEEKS,
    TOO_FEW_WEEKS,
    WEEK_S,
    next_week,
    rolling_forecasts,
)

SIMULATED = runpy.run_path(str(Path(__file__).parents[2] / "tools/docs" / "coverage_changes.py"))


def test_the_interval_is_that_of_the_residuals_of_rolling_forecasts():
    weeks = np.array([90, 140, 100, 160, 110, 120, 150, 130, 170])
    scaled = np.arcsinh(np.sqrt((weeks + 3 / 8) / 10))
    residuals = np.array([scaled[week] - scaled[week - 2 : week].mean() for week in range(2, 9)])
    middle = scaled[-2:].mean()
    half_width = stats.t.ppf(0.95, 7) * np.sqrt((residuals**2).mean())
    forecast = next_week(weeks)
    low, expected, high = (10 * np.sinh(middle + sign * half_width) ** 2 - 3 / 8 for sign in (-1, 0, 1))
    assert forecast["expected"] == pytest.approx(expected)
    assert (forecast["low"], forecast["high"]) == (np.ceil(low), np.floor(high))
    assert forecast["dispersion"] == pytest.approx(np.var(weeks, ddof=1) / weeks.mean())


def test_equal_weeks_have_the_variation_of_counts():
    forecast = next_week([100] * 30)
    # Poisson variation gives 84 to 117; with the error of two weeks it is 80 to 121.
    assert abs(forecast["low"] - 80) <= 2 and abs(forecast["high"] - 122) <= 2
    assert next_week([0] * 8)["high"] in (1, 2, 3, 4) and next_week([0] * 8)["low"] == 0


@pytest.mark.parametrize("world", SIMULATED["FORECAST"])
@pytest.mark.parametrize("weeks", [12, 26])
def test_the_forecast_covers_growing_and_equal_weeks(world, weeks):
    coverage = SIMULATED["forecast_coverage"](weeks, 100, *SIMULATED["FORECAST"][world], 400, seed=5)
    assert coverage >= 0.85


def test_too_few_weeks_give_no_forecast():
    assert next_week([5] * (FEWEST_WEEKS - 1)) == {"reason": TOO_FEW_WEEKS}


def test_each_week_is_forecast_from_earlier_weeks_only():
    weeks = [10, 12, 8, 10, 11, 9, 13, 10, 11, 60]
    rows = rolling_forecasts(weeks, 100 * WEEK_S)
    assert [row["week"] for row in rows] == list(range(1, 12))
    assert [row["start_s"] // WEEK_S for row in rows] == list(range(90, 101))
    assert [row.get("held") for row in rows] == [None] * 8 + [True, False, None]
    assert rows[8] | next_week(weeks[:8]) == rows[8]
    assert rows[-1] | next_week(weeks) == rows[-1] and rows[-1]["observed"] is None
    FORECAST.check(FORECAST.frame(row | {"what": "failed_jobs"} for row in rows))
    table = FORECAST.frame(row | {"what": "failed_jobs"} for row in rows)
    metrics = compute_metrics("compare_parts", {"week_forecast": table})
    value = {key.removeprefix("forecast.failed_jobs."): metric["value"] for key, metric in metrics.items()}
    assert (value["held"], value["tried"]) == (1, 2)
