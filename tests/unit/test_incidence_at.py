"""Cumulative incidence at given ages, and its bounds if some end times are missing."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.analyses.factors.estimate_hazards import INCIDENCE_AT
from ttf.analyses.factors.estimate_hazards.incidence_tables import (
    AGES_S,
    NO_EVENT_YET,
    TOO_LATE,
    cumulative_incidence,
    incidence_at,
)
from ttf.stats.durations.strata import NO_DURATION, CountedDurations

ENDS = ["failure", "success"]
DURATIONS = {"duration_s": pl.Int64, "duration_max_s": pl.Int64, "event": pl.String}


def make_durations(rows):
    """rows: (duration_s, duration_max_s, event)."""
    return pl.DataFrame(rows, schema=DURATIONS, orient="row")


def incidence_table(durations, *ages, ends=ENDS):
    counted = CountedDurations(durations, ends)
    return incidence_at(counted, ends, cumulative_incidence(counted, ends, ["all"]), ages or AGES_S)


def estimate(durations, event, age):
    curve = cumulative_incidence(durations, ENDS, ["all"]).filter(event=event)
    return curve.filter(pl.col("time_s") <= age)["incidence"][-1]


def test_by_hand():
    # 6 durations are known. 2 failures have none and may be early or late. A job that never started does not count.
    rows = [(10, None, "failure"), (20, None, "success"), *[(50, None, None)] * 4]
    rows += [(None, 90, "failure"), (None, 60, "failure"), (None, None, "failure")]
    table = incidence_table(make_durations(rows), 15, 50, 51)
    INCIDENCE_AT.check(table)
    early = table.row(0, named=True)
    assert (early["event"], early["stratum_by"], early["stratum"], early["time_s"]) == ("failure", "all", "all", 15)
    assert (early["n"], early["without_end"]) == (6, 2)
    assert early["incidence"] == pytest.approx(1 / 6)
    assert (early["incidence_low"], early["incidence_high"]) == pytest.approx((1 / 8, 3 / 8))
    assert table.row(2, named=True)["reason"] == TOO_LATE
    success = table.filter(event="success", time_s=50).row(0, named=True)
    assert success["without_end"] == 0
    # The missing failure times do not matter here: success has 1 of 8 in either case.
    assert (success["incidence_low"], success["incidence_high"]) == pytest.approx((1 / 8, 1 / 8))


def test_reasons_without_durations_or_events():
    assert incidence_table(make_durations([]))["reason"].to_list() == [NO_DURATION] * 2 * len(AGES_S)
    assert list(incidence_table(make_durations([(None, 9, "failure")]))["reason"]) == [NO_DURATION] * 2 * len(AGES_S)
    early = incidence_table(make_durations([(9, None, "failure")]), 3).row(0, named=True)
    assert (early["incidence"], early["incidence_low"], early["reason"]) == (0, 0, NO_EVENT_YET)


RECORDED = st.tuples(st.integers(0, 8), st.none(), st.sampled_from([*ENDS, None]))
FEW_MISSING = st.tuples(st.none(), st.integers(0, 4), st.sampled_from(ENDS))


@given(st.lists(RECORDED, min_size=1, max_size=6), st.lists(FEW_MISSING, max_size=2), st.integers(0, 6))
def test_the_bounds_are_the_least_and_greatest_estimate(recorded, missing, age):
    """Compare with estimates for every whole second at which the missing ends can be."""
    row = incidence_table(make_durations([*recorded, *missing]), age).row(0, named=True)
    if row["incidence"] is None:
        return
    combinations = [[]]
    for _, longest, event in missing:
        combinations = [[*ends, (seconds, None, event)] for ends in combinations for seconds in range(longest + 1)]
    estimates = [estimate(make_durations([*recorded, *ends]), "failure", age) for ends in combinations]
    if not missing:
        assert row["incidence_low"] == row["incidence"] == row["incidence_high"]
    assert (min(estimates), max(estimates)) == pytest.approx((row["incidence_low"], row["incidence_high"]), abs=1e-9)
