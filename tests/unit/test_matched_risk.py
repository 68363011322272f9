"""Failures after signals against those at matched times: closed forms, edges of the windows, and simulated traces."""

import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from ttf.stats.matched_risk import (
    CONTROL_S,
    RUNS,
    SIGNALS,
    WATCH,
    History,
    compare_counts,
    compare_with_control,
    most_by_chance,
    pair_running,
)

COVERAGE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "coverage_node_errors.py"))
DAY, HOUR, WINDOW = 86_400, 3_600, 300


def make_history(runs, spans) -> History:
    """Return the history of runs (unit, start, end, failed) and spans (unit, start, end)."""
    rows = [(number, *run) for number, run in enumerate(runs)]
    return History(pl.DataFrame(rows, RUNS, orient="row"), pl.DataFrame(spans, WATCH, orient="row"))


def make_signals(*rows) -> pl.DataFrame:
    return pl.DataFrame(rows, SIGNALS, orient="row")


def fill_days(days, unit=0, failed=(), length=DAY):
    """Return runs that fill each day; those of `failed` fail at noon."""
    return [
        (unit, day * DAY, day * DAY + (DAY // 2 if day in failed else length), day in failed) for day in range(days)
    ]


def test_running_time_and_failures_up_to_a_moment():
    history = make_history([(0, 10, 30, True), (0, 20, 40, False), (1, 5, 15, True)], [(0, 0, 100), (1, 0, 100)])
    unit, moments = np.zeros(5, np.int64), np.array([10, 20, 25, 30, 60])
    assert history.running_s(unit, moments).tolist() == [0, 10, 20, 30, 40]
    assert history.count_failures(unit, moments).tolist() == [0, 0, 0, 1, 1]
    assert history.running_s(unit + 1, moments).tolist() == [5, 10, 10, 10, 10]
    assert history.is_in_spans(np.array([0]), np.array([20]), np.array([30])).tolist() == [True, False]


def test_a_gap_in_the_watch_is_no_control_time():
    history = make_history(fill_days(3), [(0, 0, DAY), (0, 2 * DAY, 3 * DAY)])
    unit = np.zeros(4, np.int64)
    low = np.array([100, DAY - 10, DAY + 5, 2 * DAY])
    assert history.is_watched(unit, low, low + 50).tolist() == [True, False, False, True]
    assert not history.is_watched(unit + 1, low, low + 50).any()


def test_a_hit_is_a_run_on_the_unit_at_that_moment():
    runs = [(0, 0, 100, False), (0, 100, 3 * DAY, True), (1, 0, 3 * DAY, False)]
    history = make_history(runs, [])
    signals = make_signals((0, "a", 100), (0, "a", 2 * DAY), (1, "b", 3 * DAY), (1, "b", 3 * DAY + 1))
    pairs = pair_running(signals, history.runs)
    assert pairs.select("code", "run", "time_s").rows() == [
        ("a", 0, 100),
        ("a", 1, 100),
        ("a", 1, 2 * DAY),
        ("b", 2, 3 * DAY),
    ]


@pytest.mark.parametrize(
    ("end", "failed", "is_hit"), [(WINDOW, True, True), (WINDOW + 1, True, False), (9, False, False)]
)
def test_only_a_failure_within_the_window_counts(end, failed, is_hit):
    noon = 5 * DAY + DAY // 2
    runs = [*fill_days(4, failed={1}), (0, noon - HOUR, noon + end, failed)]
    hits, _ = compare_with_control(make_signals((0, "a", noon)), make_history(runs, [(0, 0, 6 * DAY)]), WINDOW)
    assert hits["is_failed"].to_list() == [is_hit]


def test_chance_is_the_hazard_of_the_same_hour_of_all_days():
    """Ten control hours with three failures; one failure at the unit's own rate is added to them."""
    days, noon = 10, DAY // 2
    failed = {1, 2, 3}
    history = make_history(fill_days(days, failed=failed), [(0, 0, days * DAY)])
    hits, controls = compare_with_control(make_signals((0, "a", noon)), history, WINDOW)
    # Failed runs end at noon; the exposed window is no control time.
    control_s = 7 * 2 * CONTROL_S + 3 * CONTROL_S - WINDOW
    running_s = days * DAY - 3 * DAY // 2 - WINDOW
    unit_hazard = 4 / (running_s + running_s / 3)
    hazard = 4 / (control_s + 1 / unit_hazard)
    assert hits["control_s"].to_list() == [control_s]
    assert hits["chance"].item() == pytest.approx(1 - np.exp(-hazard * WINDOW))
    # Three failures of the control time and the borrowed one have equal weights.
    assert controls["a"] == pytest.approx(4)


def test_exposed_time_and_its_failures_are_no_control():
    """A second signal a minute before the failure of day 1 takes the failure and the minute out of control time."""
    noon, days = DAY // 2, 5
    history = make_history(fill_days(days, failed={1}), [(0, 0, days * DAY)])
    signals = make_signals((0, "a", noon), (0, "a", DAY + noon - 60), (0, "a", 2 * DAY + noon - 1000))
    hits, controls = compare_with_control(signals, history, WINDOW)
    control_s = 4 * 2 * CONTROL_S + CONTROL_S - 60 - 2 * WINDOW
    assert hits.filter(run=0)["control_s"].to_list() == [control_s]
    assert hits["is_failed"].to_list() == [False, True, False]
    assert hits["chance"].sum() == 0 and controls["a"] == 0, "no failure is left"


def test_a_run_hit_twice_is_exposed_for_the_union_of_the_windows():
    runs = [*fill_days(9, failed={2, 3}), (0, 9 * DAY, 10 * DAY, False)]
    history, start = make_history(runs, [(0, 0, 10 * DAY)]), 9 * DAY + 100
    chances = []
    for times in ((start,), (start, start + WINDOW), (start, start + WINDOW // 2)):
        hits, _ = compare_with_control(make_signals(*((0, "a", time) for time in times)), history, WINDOW)
        assert hits.height == 1
        chances.append(-np.log1p(-hits["chance"].item()))
    assert chances[1] / chances[0] == pytest.approx(2, rel=1e-3)
    assert chances[2] / chances[0] == pytest.approx(1.5, rel=1e-3)


def test_a_success_ends_the_exposure_and_a_failure_does_not():
    noon, days = DAY // 2, 8
    rows = fill_days(days, failed={2, 3})
    for failed, exposed in ((False, 60), (True, WINDOW)):
        runs = [*rows, (0, noon - HOUR, noon + 60, failed)]
        hits, _ = compare_with_control(make_signals((0, "a", noon)), make_history(runs, [(0, 0, days * DAY)]), WINDOW)
        chance = dict(hits.select("run", "chance").rows())
        assert np.log1p(-chance[days]) / np.log1p(-chance[0]) == pytest.approx(exposed / WINDOW)


def test_poisson_failures_give_the_closed_form():
    """With one hazard everywhere, chance is 1 - exp(-hazard x window), and ratios are about 1."""
    rng, hazard, units, days = np.random.default_rng(1), 2e-5, 50, 100
    lengths = rng.exponential(1 / hazard, (units, days))
    runs = [
        (unit, day * DAY, day * DAY + int(min(length, DAY - 1)), length < DAY - 1)
        for unit, row in enumerate(lengths)
        for day, length in enumerate(row)
    ]
    history = make_history(runs, [(unit, 0, days * DAY) for unit in range(units)])
    draws = rng.integers(0, [[units], [days * DAY]], (2, 1000)).T.tolist()
    signals = make_signals(*((unit, "a", time_s) for unit, time_s in draws))
    hits, controls = compare_with_control(signals, history, WINDOW)
    # A tenth of the runs are hit twice.
    assert hits["chance"].mean() == pytest.approx(1 - np.exp(-hazard * WINDOW), rel=0.15)
    test = compare_counts(hits, controls["a"], 7)
    assert test.low < 1 < test.high and test.ratio == pytest.approx(1, abs=0.5)


def make_hits(counts) -> pl.DataFrame:
    """Return hits, one row for each unit and day: (unit, failed, chance)."""
    rows = [("a", 0, unit, 0, failed, chance, 1) for unit, failed, chance in counts]
    return pl.DataFrame(rows, ["code", "run", "unit", "time_s", "is_failed", "chance", "control_s"], orient="row")


def test_independent_failures_give_the_exact_test_of_two_poisson_counts():
    """A failure on each of ten units, 0.5 expected from 20 control failures: P(Bin(30, 0.5 / 20.5) >= 10)."""
    hits = make_hits([(unit, True, 0.05) for unit in range(10)])
    test = compare_counts(hits, 20.0, 7)
    assert test.ratio == pytest.approx(20)
    assert test.p_value == pytest.approx(binom.sf(9, 30, 0.5 / 20.5))
    share = [1 / (1 + 20 / 0.5 / limit) for limit in (test.low, test.high)]
    assert [binom.sf(9, 30, share[0]), binom.cdf(10, 30, share[1])] == pytest.approx([0.025, 0.025])


def test_failures_on_few_of_the_units_are_worth_less():
    spread = make_hits([(unit, unit % 4 == 0, 0.05) for unit in range(20) for _ in range(5)])
    gathered = make_hits([(unit, unit < 5, 0.05) for unit in range(20) for _ in range(5)])
    together = make_hits([(unit, unit == 0, 0.05) for unit in range(20) for _ in range(25)])
    assert compare_counts(spread, 50.0, 7).p_value == pytest.approx(compare_counts(gathered, 50.0, 7).p_value)
    test = compare_counts(together, 500.0, 7)
    assert test.low < 1, "all failures on one unit"


def test_hits_on_few_units_give_no_test():
    test = compare_counts(make_hits([(unit, True, 0.05) for unit in (0, 0, 1, 2)]), 20.0, 7)
    assert test.p_value is None and test.low is None and test.ratio == pytest.approx(20)
    assert test.effective_units < 4


def test_without_any_failure_nothing_is_expected():
    history = make_history(fill_days(5), [(0, 0, 5 * DAY)])
    hits, controls = compare_with_control(make_signals((0, "a", DAY // 2)), history, WINDOW)
    assert hits["chance"].to_list() == [0] and controls == {"a": 0}
    assert compare_counts(hits, 0.0, 7).ratio is None


def test_no_signal_hits_a_run():
    hits, controls = compare_with_control(make_signals((3, "a", 5)), make_history(fill_days(2), [(0, 0, DAY)]), WINDOW)
    assert hits.height == 0 and controls == {}


@pytest.mark.parametrize(("expected", "most"), [(0, 0), (0.05, 0), (0.8, 2), (3, 6)])
def test_most_attributions_by_chance(expected, most):
    assert most_by_chance(expected) == most


def test_codes_at_random_do_not_precede_failures():
    """docs/coverage.md has more repetitions and worlds."""
    cells = {name: row for name, *row in COVERAGE["rows"](6, 3)}
    for name, (preceding, _, _, defined) in cells.items():
        share = float(preceding.strip("*"))
        assert share >= 0.9 if name.startswith("failure rate 10") else share <= 0.05 or name.startswith("failure rate")
        assert float(defined) > 0.9
