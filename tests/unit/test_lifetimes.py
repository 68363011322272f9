"""The table of lifetime models: closed forms, SciPy, reasons for blank values, strata."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifetime_checks import DURATIONS, make_durations
from ttf.analyses.time_to_failure.fit_mttf import LIFETIME_MODELS
from ttf.analyses.time_to_failure.fit_mttf.compute import lifetime_models


def simulate(shape: float, scale: float, n: int, seed: int, censored_at: float | None = None) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    times = scale * rng.weibull(shape, n)
    ends = rng.uniform(0, 3 * scale, n) if censored_at is None else np.full(n, censored_at)
    return pl.DataFrame(
        {
            "duration_s": np.minimum(times, ends).astype(np.int64) + 1,
            "event": np.where(times <= ends, "failure", "success"),
        }
    )


def fit_models(durations: pl.DataFrame) -> dict[str, dict]:
    table = lifetime_models(durations, "failure", ["all"])
    LIFETIME_MODELS.check(table)
    return {row["model"]: row for row in table.iter_rows(named=True)}


def test_exponential_by_hand():
    fit = fit_models(make_durations([(10, "failure"), (30, "failure"), (60, None), (None, "failure")]))["exponential"]
    assert (fit["n"], fit["events"], fit["exposure_s"]) == (3, 2, 100)
    assert fit["scale_s"] == fit["mean_s"] == 50
    assert fit["scale_se_s"] == pytest.approx(50 / math.sqrt(2))
    assert fit["median_s"] == pytest.approx(50 * math.log(2))
    assert fit["loglik"] == pytest.approx(-2 * math.log(50) - 2)
    assert fit["aic"] == pytest.approx(2 - 2 * fit["loglik"])
    assert fit["bic"] == pytest.approx(math.log(3) - 2 * fit["loglik"])
    assert fit["shape"] is None and fit["converged"] and fit["reason"] is None


def test_a_duration_of_0_seconds_is_fitted_as_half_a_second():
    fits = fit_models(make_durations([(0, "failure"), (4, "failure"), (0, None)]))
    assert fits["exponential"]["scale_s"] == 2.5
    assert fits["exponential"]["exposure_s"] == 4


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(5, None)], "no events: every duration is censored"),
        ([(None, "failure")], "no known duration"),
        ([], "no known duration"),
    ],
)
def test_all_models_are_blank_without_events_or_durations(rows, reason):
    for fit in fit_models(make_durations(rows)).values():
        assert fit["reason"] == reason
        assert fit["scale_s"] is None and fit["loglik"] is None and fit["aic"] is None
        assert not fit["converged"] and not fit["best"]


@pytest.mark.parametrize(
    "rows", [[(5, "failure")], [(5, "failure"), (5, "failure"), (5, None)], [(2, None), (9, "failure"), (9, "failure")]]
)
def test_no_shape_if_no_duration_exceeds_the_only_event_time(rows):
    fits = fit_models(make_durations(rows))
    for name in ("weibull", "lognormal", "gamma"):
        assert fits[name]["loglik"] is None and "no finite estimate" in fits[name]["reason"]
    assert fits["exponential"]["best"]


def test_an_absurdly_large_mean_or_median_is_blank():
    """Two early failures and 2,000 censored durations extrapolate to ages beyond that of the universe."""
    durations = make_durations([(1, "failure"), (3, "failure"), *[(10**7, None)] * 2000])
    fits = fit_models(durations)
    for model in ("weibull", "lognormal", "gamma"):
        fit = fits[model]
        assert fit["converged"] and fit["mean_s"] is None and fit["median_s"] is None
        assert fit["reason"].endswith("the mean and median would be beyond 1,000 times the longest duration") or (
            fit["reason"].startswith("the mean of so wide a")
            and fit["reason"].endswith("the median would be beyond 1,000 times the longest duration")
        )
    # The exponential mean is exposure divided by failures and needs no extrapolation.
    assert fits["exponential"]["mean_s"] == pytest.approx(10**10 + 2) and fits["exponential"]["reason"] is None
    wide_fit = fit_models(simulate(0.2, 20_000, 500, seed=1))["lognormal"]
    assert wide_fit["mean_s"] is None and wide_fit["median_s"] is not None
    assert wide_fit["reason"] == "the mean would be beyond 1,000 times the longest duration"


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.sampled_from(["failure", "success", None])), max_size=30),
    st.randoms(),
)
def test_row_order_does_not_matter_and_the_fit_is_a_maximum(rows, random):
    table = lifetime_models(make_durations(rows), "failure", ["all"])
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert lifetime_models(make_durations(shuffled), "failure", ["all"]).equals(table)
    assert table.select(pl.selectors.float()).unpivot()["value"].drop_nulls().is_finite().all()
    logliks = dict(table.drop_nulls("loglik").select("model", "loglik").iter_rows())
    for model in {"weibull", "gamma"} & set(logliks):
        assert logliks[model] >= logliks["exponential"] - 1e-9 * abs(logliks["exponential"])
    assert table["best"].sum() == (1 if logliks else 0)
    assert table.filter(pl.col("loglik").is_null())["reason"].null_count() == 0


def test_a_stratum_without_a_fit_does_not_affect_other_strata():
    rows = [(5, "failure", 1), (5, "failure", 1), (0, None, 2), (10**9, "failure", 3), (10**9 + 1, "failure", 3)]
    good = simulate(0.8, 1000, 90, seed=3).with_columns(gpu_count=pl.lit(4, dtype=pl.Int64))
    bad = pl.DataFrame(rows, schema=DURATIONS | {"gpu_count": pl.Int64}, orient="row")
    table = lifetime_models(pl.concat([bad, good]), "failure", ["gpu_count"])
    assert (
        table.filter(stratum="4")
        .drop("stratum_by", "stratum")
        .equals(lifetime_models(good, "failure", ["all"]).drop("stratum_by", "stratum"))
    )
    converged = dict(table.group_by("stratum", maintain_order=True).agg(pl.col("converged").sum()).iter_rows())
    assert converged == {"1": 1, "2": 0, "3": 3, "4": 4}
    assert "too alike" in table.filter(stratum="3", model="gamma")["reason"].item()
