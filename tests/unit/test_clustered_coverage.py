"""Intervals that hold when users differ, and nulls not rejected: docs/coverage.md at a price that a test can pay."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

SIMULATED = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "coverage.py"))
WORLDS = SIMULATED["WORLDS"]
WEEKS = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "coverage_weeks.py"))


def error(share: float, repetitions: int) -> float:
    """Four standard errors."""
    return 4 * math.sqrt(share * (1 - share) / repetitions)


@pytest.mark.parametrize(("world", "least", "least_of_means"), [("100 users", 0.91, 0.89), ("20 users", 0.90, 0.86)])
def test_clustered_intervals_cover_and_the_exact_ones_do_not(world, least, least_of_means):
    found = SIMULATED["coverage"](WORLDS[world], 2_000)
    for estimate, (exact, robust, given) in found.items():
        assert given == 1
        assert robust >= (least_of_means if estimate == "mean" else least)
        assert exact < 0.5


@pytest.mark.parametrize(
    "world",
    [
        "100 users, exponential run times",
        "100 users, Weibull run times (shape 0.5)",
        "100 users, sizes lognormal (log SD 1.5)",
        "20 users, sizes lognormal (log SD 1.5)",
    ],
)
def test_they_cover_whatever_the_run_times_and_sizes(world):
    for estimate, (_, robust, given) in SIMULATED["coverage"](WORLDS[world], 600).items():
        assert given > 0.7
        assert robust >= (0.86 if estimate == "mean" else 0.9) - error(0.9, 600)


@pytest.mark.parametrize("world", ["100 users who do not differ", "20 users who do not differ"])
def test_where_users_do_not_differ_both_kinds_cover(world):
    for exact, robust, given in SIMULATED["coverage"](WORLDS[world], 600).values():
        assert given == 1
        assert exact >= 0.93 - error(0.93, 600)
        assert robust >= 0.95 - error(0.95, 600)


def test_the_truths_are_those_of_many_jobs():
    world = SIMULATED["World"](50_000, 2_000_000, spread=0.5, zipf=0.0)
    true = SIMULATED["truth"](world)
    ((_, _, run_time, to_failure),) = SIMULATED["traces"](world, np.random.default_rng(1), 1)
    assert (to_failure <= run_time).mean() == pytest.approx(true.share, rel=0.01)
    assert np.minimum(run_time, to_failure).sum() / (to_failure <= run_time).sum() == pytest.approx(true.mttf, rel=0.01)
    assert run_time.mean() == pytest.approx(true.mean, rel=0.02)
    assert np.median(run_time) == pytest.approx(true.median, rel=0.02)


def test_intervals_of_scores_cover_and_those_of_jobs_by_themselves_do_not():
    world = SIMULATED["World"](60, 1_500)
    for score, (exact, robust, given) in SIMULATED["coverage_of_scores"](world, 300).items():
        assert given > 0.98
        assert 0.9 <= robust <= 0.98, score
        assert exact < 0.9, score


@pytest.mark.parametrize("name", SIMULATED["NULLS"])
def test_true_nulls_are_rejected_as_often_as_said(name):
    exact, robust = SIMULATED["rejections"](WORLDS["20 users"], name, 120)
    assert exact > 0.3, "users differ"
    assert robust <= 0.09 + error(0.09, 120)


@pytest.mark.parametrize(("cv", "most", "least"), [(0, 0.05, 0.5), (0.5, 0.1, 0.4), (1, 0.15, 0.25)])
def test_nodes_that_differ_are_no_lemons_and_bad_ones_are_found(cv, most, least):
    """By the fleet's own spread, which bad nodes do not make; chance alone explained half of the fleets of CV 1."""
    found = SIMULATED["lemons_found"]
    assert found(200, 0.35, cv, 0, 100)[0] <= most + error(most, 100)
    assert found(200, 3, cv, 0, 60)[0] <= most + error(most, 60)
    assert found(200, 0.35, cv, 3, 100)[1] >= least


@pytest.mark.parametrize(("world", "least"), [("log SD 0.3", 0.92), ("log SD 0.5", 0.92), ("log SD 0.5, AR 0.8", 0.8)])
def test_intervals_hold_where_weeks_differ(world, least):
    found = WEEKS["coverage"](WEEKS["WORLDS"][world], 300)
    for estimate, (_, both, given, _) in found.items():
        assert given > 0.95
        assert both >= least - error(least, 300) / 2, estimate
    assert found["time between outages"][0] < 0.9, "by node alone"


def test_weeks_that_do_not_differ_cost_little_width():
    for active in (1.0, 0.2):
        world = WEEKS["World"](0.0, 0.0, active=active)
        for _, both, _, width in WEEKS["coverage"](world, 200).values():
            assert both >= 0.95 - error(0.95, 200)
            assert width < 1.1


def test_the_ettr_allows_for_the_error_of_the_waits():
    known, both, given = SIMULATED["coverage_of_ettr"](1.0, 200)
    assert known < 0.8 and given > 0.8
    assert both >= 0.85
