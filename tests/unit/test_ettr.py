"""Effective training time: closed forms, their limits, the simulation, and the best checkpoint interval."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_inputs import wall_by_first_steps
from scipy.optimize import minimize_scalar
from ttf.stats.large_runs.ettr import (
    Plan,
    daly_young_interval_s,
    estimate_ettr,
    ettr_combined,
    ettr_long_run,
    ettr_renewal,
    ettr_v1,
    ettr_v2,
    expected_interruptions,
    expected_scheduled_s,
    expected_wall_s,
    optimal_interval_s,
    simulate,
)
from ttf.stats.large_runs.plans import Habits

DAY = 86_400
PLAN = Plan(
    failures_per_s=1000 * 6.5e-3 / DAY, interval_s=3600, write_s=300, restart_s=300, queue_s=600, productive_s=14 * DAY
)


def simulate_runs(plan: Plan, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return simulate(replace(plan, failures_per_s=np.full(runs, plan.failures_per_s)), np.random.default_rng(seed))


# Times in seconds, small and large against each other, and a load that can still be simulated.
PLANS = st.builds(
    Plan,
    failures_per_s=st.floats(0, 1e-3),
    interval_s=st.floats(1, 1e4),
    write_s=st.floats(0, 1e3),
    restart_s=st.floats(0, 1e4),
    queue_s=st.floats(0, 1e5),
    productive_s=st.floats(1, 1e7),
)


def test_by_hand():
    # Two failures a day, each losing 40 minutes, with ten minutes of waiting; ten days of work.
    plan = Plan(2 / DAY, 3600, 300, 600, 600, 10 * DAY)
    lost = 2 * 2400 / DAY
    assert plan.lost_share == pytest.approx(lost)
    assert ettr_v1(plan) == pytest.approx((1 - lost) / (1 + 1200 / (10 * DAY) + 1200 / DAY))
    assert ettr_v2(plan) == pytest.approx((1 - lost) / (1 + 300 / 3600))
    scheduled = (10 * DAY * (1 + 300 / 3600) + 600) / (1 - lost)
    assert ettr_combined(plan) == pytest.approx(10 * DAY / (scheduled + 600 * (1 + 2 * scheduled / DAY)))


def test_without_failures_all_is_exact():
    calm = replace(PLAN, failures_per_s=0.0)
    wall = 600 + 300 + 14 * 24 * 3900
    assert expected_wall_s(calm) == expected_scheduled_s(calm) + 600 == wall
    assert expected_interruptions(calm) == 0
    assert ettr_renewal(calm) == ettr_combined(calm) == pytest.approx(14 * DAY / wall, rel=1e-15)
    assert ettr_long_run(calm) == pytest.approx(12 / 13)
    walls, interruptions = simulate_runs(calm, 3, 0)
    assert walls.tolist() == [wall] * 3 and not interruptions.any()


@pytest.mark.parametrize("load", [1e-3, 0.1, 1.0, 3.0])
@pytest.mark.parametrize(
    "habit", [Habits(3600, 300, 600, 900, 25_000), Habits(500, 0, 0, 0, 1000), Habits(9, 1, 8, 7, 5)]
)
def test_the_mean_equals_first_step_analysis(load, habit):
    rate = load / habit.interval_s
    plan = Plan(rate, habit.interval_s, habit.write_s, habit.restart_s, habit.queue_s, habit.productive_s)
    assert expected_wall_s(plan) == pytest.approx(wall_by_first_steps(rate, habit), rel=1e-9)


def test_the_last_piece_may_be_short():
    # 2.5 intervals are three pieces with three writes.
    calm = Plan(0.0, 1000, 10, 0, 0, 2500)
    assert expected_wall_s(calm) == 2530
    assert expected_wall_s(replace(calm, interval_s=1e9)) == 2510
    # A third of the work, rounded, is three pieces and not four.
    assert expected_wall_s(replace(calm, interval_s=2500 / 3 * (1 - 1e-15))) == pytest.approx(2530)


@given(PLANS)
def test_long_runs_converge_to_the_long_run_form(plan):
    pieces = 1e9
    long = replace(plan, productive_s=plan.interval_s * pieces)
    start = (plan.restart_s + plan.queue_s) * np.exp(plan.failures_per_s * plan.restart_s)
    assert ettr_renewal(long) == pytest.approx(ettr_long_run(plan), rel=1e-9 + 3 * start / (pieces * plan.interval_s))


@given(PLANS)
def test_the_ratio_is_a_share_and_failures_only_harm(plan):
    ratio = ettr_renewal(plan)
    assert 0 <= ratio <= 1
    assert ettr_renewal(replace(plan, failures_per_s=plan.failures_per_s * 1.1)) <= ratio
    assert ettr_renewal(replace(plan, restart_s=plan.restart_s * 1.1)) <= ratio * (1 + 1e-12)
    assert ettr_renewal(replace(plan, write_s=plan.write_s * 1.1)) <= ratio * (1 + 1e-12)


@pytest.mark.parametrize("lost", [1.0, 1.5])
def test_beyond_their_range_the_approximations_are_none(lost):
    plan = replace(PLAN, failures_per_s=lost / (PLAN.restart_s + PLAN.interval_s / 2))
    assert np.isnan([ettr_v1(plan), ettr_v2(plan), ettr_combined(plan)]).all()
    assert 0 < ettr_renewal(plan) < 0.6


def test_an_endless_run_has_no_effective_time():
    endless = replace(PLAN, failures_per_s=1.0)
    assert expected_wall_s(endless) == np.inf
    assert ettr_renewal(endless) == ettr_long_run(endless) == 0
    single_piece = replace(endless, productive_s=3600, queue_s=0)
    assert expected_wall_s(single_piece) == np.inf
    # The time on the nodes is below the largest float, the time with waits is not.
    nearly_endless = replace(PLAN, failures_per_s=0.18, restart_s=0, queue_s=1e9)
    assert np.isfinite(expected_scheduled_s(nearly_endless)) and expected_wall_s(nearly_endless) == np.inf


@pytest.mark.parametrize("name", [field.name for field in fields(Plan)])
@pytest.mark.parametrize("value", [-1, np.nan, np.inf, np.array([1.0, -1.0])])
def test_nonsense_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        replace(PLAN, **{name: value})


@pytest.mark.parametrize("name", ["interval_s", "productive_s"])
def test_a_plan_needs_work(name):
    with pytest.raises(ValueError, match=f"{name} has to be above 0"):
        replace(PLAN, **{name: 0})


# The simulation ------------------------------------------------------------------------------------------


GRID = [
    replace(PLAN, failures_per_s=load / 3600, restart_s=restart, queue_s=queue, write_s=write, productive_s=work)
    for load in (0.003, 0.4)
    for restart, queue, write in ((0, 0, 0), (300, 600, 300), (1200, 7200, 0))
    for work in (4 * 3600, 100.3 * 3600)
]


@pytest.mark.parametrize("number", range(len(GRID)))
def test_the_simulation_agrees_with_the_exact_form(number):
    plan = GRID[number]
    wall, interruptions = simulate_runs(plan, 4000, seed=100 + number)
    estimate, error = estimate_ettr(plan.productive_s, wall)
    assert abs(estimate - ettr_renewal(plan)) < 4 * error
    spread = interruptions.std(ddof=1) / np.sqrt(interruptions.size)
    assert abs(interruptions.mean() - expected_interruptions(plan)) < 4 * spread
    # Only the submission and each interruption wait in the queue.
    assert (wall - plan.queue_s * (1 + interruptions)).min() >= plan.productive_s


# The best interval ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", 10.0 ** np.arange(-12, 2, 2))
def test_the_best_interval_is_that_of_a_numerical_search(load):
    rate = 1e-4
    write = load / rate
    best = optimal_interval_s(rate, write)

    def log_scheduled(log_interval: float) -> float:
        # Minus 1, the time per second of work keeps its digits near the optimum.
        plan = Plan(rate, np.exp(log_interval), write, 0, 0, 1)
        return 1 / ettr_long_run(plan) - 1

    search = minimize_scalar(
        log_scheduled, bounds=np.log([best / 20, best * 20]), method="bounded", options={"xatol": 1e-9}
    )
    # At a flat minimum a search finds half of the digits.
    assert best == pytest.approx(np.exp(search.x), rel=2e-4)
    assert best <= daly_young_interval_s(rate, write)


def test_limits_of_the_best_interval():
    assert optimal_interval_s(1e-4, 0) == daly_young_interval_s(1e-4, 0) == 0
    assert optimal_interval_s(0, 300) == daly_young_interval_s(0, 300) == np.inf
    assert np.isnan([optimal_interval_s(0, 0), daly_young_interval_s(0, 0)]).all()
    assert optimal_interval_s(np.array([0, 1e-4]), 300).shape == (2,)
