"""The forecast of the next week: its formula, its coverage by simulation, and how it is tried on the weeks seen."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from ttf.analyses.compare_parts import FORECAST
from ttf.analyses.compare_parts.forecast import FEWEST_WEEKS, TOO_FEW_WEEKS, WEEK_S, next_week, rolling
from ttf.analyses.compare_parts.numbers import of_forecast
from ttf.numbers.metrics import Metrics
from ttf.stats.shares import wilson_interval


def test_the_interval_is_students_on_the_scale_of_the_root():
    weeks = [90, 140, 100, 160, 110]
    roots = np.sqrt(np.array(weeks) + 3 / 8)
    away = stats.t.ppf(0.95, 4) * roots.std(ddof=1) * np.sqrt(1 + 1 / 5)
    found = next_week(weeks)
    assert found["expected"] == 120
    assert found["low"] == np.ceil((roots.mean() - away) ** 2 - 3 / 8)
    assert found["high"] == np.floor((roots.mean() + away) ** 2 - 3 / 8)
    assert found["dispersion"] == pytest.approx(np.var(weeks, ddof=1) / 120)


def test_weeks_that_are_all_alike_vary_as_counts_do():
    found = next_week([100] * 30)
    # Poisson's own: 84 to 117.
    assert (
        abs(found["low"] - stats.poisson.ppf(0.05, 100)) <= 2 and abs(found["high"] - stats.poisson.ppf(0.95, 100)) <= 2
    )
    assert next_week([0] * 8)["high"] in (1, 2, 3) and next_week([0] * 8)["low"] == 0


def test_too_few_weeks_give_no_forecast():
    assert next_week([5] * (FEWEST_WEEKS - 1)) == {"reason": TOO_FEW_WEEKS}


@pytest.mark.parametrize("mean", [2, 8, 200])
@pytest.mark.parametrize("dispersion", [1, 4])
@pytest.mark.parametrize("weeks", [4, 12])
def test_nine_of_ten_next_weeks_are_within(mean, dispersion, weeks):
    rng, studies = np.random.default_rng(weeks), 2000
    rate = mean if dispersion == 1 else rng.gamma(mean / (dispersion - 1), dispersion - 1, (studies, weeks + 1))
    counts = rng.poisson(rate, (studies, weeks + 1))
    held = 0
    for row in counts:
        found = next_week(row[:-1])
        held += found["low"] <= row[-1] <= found["high"]
    # Whole numbers cover more where counts are small, and so does an s of a half at least.
    assert held / studies > 0.9 - 3 * np.sqrt(0.09 / studies)


def test_each_week_is_forecast_from_those_before_alone():
    rows = rolling([10, 12, 8, 10, 11, 60], 100 * WEEK_S)
    assert [row["week"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["start_s"] // WEEK_S for row in rows] == [94, 95, 96, 97, 98, 99, 100]
    assert [row.get("held") for row in rows] == [None] * 4 + [True, False, None]
    assert rows[4] | next_week([10, 12, 8, 10]) == rows[4]
    assert rows[-1] | next_week([10, 12, 8, 10, 11, 60]) == rows[-1] and rows[-1]["observed"] is None
    FORECAST.check(FORECAST.frame(row | {"what": "failed_jobs"} for row in rows))
    metrics = Metrics()
    of_forecast(metrics, FORECAST.frame(row | {"what": "failed_jobs"} for row in rows))
    value = {key.removeprefix("forecast.failed_jobs."): about["value"] for key, about in metrics.items()}
    assert (value["held"], value["tried"], value["coverage"], value["weeks"]) == (1, 2, 0.5, 6)
    low, high = wilson_interval(np.array([1]), np.array([2]))
    assert (value["coverage_low"], value["coverage_high"]) == (low[0], high[0])


def test_no_whole_week_is_a_reason():
    metrics = Metrics()
    blank = FORECAST.frame([{"what": "failed_jobs", "week": 1, "weeks_before": 0, "reason": "none"}])
    of_forecast(metrics, blank)
    assert metrics["forecast.failed_jobs.reason"]["value"] == "none"
    assert "forecast.failed_jobs.high" not in metrics and pl.Series(blank["held"]).is_null().all()
