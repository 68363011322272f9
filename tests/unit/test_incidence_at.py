"""Cumulative incidence by some ages, and its bounds where the times of some ends are not written."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.duration.survfunc import CumIncidenceRight
from ttf.analyses.factors.estimate_hazards import INCIDENCE_AT
from ttf.analyses.factors.estimate_hazards.incidence import (
    AGES_S,
    NO_EVENT_YET,
    TOO_LATE,
    cumulative_incidence,
    incidence_at,
)
from ttf.stats.durations.strata import NO_LIFE, CountedLives

ENDS = ["failure", "success"]
LIVES = {"duration_s": pl.Int64, "duration_max_s": pl.Int64, "event": pl.String}


def lives_of(rows):
    """rows: (duration_s, duration_max_s, event)."""
    return pl.DataFrame(rows, schema=LIVES, orient="row")


def at(lives, *ages, ends=ENDS):
    counted = CountedLives(lives, ends)
    return incidence_at(counted, ends, cumulative_incidence(counted, ends, ["all"]), ages or AGES_S)


def estimate(lives, event, age):
    curve = cumulative_incidence(lives, ENDS, ["all"]).filter(event=event)
    return curve.filter(pl.col("time_s") <= age)["incidence"][-1]


def test_by_hand():
    # 6 of known duration, 2 failures of none: at once, or after the age. A job that never started is nobody's life.
    rows = [(10, None, "failure"), (20, None, "success"), *[(50, None, None)] * 4]
    rows += [(None, 90, "failure"), (None, 60, "failure"), (None, None, "failure")]
    table = at(lives_of(rows), 15, 50, 51)
    INCIDENCE_AT.check(table)
    early = table.row(0, named=True)
    assert (early["event"], early["stratum_by"], early["stratum"], early["time_s"]) == ("failure", "all", "all", 15)
    assert (early["n"], early["without_end"]) == (6, 2)
    assert early["incidence"] == pytest.approx(1 / 6)
    assert (early["incidence_low"], early["incidence_high"]) == pytest.approx((1 / 8, 3 / 8))
    assert table.row(2, named=True)["reason"] == TOO_LATE
    success = table.filter(event="success", time_s=50).row(0, named=True)
    assert success["without_end"] == 0
    # The failures leave it the least where they last, and it has all of its part, 1 of 8, in either case.
    assert (success["incidence_low"], success["incidence_high"]) == pytest.approx((1 / 8, 1 / 8))


def test_without_censoring_the_bounds_are_shares():
    rng = np.random.default_rng(2)
    rows = [
        (int(time), None, ENDS[place])
        for time, place in zip(rng.integers(1, 99, 80), rng.integers(0, 2, 80), strict=True)
    ]
    lives = lives_of([*rows, *[(None, 1000, "failure")] * 20])
    hits = sum(time <= 60 and event == "failure" for time, _, event in rows)
    row = at(lives, 60).row(0, named=True)
    found = [row[name] for name in ("incidence", "incidence_low", "incidence_high")]
    assert found == pytest.approx([hits / 80, hits / 100, (hits + 20) / 100], abs=1e-12)


def test_a_life_that_cannot_outlast_the_age_has_failed_by_then():
    row = at(lives_of([(50, None, "success"), (None, 5, "failure")]), 10).row(0, named=True)
    assert (row["incidence_low"], row["incidence_high"]) == pytest.approx((0.5, 0.5))


def test_where_every_end_is_written_the_bounds_are_the_estimate():
    rng = np.random.default_rng(5)
    time, code = rng.integers(1, 40, 300) * 3600, rng.integers(0, 3, 300)
    lives = lives_of([(int(seconds), None, [None, *ENDS][end]) for seconds, end in zip(time, code, strict=True)])
    reference = CumIncidenceRight(time, code)
    for row in at(lives, 3600, 86_400).iter_rows(named=True):
        place = np.searchsorted(reference.times, row["time_s"], side="right") - 1
        assert row["incidence"] == pytest.approx(reference.cinc[ENDS.index(row["event"])][place], abs=1e-12)
        assert row["incidence_low"] == row["incidence"] == row["incidence_high"]
        assert row["ci_low"] < row["incidence"] < row["ci_high"]


def test_nobody_and_nothing():
    assert at(lives_of([]))["reason"].to_list() == [NO_LIFE] * 2 * len(AGES_S)
    assert at(lives_of([(None, 9, "failure")]))["reason"].to_list() == [NO_LIFE] * 2 * len(AGES_S)
    early = at(lives_of([(9, None, "failure")]), 3).row(0, named=True)
    assert (early["incidence"], early["incidence_low"], early["reason"]) == (0, 0, NO_EVENT_YET)


KNOWN = st.tuples(st.integers(0, 8), st.none(), st.sampled_from([*ENDS, None]))
LOST = st.tuples(st.none(), st.integers(0, 10), st.sampled_from(ENDS))
FEW_LOST = st.tuples(st.none(), st.integers(0, 4), st.sampled_from(ENDS))


@given(st.lists(KNOWN, min_size=1, max_size=8), st.lists(LOST, max_size=5), st.integers(0, 8), st.data())
def test_wherever_the_lost_ends_were_the_estimate_lies_between(known, lost, age, data):
    bounds = at(lives_of([*known, *lost]), age)
    written = [(data.draw(st.integers(0, longest)), None, event) for _, longest, event in lost]
    whole = lives_of([*known, *written])
    for row in bounds.drop_nulls("incidence").iter_rows(named=True):
        truth = estimate(whole, row["event"], age)
        assert row["incidence_low"] - 1e-9 <= truth <= row["incidence_high"] + 1e-9


@settings(max_examples=16)
@given(st.lists(KNOWN, min_size=1, max_size=6), st.lists(FEW_LOST, min_size=1, max_size=2), st.integers(0, 6))
def test_the_bounds_are_the_least_and_the_most(known, lost, age):
    """Tried out: every whole second that the lost ends can have come at."""
    row = at(lives_of([*known, *lost]), age).row(0, named=True)
    if row["incidence"] is None:
        return
    tried = [[]]
    for _, longest, event in lost:
        tried = [[*before, (seconds, None, event)] for before in tried for seconds in range(longest + 1)]
    found = [estimate(lives_of([*known, *ends]), "failure", age) for ends in tried]
    assert (min(found), max(found)) == pytest.approx((row["incidence_low"], row["incidence_high"]), abs=1e-9)


@pytest.mark.parametrize("late", [False, True])
def test_the_truth_lies_between_the_bounds_of_samples(late):
    """Half of the failures lose their end, those that come late or any; half of the lives are censored."""
    rng = np.random.default_rng(11 + late)
    samples, n, age, inside, left_out = 20, 1500, 3600, 0, 0
    for _ in range(samples):
        fails, wins = rng.exponential(5000, n), rng.exponential(8000, n)
        watched = rng.uniform(0, 12_000, n)
        time = np.ceil(np.minimum(np.minimum(fails, wins), watched)).astype(int)
        end = np.where(watched <= np.minimum(fails, wins), 2, fails > wins)
        lost = (end == 0) & ((time > 1200) if late else (rng.random(n) < 0.5))
        rows = [
            (None, int(np.ceil(longest)), "failure") if gone else (int(seconds), None, [*ENDS, None][code])
            for seconds, longest, code, gone in zip(time, watched, end, lost, strict=True)
        ]
        row = at(lives_of(rows), age).row(0, named=True)
        rate = 1 / 5000 + 1 / 8000
        truth = (1 - np.exp(-rate * age)) / 5000 / rate
        inside += row["incidence_low"] <= truth <= row["incidence_high"]
        left_out += row["ci_low"] <= truth <= row["ci_high"]
    assert inside == samples
    # The estimate that leaves them out is wrong.
    assert left_out == 0
