"""Probability plots: points and lines where they belong, nothing to draw."""

import json
import math

import numpy as np
import polars as pl
import pytest
import vl_convert
from ttf.analyses.fit_mttf.lifetimes import lifetime_models
from ttf.analyses.judge_lifetimes.charts import MOST_POINTS, probability_plots
from ttf.charts.figure import Figure, Study
from ttf.stats.survival import survival_tables


def lives_of(n: int, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    times, ends = 90_000 * rng.weibull(0.7, n), rng.uniform(0, 200_000, n)
    return pl.DataFrame(
        {
            "duration_s": np.minimum(times, ends).astype(np.int64),
            "event": np.where(times <= ends, "failure", "success"),
        }
    )


def drawn(lives: pl.DataFrame) -> Figure:
    curves, _ = survival_tables(lives, "failure", ["all"])
    return probability_plots(curves, lifetime_models(lives, "failure", ["all"]), Study("GPU"))


def test_points_follow_the_lines_of_the_model_that_made_them() -> None:
    figure = drawn(lives_of(20_000))
    assert "Weibull: lowest AIC" in json.dumps(figure.spec())
    assert "n = 20,000 GPUs" in figure.caption
    (low, high) = figure.datasets["weibull_lines"]
    slope = math.log(high["y"] / low["y"]) / math.log(high["x"] / low["x"])
    assert slope == pytest.approx(0.7, abs=0.02)
    points = [row for row in figure.datasets["weibull_points"] if row["t"] > 100]
    assert 20 < len(points) <= MOST_POINTS
    for row in points:
        on_line = low["y"] * (row["x"] / low["x"]) ** slope
        assert row["y"] == pytest.approx(on_line, rel=0.15)
        assert row["y"] == pytest.approx(-math.log1p(-row["f"]), rel=1e-4)
    (low, high) = figure.datasets["exponential_lines"]
    assert high["y"] / low["y"] == pytest.approx(high["x"] / low["x"], rel=1e-4)


@pytest.mark.parametrize(
    ("lives", "reason"),
    [
        (lives_of(0), "failures at fewer than 3 times"),
        (lives_of(20).with_columns(event=pl.lit("success")), "failures at fewer than 3 times"),
        (lives_of(20).with_columns(duration_s=pl.lit(5, dtype=pl.Int64)), "failures at fewer than 3 times"),
        (lives_of(20).with_columns(duration_s=pl.lit(None, dtype=pl.Int64)), "failures at fewer than 3 times"),
    ],
)
def test_nothing_to_draw(lives: pl.DataFrame, reason: str) -> None:
    figure = drawn(lives)
    assert reason in figure.empty
    vl_convert.vegalite_to_svg(json.dumps(figure.spec(validate=True)), allowed_base_urls=[])


@pytest.mark.parametrize(
    "seconds",
    [[0, 1, 2], [1, 10**5, 10**9], [10**9, 10**9 + 1, 10**9 + 2], [0, 0, 1, 1, 7]],
)
def test_extreme_lives_can_be_drawn(seconds: list[int]) -> None:
    lives = pl.DataFrame({"duration_s": seconds, "event": ["failure"] * len(seconds)})
    figure = drawn(lives)
    assert figure.empty is None
    for rows in figure.datasets.values():
        assert all(math.isfinite(value) for row in rows for value in row.values() if isinstance(value, float))
    vl_convert.vegalite_to_svg(json.dumps(figure.spec(validate=True)), allowed_base_urls=[])
