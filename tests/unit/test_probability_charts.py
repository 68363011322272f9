"""Probability plots: points and lines where they belong, nothing to draw, hostile strata."""

import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest
import vl_convert
from ttf.analyses.fit_mttf.lifetimes import lifetime_models
from ttf.analyses.judge_lifetimes.charts import MOST_POINTS, MOST_STRATA, probability_plots
from ttf.charts.figure import Figure, Study
from ttf.stats.survival import survival_tables


def lives_of(n: int = 600, batches: tuple[str | None, ...] = ("old", "new"), seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    times, ends = 90_000 * rng.weibull(0.7, n), rng.uniform(0, 200_000, n)
    return pl.DataFrame(
        {
            "duration_s": np.minimum(times, ends).astype(np.int64),
            "event": np.where(times <= ends, "failure", "success"),
            "batch": [batches[number % len(batches)] for number in range(n)],
        },
        schema_overrides={"batch": pl.String},
    )


def drawn(lives: pl.DataFrame, stratum_by: str = "all", study: Study = Study("GPU")) -> Figure:  # noqa: B008
    curves, _ = survival_tables(lives, "failure", [stratum_by])
    return probability_plots(curves, lifetime_models(lives, "failure", [stratum_by]), stratum_by, study)


def test_points_follow_the_lines_of_the_model_that_made_them() -> None:
    figure = drawn(lives_of(20_000))
    assert figure.title == "Of the four models the Weibull fits the failures of GPUs best"
    assert "n = 20,000 lives" in figure.caption
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
        (lives_of(0), "no stratum has failures"),
        (lives_of(20).with_columns(event=pl.lit("success")), "no stratum has failures"),
        (lives_of(20).with_columns(duration_s=pl.lit(5, dtype=pl.Int64)), "no stratum has failures"),
        (lives_of(20).with_columns(duration_s=pl.lit(None, dtype=pl.Int64)), "no stratum has failures"),
    ],
)
def test_nothing_to_draw(lives: pl.DataFrame, reason: str) -> None:
    for stratum_by in ("all", "batch"):
        figure = drawn(lives, stratum_by)
        assert reason in figure.empty
        vl_convert.vegalite_to_svg(json.dumps(figure.spec(validate=True)), allowed_base_urls=[])


def test_hostile_strata_are_labels_and_the_most_failures_are_drawn() -> None:
    hostile = ("<script>alert(1)</script>", "'+alert(2)+'", "\x00\u202e", "long" * 40, "datum.x", None)
    figure = drawn(lives_of(1200, hostile), "batch", Study("GPU", synthetic=True))
    spec = figure.spec(validate=True)
    assert len({row["s"] for row in figure.datasets["gamma_points"]}) == MOST_STRATA
    assert "1 more in lifetime_models.csv" in figure.caption
    text = json.dumps({key: value for key, value in spec.items() if key != "datasets"}, ensure_ascii=False)
    assert "\x00" not in text and "\u202e" not in text and "long" * 11 not in text
    ET.fromstring(vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[]))
    assert "Synthetic" in json.dumps(spec["title"])


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
