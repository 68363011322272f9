"""Failures after signals against those of like runs: closed forms, edges of the windows, and simulated traces."""

import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from ttf.stats.matched_risk import (
    RUNS,
    SIGNALS,
    WATCH,
    History,
    compare_counts,
    compare_with_control,
    most_by_chance,
    move_signals,
    pair_running,
)

COVERAGE = runpy.run_path(str(Path(__file__).parents[2] / "tools/docs" / "coverage_node_errors.py"))
DAY, HOUR, WINDOW = 86_400, 3_600, 300


def make_history(runs, spans) -> History:
    """Return the history of runs (unit, start, end, failed, user 0 if not given) and spans (unit, start, end)."""
    rows = [
        (number, unit, *(user or [0]), start, end, failed)
        for number, (unit, start, end, failed, *user) in enumerate(runs)
    ]
    return History(pl.DataFrame(rows, RUNS, orient="row"), pl.DataFrame(spans, WATCH, orient="row"))


def make_signals(*rows) -> pl.DataFrame:
    return pl.DataFrame(rows, SIGNALS, orient="row")


def fill_days(days, unit=0, failed=(), length=DAY):
    """Return runs that fill each day; those of `failed` fail at noon."""
    return [
        (unit, day * DAY, day * DAY + (DAY // 2 if day in failed else length), day in failed) for day in range(days)
    ]


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


SHAPE, SCALE = 0.5, 4_000_000


@pytest.fixture(scope="module")
def weibull():
    """Return 60,000 runs that fail early, with factors of 9 by user and of 3 by unit, and the factors."""
    rng, n = np.random.default_rng(1), 60_000
    unit, user = rng.integers(0, 20, n), rng.integers(0, 30, n)
    factor = np.where(user < 10, 9, 1) * np.where(unit < 5, 3, 1)
    to_failure_s = SCALE * (rng.exponential(size=n) / factor) ** (1 / SHAPE)
    length_s = rng.integers(1, 6 * HOUR, n)
    start_s = rng.integers(0, 90 * DAY, n)
    end_s = start_s + np.minimum(np.ceil(to_failure_s), length_s).astype(int)
    runs = zip(unit, start_s, end_s, to_failure_s < length_s, user, strict=True)
    history = make_history([tuple(row) for row in runs], [(unit, 0, 91 * DAY) for unit in range(20)])
    return history, factor


@pytest.mark.parametrize("age", [5, 2 * HOUR])
def test_expected_failures_are_those_of_age_user_and_unit(weibull, age):
    """Weibull: factor x ((age + window)^shape - age^shape) / scale^shape, of each of four kinds of runs."""
    history, factor = weibull
    is_longer = (history.column("length_s") > age + WINDOW) & ~history.column("is_failed")
    drawn = np.concatenate([np.flatnonzero(is_longer & (factor == kind))[:200] for kind in (1, 3, 9, 27)])
    signals = history.runs[drawn].select("unit", code=pl.lit("a"), time_s=pl.col("start_s") + age)
    hits, _ = compare_with_control(signals, history, WINDOW)
    hits = hits.filter(pl.col("run").is_in(drawn.tolist()))
    hits = hits.with_columns(factor=pl.Series(factor).gather(hits["run"]))
    assert hits["chance"].to_numpy() == pytest.approx(-np.expm1(-hits["expected"].to_numpy()))
    means = hits.group_by("factor").agg(pl.col("expected").mean())
    baseline = ((age + WINDOW) ** SHAPE - age**SHAPE) / SCALE**SHAPE
    assert means.height == 4
    for kind, expected in means.iter_rows():
        assert expected == pytest.approx(kind * baseline, rel=0.3), kind


def test_a_signal_at_the_start_of_each_run_has_no_control():
    """Chance then takes the failures after the signals themselves, so that the ratio is about 1."""
    ends = [(60, True), *[(DAY // 2, False)] * 3, (DAY // 4, True)]
    runs = [
        (unit, day * DAY, day * DAY + ends[day % 5][0], ends[day % 5][1]) for unit in range(10) for day in range(50)
    ]
    history = make_history(runs, [(unit, 0, 50 * DAY) for unit in range(10)])
    hits, controls = compare_with_control(make_signals(*((row[0], "a", row[1] + 9) for row in runs)), history, WINDOW)
    assert not hits["has_control"].any() and hits["is_failed"].sum() == 100
    assert compare_counts(hits, controls["a"].failures, 7).low < 1.2
    half = make_signals(*((row[0], "a", row[1] + 9) for row in runs if row[0] % 2))
    assert compare_with_control(half, history, WINDOW)[0]["has_control"].all()


def test_signals_are_moved_to_runs_of_the_user_at_that_age(weibull):
    history, _ = weibull
    signals = history.runs.gather_every(50).select("unit", code=pl.lit("a"), time_s=pl.col("start_s") + 9)
    hits, _ = compare_with_control(signals, history, WINDOW)
    moved = move_signals(hits, history, WINDOW)
    assert moved.height == pytest.approx(signals.height, rel=0.05)
    pairs = [
        pair_running(rows, history.runs).filter(pl.col("time_s") - pl.col("start_s") == 9) for rows in (signals, moved)
    ]
    users = [rows["user"].value_counts().sort("user")["count"].to_numpy() for rows in pairs]
    assert np.corrcoef(*users)[0, 1] > 0.9 and not set(pairs[0]["run"]) & set(pairs[1]["run"])
    hits, controls = compare_with_control(moved, history, WINDOW)
    test = compare_counts(hits, controls["a"].failures, 7)
    assert test.low < 1 < test.high


def test_a_run_hit_twice_is_exposed_for_the_union_of_the_windows():
    runs = [*fill_days(9, failed={2, 3}), (0, 9 * DAY, 10 * DAY, False)]
    history, start = make_history(runs, [(0, 0, 10 * DAY)]), 9 * DAY + 40_000
    chances = []
    for times in ((start,), (start, start + WINDOW), (start, start + WINDOW // 2)):
        hits, _ = compare_with_control(make_signals(*((0, "a", time) for time in times)), history, WINDOW)
        assert hits.height == 1
        chances.append(-np.log1p(-hits["chance"].item()))
    assert chances[1] / chances[0] == pytest.approx(2, rel=0.02)
    assert chances[2] / chances[0] == pytest.approx(1.5, rel=0.02)


def test_a_success_ends_the_exposure_and_a_failure_does_not():
    noon, days = DAY // 2, 8
    rows = fill_days(days, failed={2, 3})
    for failed, exposed in ((False, 60), (True, WINDOW)):
        runs = [*rows, (0, 0, noon + 60, failed)]
        hits, _ = compare_with_control(make_signals((0, "a", noon)), make_history(runs, [(0, 0, days * DAY)]), WINDOW)
        chance = dict(hits.select("run", "chance").rows())
        assert np.log1p(-chance[days]) / np.log1p(-chance[0]) == pytest.approx(exposed / WINDOW)


def make_hits(counts) -> pl.DataFrame:
    """Return hits, one row for each unit and day: (unit, failed, chance)."""
    rows = [("a", user, unit, 0, failed, chance) for user, (unit, failed, chance) in enumerate(counts)]
    return pl.DataFrame(rows, ["code", "user", "unit", "time_s", "is_failed", "chance"], orient="row")


def test_independent_failures_give_the_exact_test_of_two_poisson_counts():
    """A failure on each of ten units, 0.5 expected from 20 control failures: P(Bin(30, 0.5 / 20.5) >= 10)."""
    hits = make_hits([(unit, True, 0.05) for unit in range(10)])
    test = compare_counts(hits, 20.0, 7)
    assert test.ratio == pytest.approx(20)
    assert test.p_value == pytest.approx(binom.sf(9, 30, 0.5 / 20.5))
    share = [1 / (1 + 20 / 0.5 / limit) for limit in (test.low, test.high)]
    assert [binom.sf(9, 30, share[0]), binom.cdf(10, 30, share[1])] == pytest.approx([0.025, 0.025])


def test_failures_on_few_of_the_units_are_worth_less():
    spread, together = (
        make_hits([(unit, unit % step == 0, 0.05) for unit in range(20) for _ in range(25)]) for step in (4, 20)
    )
    assert compare_counts(spread, 500.0, 7).low > 1
    assert compare_counts(together, 500.0, 7).low < 1, "all failures on one unit"


def test_hits_on_few_units_give_no_test():
    test = compare_counts(make_hits([(unit, True, 0.05) for unit in (0, 0, 1, 2)]), 20.0, 7)
    assert test.p_value is None and test.low is None and test.ratio == pytest.approx(20)
    assert test.effective_units < 4


def test_without_any_failure_nothing_is_expected():
    history = make_history(fill_days(5), [(0, 0, 5 * DAY)])
    hits, controls = compare_with_control(make_signals((0, "a", DAY // 2)), history, WINDOW)
    assert hits["chance"].to_list() == [0] and controls["a"].failures == 0
    assert compare_counts(hits, 0.0, 7).ratio is None


def test_no_signal_hits_a_run():
    hits, controls = compare_with_control(make_signals((3, "a", 5)), make_history(fill_days(2), [(0, 0, DAY)]), WINDOW)
    assert hits.height == 0 and controls == {}


@pytest.mark.parametrize(("expected", "most"), [(0, 0), (0.05, 0), (0.8, 2), (3, 6)])
def test_most_attributions_by_chance(expected, most):
    assert most_by_chance(expected) == most


@pytest.mark.parametrize(
    ("name", "preceding"),
    [("users and nodes differ", 0), ("8 users, bursts of 5", 0), ("failure rate 10 times as high", 1)],
)
def test_codes_at_random_do_not_precede_failures(name, preceding):
    """docs/coverage.md has more repetitions and worlds."""
    rng = np.random.default_rng(3)
    adjusted = [p for _ in range(2) for _, p in COVERAGE["judge"](COVERAGE["WORLDS"][name], rng) if p is not None]
    assert len(adjusted) == 8
    assert np.mean([p <= 0.05 for p in adjusted]) == pytest.approx(preceding, abs=0.1)
