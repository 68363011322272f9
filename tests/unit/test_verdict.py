"""Verdicts on the failure rate, by hand and on durations of known rates."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.analyses.time_to_failure.fit_mttf.compute import lifetime_models
from ttf.analyses.time_to_failure.judge_lifetimes import LIFETIME_VERDICT
from ttf.analyses.time_to_failure.judge_lifetimes.compute import _is_misleading, lifetime_verdict
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.durations.survival import survival_tables

DURATIONS = {"duration_s": pl.Int64, "event": pl.String}


def make_verdicts(durations: pl.DataFrame, strata: tuple[str, ...] = ("all",)) -> pl.DataFrame:
    curves, _ = survival_tables(durations, "failure", strata)
    table = lifetime_verdict(lifetime_models(durations, "failure", strata), curves)
    LIFETIME_VERDICT.check(table)
    return table


def make_verdict(rows: list[tuple]) -> dict:
    return make_verdicts(pl.DataFrame(rows, schema=DURATIONS, orient="row")).row(0, named=True)


def draw(shape: float, n: int, seed: int = 1, end: float = math.inf) -> pl.DataFrame:
    times = 10**6 * np.random.default_rng(seed).weibull(shape, n)
    return pl.DataFrame(
        {
            "duration_s": np.minimum(times, end).astype(np.int64) + 1,
            "event": np.where(times <= end, "failure", "success"),
        }
    )


def test_by_hand():
    # Of 40 durations 10 fail at 100 s, 10 at 300 s, and 20 are censored at 500 s. The exposure is 14,000 s, half of
    # it by about 175 s: 40 x 100 s up to 100 s, then 30 s in each second.
    row = make_verdict([(100, "failure")] * 10 + [(300, "failure")] * 10 + [(500, None)] * 20)
    assert (row["n"], row["events"], row["split_age_s"]) == (40, 20, 200)
    assert (row["young_events"], row["old_events"]) == (10, 10)
    assert row["young_mttf_s"] == row["old_mttf_s"] == 700
    assert row["mttf_ratio"] == 1
    # Mean 700 s: survival e^(-1/7) = 0.867 at 100 s against 0.75, e^(-3/7) = 0.651 at 300 s against 0.5.
    assert row["at_s"] == 300
    assert row["km_survival"] == pytest.approx(0.5)
    assert row["exponential_survival"] == pytest.approx(math.exp(-3 / 7))
    assert row["largest_gap"] == pytest.approx(math.exp(-3 / 7) - 0.5)
    assert "fewer than 100 failures" in row["reason"]


@pytest.mark.parametrize(("shape", "expected"), [(0.6, "falls"), (1.0, "stays"), (1.8, "rises")])
def test_known_rates(shape, expected):
    row = make_verdicts(draw(shape, 2000, end=1.5e6)).row(0, named=True)
    assert row["verdict"] == expected
    assert row["shape_ci_low"] < shape < row["shape_ci_high"]
    assert row["misleads"] == (expected != "stays")
    assert row["reason"] == UNCLUSTERED
    # The Kaplan-Meier estimate agrees with the true survival.
    assert row["km_survival"] == pytest.approx(math.exp(-((row["at_s"] / 10**6) ** shape)), abs=0.04)
    if expected == "falls":
        assert row["mttf_ratio"] > 1.5
    if expected == "rises":
        assert row["mttf_ratio"] < 1 / 1.5


def test_few_failures_give_an_unclear_verdict():
    row = make_verdicts(draw(1.0, 12)).row(0, named=True)
    assert row["verdict"] == "unclear" and row["misleads"] is False
    assert row["largest_gap"] is None and "30 at risk" in row["reason"]


def test_a_significant_but_small_difference_does_not_mislead():
    row = make_verdicts(draw(0.9, 30_000)).row(0, named=True)
    assert row["p_value"] < 1e-9 and row["verdict"] == "falls"
    assert abs(row["largest_gap"]) < 0.05 and row["misleads"] is False


@pytest.mark.parametrize(
    ("missing", "misleads"),
    [((), False), (("largest_gap",), None), (("split_age_s",), None), (("largest_gap", "split_age_s"), None)],
)
def test_a_missing_gap_is_not_a_gap_of_zero(missing, misleads):
    row = {"largest_gap": 0.01, "split_age_s": 5, "young_mttf_s": 9.0, "old_mttf_s": 10.0}
    present = {name: value for name, value in row.items() if name not in missing}
    assert _is_misleading(present, 1e-9) is misleads
    # Without a rejection nothing misleads; with one, either difference is enough to mislead.
    assert _is_misleading(present, 0.2) is False
    assert _is_misleading(present | {"largest_gap": 0.2}, 1e-9) is True


def test_all_failures_in_one_half_mislead():
    row = make_verdict([(2 + n, "failure") for n in range(20)] + [(10**6, None)] * 1000)
    assert (row["young_events"], row["old_events"], row["mttf_ratio"]) == (20, 0, None)
    assert row["misleads"] is True and "no failure in one half" in row["reason"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "no known duration"),
        ([(5, None)], "no events: every duration is censored"),
        ([(5, "failure"), (5, "failure")], "no finite estimate"),
    ],
)
def test_blank_with_a_reason(rows, reason):
    row = make_verdict(rows)
    assert row["verdict"] is None and row["p_value"] is None and row["misleads"] is None
    assert reason in row["reason"]


def test_each_stratum_has_its_own_verdict():
    parts = [draw(shape, 400, seed=2).with_columns(batch=pl.lit(name)) for name, shape in (("a", 0.5), ("b", 2.0))]
    table = make_verdicts(pl.concat(parts), ("all", "batch"))
    assert table["stratum"].to_list() == ["all", "a", "b"]
    assert table["verdict"].to_list()[1:] == ["falls", "rises"]
    expected = make_verdicts(parts[1]).drop("stratum_by", "stratum")
    assert table.filter(stratum="b").drop("stratum_by", "stratum").equals(expected)


@given(
    st.lists(st.tuples(st.integers(0, 10**7) | st.integers(0, 9), st.sampled_from(["failure", None])), max_size=60),
    st.randoms(),
)
def test_row_order_does_not_matter_and_nothing_is_nan(rows, random):
    durations = pl.DataFrame(rows, schema=DURATIONS, orient="row")
    table = make_verdicts(durations)
    random.shuffle(rows)
    assert make_verdicts(pl.DataFrame(rows, schema=DURATIONS, orient="row")).equals(table)
    assert table.select(pl.selectors.float()).unpivot()["value"].drop_nulls().is_finite().all()
    row = table.row(0, named=True)
    if row["split_age_s"] is not None:
        assert row["young_events"] + row["old_events"] == row["events"]
    if row["verdict"] is None or row["largest_gap"] is None:
        assert row["reason"]
