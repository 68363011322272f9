"""Cumulative incidence and log-rank tests against statsmodels, SciPy and closed forms."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifetime_checks import DURATIONS, kaplan_meier, make_durations
from scipy import stats
from statsmodels.duration.survfunc import CumIncidenceRight, survdiff
from statsmodels.stats.multitest import multipletests
from ttf.analyses.factors.estimate_hazards import CUMULATIVE_INCIDENCE, LOGRANK
from ttf.analyses.factors.estimate_hazards.compute import MOST_STRATA, logrank
from ttf.analyses.factors.estimate_hazards.incidence_tables import (
    EVERYBODY,
    NO_EVENT_YET,
    cumulative_incidence,
    exclusive_causes,
)
from ttf.stats.basics.p_value import SMALLEST_P
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.durations.logrank import NO_CONTRAST, ROUGH, TOO_FEW_STRATA
from ttf.stats.durations.strata import NO_DURATION

ENDS = ["failure", "success", "cancelled"]
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 30), st.sampled_from([*ENDS, None])), max_size=40)


def simulated(n=600, seed=3, strata=4, censored=True):
    """Simulate (table with a stratum `group`, durations, end codes 1 to 3 with 0 for censored, groups)."""
    rng = np.random.default_rng(seed)
    time, group = rng.integers(1, 90, n), rng.integers(0, strata, n)
    end = rng.choice([0, 1, 2, 3] if censored else [1, 2, 3], n)
    events = [[None, *ENDS][code] for code in end]
    return pl.DataFrame({"duration_s": time, "event": events, "group": group}), time, end, group


@pytest.mark.parametrize("seed", range(2))
def test_cumulative_incidence_against_statsmodels(seed):
    durations, time, end, group = simulated(seed=seed)
    curves = cumulative_incidence(durations, ENDS, ["all", "group"])
    CUMULATIVE_INCIDENCE.check(curves)
    for stratum, mask in [("all", np.full(time.size, True)), *((str(number), group == number) for number in range(4))]:
        # Its variance is 0 / 0 when nobody is at risk.
        with np.errstate(divide="ignore", invalid="ignore"):
            reference = CumIncidenceRight(time[mask], end[mask])
        for code, name in enumerate(ENDS):
            curve = curves.filter(pl.col("stratum") == stratum, pl.col("event") == name, pl.col("time_s") > 0)
            assert curve["time_s"].to_list() == reference.times.tolist()
            assert curve["incidence"].to_list() == pytest.approx(reference.cinc[code].tolist(), abs=1e-9)
            se, incidence = reference.cinc_se[code], reference.cinc[code]
            valid = np.isfinite(se) & (incidence > 0)
            assert curve["se"].to_numpy()[valid] == pytest.approx(se[valid], abs=1e-9)
            bounded = valid & curve["ci_low"].is_not_null().to_numpy()
            power = np.exp(1.959963984540054 * se[bounded] / (incidence[bounded] * np.log(incidence[bounded])))
            assert curve["ci_high"].to_numpy()[bounded] == pytest.approx(incidence[bounded] ** power, abs=1e-9)
            assert curve["ci_low"].to_numpy()[bounded] == pytest.approx(incidence[bounded] ** (1 / power), abs=1e-9)


def test_without_censoring_incidence_is_a_binomial_share():
    durations, time, end, _ = simulated(censored=False)
    curve = cumulative_incidence(durations, ENDS, ["all"]).filter(event="success")
    share = np.array([((end == 2) & (time <= t)).mean() for t in curve["time_s"]])
    assert curve["incidence"].to_numpy() == pytest.approx(share, abs=1e-12)
    assert curve["se"].to_numpy() ** 2 == pytest.approx(share * (1 - share) / time.size, abs=1e-12)


def test_an_incidence_of_1_has_no_interval():
    curve = cumulative_incidence(make_durations([(1, "failure"), (2, "failure"), (3, "failure")]), ["failure"], ["all"])
    assert curve["incidence"].to_list() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert curve["reason"].to_list() == [NO_EVENT_YET, UNCLUSTERED, UNCLUSTERED, EVERYBODY]
    assert curve["ci_low"].is_null().to_list() == [True, False, False, True] and curve["se"][-1] == 0


@settings(deadline=None)
@given(ROWS)
def test_incidences_of_all_ends_and_survival_add_up_to_1(rows):
    durations = make_durations(rows)
    curves = cumulative_incidence(durations, ENDS, ["all"])
    if not durations["duration_s"].count():
        assert curves["reason"].to_list() == [NO_DURATION] * 3 and curves["incidence"].null_count() == 3
        return
    total = sum(curves.filter(event=end)["incidence"] for end in ENDS).to_numpy()
    ended = durations.with_columns(event=pl.when(pl.col("event").is_not_null()).then(pl.lit("any")))
    assert total == pytest.approx(1 - kaplan_meier(ended, "any")["survival"].to_numpy(), abs=1e-12)
    limits = curves.drop_nulls("ci_low")
    assert (limits["ci_low"] <= limits["incidence"] + 1e-12).all()
    assert (limits["incidence"] <= limits["ci_high"] + 1e-12).all()
    assert limits["ci_high"].is_finite().all() and curves["se"].is_finite().all()
    n_censored = curves.filter(event="failure")["censored"].sum()
    assert curves["events"].sum() + n_censored == durations["duration_s"].count()


def test_simultaneous_causes_are_a_separate_end():
    durations = pl.DataFrame(
        {
            "event": ["failure", "failure", "failure", None, "failure", "failure"],
            "dbe": [True, False, True, False, False, False],
            "otb": [False, True, True, False, None, False],
            "human_error": [False, False, False, False, False, True],
        }
    )
    causes, events = exclusive_causes(durations, ["dbe", "otb", "human_error"])
    assert causes["event"].to_list() == ["dbe only", "otb only", "dbe and otb", None, "unknown cause", "human error"]
    assert events == ["dbe only", "otb only", "human error", "dbe and otb", "unknown cause"]


@pytest.mark.parametrize("seed", range(2))
def test_logrank_against_statsmodels_and_scipy(seed):
    durations, time, end, group = simulated(seed=seed)
    failed = end == 1
    tests = logrank(durations, "failure", ["all", "group"])
    LOGRANK.check(tests)
    overall = tests.row(0, named=True)
    statistic, p = survdiff(time, failed.astype(int), group)
    assert (overall["kind"], overall["strata"], overall["df"], overall["n"]) == ("overall", 4, 3, 600)
    assert overall["events"] == failed.sum()
    assert (overall["statistic"], overall["p_value"]) == pytest.approx((statistic, p), abs=1e-9)
    pairs = tests.filter(kind="pairwise")
    assert pairs.height == 6
    for row in pairs.iter_rows(named=True):
        a, b = (
            stats.CensoredData.right_censored(time[group == int(name)], ~failed[group == int(name)])
            for name in (row["stratum_a"], row["stratum_b"])
        )
        reference = stats.logrank(a, b)
        assert row["statistic"] == pytest.approx(reference.statistic**2, abs=1e-9)
        assert row["p_value"] == pytest.approx(reference.pvalue, abs=1e-9)
    adjusted = multipletests(pairs["p_value"].to_numpy(), method="holm")[1]
    assert pairs["p_adjusted"].to_numpy() == pytest.approx(adjusted)


def test_the_largest_of_many_strata_are_compared():
    durations, *_ = simulated(n=3000, strata=20)
    durations = pl.concat([durations, durations.filter(pl.col("group") > 9)])
    tests = logrank(durations, "failure", ["group"])
    assert tests.height == 1 + MOST_STRATA * (MOST_STRATA - 1) // 2
    overall = tests.row(0, named=True)
    assert overall["strata"] == MOST_STRATA and "of 20 strata the 12 with most units at risk" in overall["reason"]
    assert {str(name) for name in range(10, 20)} <= set(tests["stratum_a"]) | set(tests["stratum_b"])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(5, "failure", "a"), (None, "failure", "b")], TOO_FEW_STRATA),
        ([(5, None, "a"), (9, None, "b")], NO_CONTRAST),
        # All end together, or one stratum ends before the other's first event.
        ([(5, "failure", "a"), (5, "failure", "b")], NO_CONTRAST),
        ([(5, None, "a"), (9, "failure", "b")], NO_CONTRAST),
    ],
)
def test_strata_that_cannot_be_compared_give_a_reason(rows, reason):
    durations = pl.DataFrame(rows, schema=DURATIONS | {"group": pl.String}, orient="row")
    row = logrank(durations, "failure", ["group"]).row(0, named=True)
    assert (row["statistic"], row["p_value"], row["p_adjusted"], row["reason"]) == (None, None, None, reason)


def test_few_expected_events_and_a_vanishing_p_value_give_a_reason():
    few = pl.DataFrame(
        [(5, "failure", "a"), (9, "failure", "b")], schema=DURATIONS | {"group": pl.String}, orient="row"
    )
    assert logrank(few, "failure", ["group"])["reason"][0] == f"{ROUGH}; {UNCLUSTERED}"
    seconds = [*range(1, 4001), *range(10_001, 14_001)]
    separated = pl.DataFrame({"duration_s": seconds, "event": "failure", "group": ["a"] * 4000 + ["b"] * 4000})
    row = logrank(separated, "failure", ["group"]).row(0, named=True)
    assert row["p_value"] == SMALLEST_P and "written as that" in row["reason"]
