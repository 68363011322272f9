"""Small simulations of docs/coverage.md: intervals cover if users differ, and true nulls are not rejected."""

import math
import runpy
from pathlib import Path

import pytest

SIMULATED = runpy.run_path(str(Path(__file__).parents[2] / "tools/docs" / "coverage.py"))
WORLDS = SIMULATED["WORLDS"]
WEEKS = runpy.run_path(str(Path(__file__).parents[2] / "tools/docs" / "coverage_weeks.py"))


def margin(share: float, repetitions: int) -> float:
    """Four standard errors of a simulated share."""
    return 4 * math.sqrt(share * (1 - share) / repetitions)


@pytest.mark.parametrize(("world", "minimum", "mean_minimum"), [("100 users", 0.91, 0.89), ("20 users", 0.90, 0.86)])
def test_clustered_intervals_cover_and_the_exact_ones_do_not(world, minimum, mean_minimum):
    coverage = SIMULATED["coverage"](WORLDS[world], 400)
    for estimate, (exact, robust, defined) in coverage.items():
        assert defined == 1
        assert robust >= (mean_minimum if estimate == "mean" else minimum)
        assert exact < 0.5


@pytest.mark.parametrize(
    "world", ["100 users, Weibull run times (shape 0.5)", "20 users, sizes lognormal (log SD 1.5)"]
)
def test_intervals_cover_for_any_run_times_and_sizes(world):
    for estimate, (_, robust, defined) in SIMULATED["coverage"](WORLDS[world], 300).items():
        assert defined > 0.7
        assert robust >= (0.86 if estimate == "mean" else 0.9) - margin(0.9, 300)


def test_both_kinds_cover_if_users_do_not_differ():
    for exact, robust, defined in SIMULATED["coverage"](WORLDS["20 users who do not differ"], 300).values():
        assert defined == 1
        assert exact >= 0.93 - margin(0.93, 300)
        assert robust >= 0.95 - margin(0.95, 300)


def test_clustered_intervals_of_scores_cover_and_exact_ones_do_not():
    world = SIMULATED["World"](60, 1_500)
    coverage = SIMULATED["coverage_of_scores"](world, 60, jobs_per_user=25)
    for score, (exact, robust, defined) in coverage.items():
        assert defined > 0.98
        assert robust >= 0.94 - margin(0.94, 60), score
        assert exact < 0.92, score


@pytest.mark.parametrize("name", SIMULATED["NULLS"])
def test_true_nulls_are_rejected_at_the_nominal_rate(name):
    exact, robust = SIMULATED["rejections"](WORLDS["20 users"], name, 40)
    assert exact > 0.3, "users differ"
    assert robust <= 0.09 + margin(0.09, 40)


@pytest.mark.parametrize(("cv", "max_share", "min_share"), [(0, 0.05, 0.5), (1, 0.15, 0.25)])
def test_bad_nodes_are_found_and_varied_nodes_are_not_flagged(cv, max_share, min_share):
    """The null uses the fleet's own spread. Random variation alone would flag half of the fleets of CV 1."""
    simulate = SIMULATED["lemon_detection"]
    for failures_per_node in (0.35, 3):
        assert simulate(200, failures_per_node, cv, 0, 24)[0] <= max_share + margin(max_share, 24)
    assert simulate(200, 0.35, cv, 3, 24)[1] >= min_share


@pytest.mark.parametrize(("world", "floor"), [("log SD 0.5", 0.92), ("log SD 0.5, AR 0.8", 0.8)])
def test_intervals_cover_if_weeks_differ(world, floor):
    coverage = WEEKS["coverage"](WEEKS["WORLDS"][world], 120)
    for estimate, (_, clustered, defined, _) in coverage.items():
        assert defined > 0.95
        assert clustered >= floor - margin(floor, 120) / 2, estimate
    assert coverage["time between outages"][0] < 0.9, "by node alone"


def test_weeks_that_do_not_differ_cost_little_width():
    world = WEEKS["World"](0.0, 0.0, active_share=0.2)
    for _, clustered, _, width in WEEKS["coverage"](world, 120).values():
        assert clustered >= 0.95 - margin(0.95, 120)
        assert width < 1.1


def test_a_type_that_came_late_is_no_finding_if_weeks_differ():
    shares = WEEKS["late_type"](WEEKS["WORLDS"]["log SD 0.5"], 24)
    for name in ("log-rank rejects", "Cox rejects"):
        by_user, by_week = shares[name]
        assert by_user > 0.15 and by_week <= 0.05 + margin(0.05, 24)
    assert shares["median holds the truth"][1] >= 0.95 - margin(0.95, 24)


def test_the_ettr_allows_for_the_error_of_the_waits():
    exact, clustered, defined = SIMULATED["coverage_of_ettr"](1.0, 60)
    assert exact < 0.8 and defined > 0.8
    assert clustered >= 0.85
