"""Kaplan-Meier curves against hand-worked ones, scipy and statsmodels."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifetime_checks import DURATIONS, kaplan_meier, make_durations
from scipy.stats import CensoredData, ecdf
from statsmodels.duration.survfunc import SurvfuncRight
from ttf.analyses.time_to_failure.fit_mttf import SURVIVAL, SURVIVAL_SUMMARY
from ttf.engine.columns import STRATUM
from ttf.stats.durations.survival import survival_tables, thin_curves

ROWS = st.lists(st.tuples(st.none() | st.integers(0, 40), st.sampled_from(["failure", "success", None])), max_size=40)


def simulate(n: int = 400, seed: int = 5) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "duration_s": rng.integers(1, 200, n),
            "event": pl.Series(rng.choice(["failure", "success", "none"], n)).replace("none", None),
            "gpu_count": rng.choice([1, 2, 10], n),
            "gpu_type": rng.choice(["T4", "V100"], n),
        }
    )


def check_curve(curve: pl.DataFrame) -> None:
    SURVIVAL.check(curve.select(*(pl.lit("all").alias(name) for name in STRATUM), pl.all()))


def test_by_hand():
    rows = [(6, "failure")] * 3 + [(6, None), (7, "failure"), (9, None), (10, "success"), (None, "failure")]
    curve = kaplan_meier(make_durations(rows), "failure")
    check_curve(curve)
    assert curve.select("time_s", "at_risk", "events", "censored").rows() == [
        (0, 7, 0, 0),
        (6, 7, 3, 1),
        (7, 3, 1, 0),
        (9, 2, 0, 1),
        (10, 1, 0, 1),
    ]
    s7 = 4 / 7 * 2 / 3
    assert curve["survival"].to_list() == pytest.approx([1, 4 / 7, s7, s7, s7])


def test_the_row_of_time_0_counts_durations_of_0_seconds():
    curve = kaplan_meier(make_durations([(0, "failure"), (0, None), (5, "failure"), (5, None)]), "failure")
    assert curve.select("time_s", "at_risk", "events", "censored", "survival").rows() == [
        (0, 4, 1, 1, 0.75),
        (5, 2, 1, 1, 0.375),
    ]


def test_all_fail_and_none_fails():
    curve = kaplan_meier(make_durations([(5, "failure")]), "failure")
    assert curve["survival"].to_list() == [1.0, 0.0]
    undefined = (None, None, "survival is 0: the log-log interval is not defined there")
    assert curve.select("ci_low", "ci_high", "reason").row(1) == undefined
    curve = kaplan_meier(make_durations([(5, "success"), (8, None)]), "failure")
    assert curve.select("survival", "ci_low", "ci_high").rows() == [(1.0, 1.0, 1.0)] * 3


def test_agrees_with_scipy_and_statsmodels():
    durations = simulate()
    curve = kaplan_meier(durations, "failure")
    time = durations["duration_s"].to_numpy()
    failed = (durations["event"] == "failure").fill_null(False).to_numpy()
    scipy_curve = ecdf(CensoredData(uncensored=time[failed], right=time[~failed])).sf
    assert curve["survival"].to_list() == pytest.approx(scipy_curve.evaluate(curve["time_s"]).tolist(), abs=1e-9)
    limits = scipy_curve.confidence_interval(method="log-log")
    inner_rows = curve.filter((pl.col("events").cum_sum() > 0) & (pl.col("survival") > 0))
    for name, limit in (("ci_low", limits.low), ("ci_high", limits.high)):
        assert inner_rows[name].to_list() == pytest.approx(limit.evaluate(inner_rows["time_s"]).tolist(), abs=1e-9)
    statsmodels_curve = SurvfuncRight(time, failed.astype(int))
    event_rows = curve.filter(pl.col("events") > 0)
    assert event_rows["time_s"].to_list() == statsmodels_curve.surv_times.tolist()
    assert event_rows["at_risk"].to_list() == statsmodels_curve.n_risk.tolist()
    assert event_rows["survival"].to_list() == pytest.approx(statsmodels_curve.surv_prob.tolist(), abs=1e-9)
    _, summary = survival_tables(durations, "failure", ["all"])
    SURVIVAL_SUMMARY.check(summary)
    row = summary.row(0, named=True)
    assert (row["n"], row["events"], row["horizon_s"]) == (durations.height, failed.sum(), time.max())
    assert row["median_s"] == statsmodels_curve.quantile(0.5)
    limits = row["median_ci_low_s"], row["median_ci_high_s"]
    assert limits == statsmodels_curve.quantile_ci(0.5, method="cloglog")


@pytest.mark.parametrize("n", [10, 70, 99_998])
def test_an_exact_half_is_the_median(n):
    durations = pl.DataFrame({"duration_s": range(1, n + 1), "event": ["failure"] * n})
    _, summary = survival_tables(durations, "failure", ["all"])
    assert summary["median_s"].item() == n // 2
    assert summary["restricted_mean_s"].item() == pytest.approx((n + 1) / 2, rel=1e-11)


def test_no_median_has_a_reason():
    _, summary = survival_tables(make_durations([(5, "failure"), (8, None), (9, None)]), "failure", ["all"])
    row = summary.row(0, named=True)
    assert row["median_s"] is None and "no median" in row["reason"]
    assert row["restricted_mean_s"] == pytest.approx(5 + 4 * 2 / 3)


def restricted_mean_and_error(durations: pl.DataFrame, horizon: float) -> tuple[float, float]:
    """Return the restricted mean and its standard error, term by term as R's survival (survmean)."""
    time = np.array(durations["duration_s"])
    failed = (durations["event"] == "failure").fill_null(False).to_numpy()
    curve = SurvfuncRight(time, failed.astype(int))

    def area(start: float) -> float:
        steps = [t for t in curve.surv_times if start < t < horizon]
        survival = [1.0, *curve.surv_prob][sum(t <= start for t in curve.surv_times) :]
        return sum(s * (b - a) for s, a, b in zip(survival, [start, *steps], [*steps, horizon], strict=False))

    variance = 0.0
    for t, n, d in zip(curve.surv_times, curve.n_risk, curve.n_events, strict=True):
        if t < horizon and n > d:
            variance += area(t) ** 2 * d / (n * (n - d))
    return area(0), variance**0.5


def test_restricted_means_of_strata_have_one_horizon():
    rng = np.random.default_rng(8)
    sizes, longest = {"a": 150, "b": 300, "few": 5, "dead": 120, "never": 0}, {"a": 90, "b": 400, "few": 30, "dead": 20}
    rows = []
    for stratum, n in sizes.items():
        for _ in range(n):
            seconds = int(rng.integers(1, longest[stratum] + 1))
            rows.append((seconds, "failure" if stratum == "dead" or rng.random() < 0.5 else None, stratum))
        if n:
            rows.append((longest[stratum], "failure" if stratum == "dead" else None, stratum))
    rows.append((None, None, "never"))
    durations = pl.DataFrame(rows, schema=DURATIONS | {"system": pl.String}, orient="row")
    _, summary = survival_tables(durations, "failure", ["all", "system"])
    overall, *strata = summary.iter_rows(named=True)
    assert overall["horizon_s"] == 400
    # Stratum a, which ends at 90 s, sets it; strata with few durations or with a curve at 0 do not.
    assert {row["stratum"]: row["horizon_s"] for row in strata} == dict(
        zip(("a", "b", "dead", "few", "never"), (90, 90, 90, 90, None), strict=True)
    )
    for row in (overall, *strata[:3]):
        part = durations.drop_nulls("duration_s").filter(
            (pl.col("system") == row["stratum"]) | (row["stratum"] == "all")
        )
        mean, error = restricted_mean_and_error(part, row["horizon_s"])
        assert (row["restricted_mean_s"], row["restricted_mean_se_s"]) == pytest.approx((mean, error), rel=1e-9)
    short_row = strata[3]
    assert short_row["restricted_mean_s"] is None and short_row["restricted_mean_se_s"] is None
    assert "observed for 30 s at the most, short of the horizon: no restricted mean" in short_row["reason"]


@pytest.mark.parametrize("rows", [[(5, None), (8, None)], [(8, "failure")], [(5, None), (8, "failure"), (8, None)]])
def test_without_an_event_before_the_last_duration_the_mean_has_no_error(rows):
    row = survival_tables(make_durations(rows), "failure", ["all"])[1].row(0, named=True)
    assert (row["restricted_mean_s"], row["restricted_mean_se_s"]) == (8, None)
    assert "no standard error of the restricted mean" in row["reason"]


def test_the_error_of_the_restricted_mean_covers():
    rng, truth, covered_count = np.random.default_rng(4), 1000 * (1 - math.exp(-1)), 0
    for _ in range(150):
        failure_s, limit_s = rng.exponential(1000, 120), rng.uniform(500, 3000, 120)
        end = np.minimum(limit_s, 1000)
        rows = [(math.ceil(min(x, c)), "failure" if x <= c else None) for x, c in zip(failure_s, end, strict=True)]
        row = survival_tables(make_durations(rows), "failure", ["all"])[1].row(0, named=True)
        covered_count += abs(row["restricted_mean_s"] - truth) <= 1.96 * row["restricted_mean_se_s"]
    assert covered_count >= 150 * 0.95 - 3 * (150 * 0.95 * 0.05) ** 0.5


def test_strata_are_in_order_and_labelled_by_the_raw_value():
    durations = simulate().with_columns(gpu_type=pl.when(pl.col("duration_s") > 20).then("gpu_type"))
    curves, summary = survival_tables(durations, "failure", ["all", "gpu_count", "gpu_type"])
    assert summary["stratum"].to_list() == ["all", "1", "2", "10", "T4", "V100"]
    assert summary["stratum_by"].to_list() == ["all"] + ["gpu_count"] * 3 + ["gpu_type"] * 2
    stratum_curve = curves.filter(stratum_by="gpu_count", stratum="10")
    expected = kaplan_meier(durations.filter(gpu_count=10), "failure")
    assert stratum_curve.drop("event", "stratum_by", "stratum").equals(expected)
    assert summary.filter(stratum_by="gpu_type")["n"].sum() == durations["gpu_type"].count()
    with pytest.raises(ValueError, match="rack"):
        survival_tables(durations, "failure", ["rack"])


@pytest.mark.parametrize("max_steps", [2, 10, 199])
def test_thin_keeps_exact_rows(max_steps):
    curves, _ = survival_tables(simulate(), "failure", ["all", "gpu_count"])
    thinned = thin_curves(curves, max_steps)
    assert thinned.join(curves, on=curves.columns, nulls_equal=True, how="semi").height == thinned.height
    for (_, stratum), part in thinned.group_by("stratum_by", "stratum"):
        curve = curves.filter(pl.col("stratum") == stratum)
        assert part.height <= max_steps
        assert part["time_s"][0] == 0 and part["time_s"][-1] == curve["time_s"][-1]
        assert part["time_s"].is_sorted() and part["time_s"].is_unique().all()
        if curve.height <= max_steps:
            assert part.equals(curve)
        else:
            assert (part["events"][1:-1] > 0).all()


def test_thin_spreads_the_events_evenly():
    durations = pl.DataFrame({"duration_s": range(1, 1001), "event": ["failure"] * 1000})
    thinned = thin_curves(kaplan_meier(durations, "failure"), 12)
    assert set(thinned["time_s"].diff()[2:-1].to_list()) <= {99, 100, 101}
    with pytest.raises(ValueError, match="max_steps"):
        thin_curves(thinned, 1)


@given(ROWS, st.randoms())
def test_properties(rows, random):
    curve = kaplan_meier(make_durations(rows), "failure")
    complete_rows = [row for row in rows if row[0] is not None]
    assert curve["events"].sum() + curve["censored"].sum() == len(complete_rows)
    if complete_rows:
        survival = curve["survival"].to_numpy()
        assert ((survival >= 0) & (survival <= 1)).all() and (np.diff(survival) <= 0).all()
        limits = curve.drop_nulls("ci_low")
        assert (limits["ci_low"] <= limits["survival"]).all()
        assert (limits["survival"] <= limits["ci_high"]).all()
        assert limits["ci_low"].is_finite().all()
    random.shuffle(rows)
    assert kaplan_meier(make_durations(rows), "failure").equals(curve)
