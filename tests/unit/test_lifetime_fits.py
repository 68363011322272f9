"""Lognormal and gamma by censored maximum likelihood, against scipy, closed forms and the sums they shorten."""

import math
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import gammainc, logsumexp
from scipy.stats import CensoredData, gamma, lognorm, weibull_min
from ttf.analyses.time_to_failure.fit_mttf import lifetime_sample
from ttf.analyses.time_to_failure.fit_mttf.lifetime_sample import condense
from ttf.analyses.time_to_failure.fit_mttf.lifetimes import (
    FARTHEST,
    LARGEST_GAMMA_SHAPE,
    gamma_log_survival,
    lifetime_models,
)

DISTRIBUTIONS = {"weibull": weibull_min, "lognormal": lognorm, "gamma": gamma}


def lives_of(seconds: np.ndarray, failed: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"duration_s": seconds.astype(np.int64), "event": np.where(failed, "failure", "success")})


def fitted(seconds: np.ndarray, failed: np.ndarray) -> dict[str, dict]:
    table = lifetime_models(lives_of(seconds, failed), "failure", ["all"])
    return {row["model"]: row for row in table.iter_rows(named=True)}


def parameters(fit: dict) -> tuple[float, float]:
    """As scipy names them: shape and scale."""
    if fit["model"] == "lognormal":
        return fit["sigma"], math.exp(fit["mu_log_s"])
    return fit["shape"], fit["scale_s"]


def loglik(model: str, shape: float, scale: float, seconds: np.ndarray, failed: np.ndarray) -> float:
    time = np.where(seconds == 0, 0.5, seconds)
    distribution = DISTRIBUTIONS[model](shape, scale=scale)
    return distribution.logpdf(time[failed]).sum() + distribution.logsf(time[~failed]).sum()


def by_scipy(model: str, seconds: np.ndarray, failed: np.ndarray) -> tuple[float, float]:
    time = np.where(seconds == 0, 0.5, seconds.astype(float))
    data = CensoredData(uncensored=time[failed], right=time[~failed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape, _, scale = DISTRIBUTIONS[model].fit(data, floc=0)
    return shape, scale


def simulated(seed: int, n: int, shape: float, kept: float) -> tuple[np.ndarray, np.ndarray]:
    """Gamma lives of a mean of three years, watched at most until a share `kept` of them is left."""
    rng = np.random.default_rng(seed)
    times = 10**8 * rng.gamma(shape, 1 / shape, n)
    ends = np.quantile(times, 1 - kept) * rng.uniform(0.2, 1, n)
    return np.minimum(times, ends).astype(np.int64), times <= ends


@pytest.mark.parametrize("model", DISTRIBUTIONS)
@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**9) | st.integers(0, 50), st.booleans()), min_size=2, max_size=40))
def test_never_less_likely_than_scipy(model: str, rows: list) -> None:
    seconds, failed = (np.array(column) for column in zip(*rows, strict=True))
    fit = fitted(seconds, failed)[model]
    assume(fit["loglik"] is not None)
    shape, scale = parameters(fit)
    assert fit["converged"]
    assert fit["loglik"] == pytest.approx(loglik(model, shape, scale, seconds, failed), rel=1e-9)
    theirs = by_scipy(model, seconds, failed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        their_loglik = loglik(model, *theirs, seconds, failed)
    assert not their_loglik > fit["loglik"] + 1e-9 * abs(fit["loglik"])
    # Where the log-likelihoods are that near, scipy's search came to its end.
    if fit["loglik"] - their_loglik < 1e-10 * abs(fit["loglik"]):
        assert (shape, scale) == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("shape", [0.3, 1.0, 8.0])
@pytest.mark.parametrize("kept", [0.05, 0.6, 0.98])
def test_agrees_with_scipy_on_simulated_lives(shape: float, kept: float) -> None:
    seconds, failed = simulated(int(10 * shape), 2_000, shape, kept)
    for model, fit in fitted(seconds, failed).items():
        if model == "exponential":
            continue
        assert fit["converged"]
        ours, theirs = parameters(fit), by_scipy(model, seconds, failed)
        their_loglik = loglik(model, *theirs, seconds, failed)
        assert fit["loglik"] == pytest.approx(loglik(model, *ours, seconds, failed), rel=1e-10)
        assert fit["loglik"] >= their_loglik - 1e-9 * abs(their_loglik)
        if fit["loglik"] - their_loglik < 1e-6:
            assert ours == pytest.approx(theirs, rel=1e-3)
        distribution = DISTRIBUTIONS[model](ours[0], scale=ours[1])
        for name, theirs in (("mean_s", distribution.mean()), ("median_s", distribution.median())):
            assert fit[name] == (pytest.approx(theirs) if theirs <= FARTHEST * seconds.max() else None)
        assert fit["aic"] == pytest.approx(4 - 2 * fit["loglik"])
        assert fit["bic"] == pytest.approx(2 * math.log(2_000) - 2 * fit["loglik"])


def test_one_failure_in_ten_thousand() -> None:
    rng = np.random.default_rng(4)
    seconds, failed = rng.integers(1, 10**6, 20_000), np.arange(20_000) % 10_000 == 0
    for model, fit in fitted(seconds, failed).items():
        assert fit["converged"] and fit["events"] == 2
        if model != "exponential":
            at = loglik(model, *parameters(fit), seconds, failed)
            assert fit["loglik"] == pytest.approx(at, rel=1e-10)
            assert fit["loglik"] >= loglik(model, *by_scipy(model, seconds, failed), seconds, failed)


@pytest.mark.parametrize(
    ("model", "names"),
    [("lognormal", ("sigma", "mu_log_s")), ("gamma", ("shape", "scale_s")), ("weibull", ("shape", "scale_s"))],
)
def test_standard_errors_are_the_observed_information(model: str, names: tuple[str, str]) -> None:
    seconds, failed = simulated(7, 400, 0.7, 0.5)
    fit = fitted(seconds, failed)[model]
    at = np.array([fit[name] for name in names])
    steps = at * 1e-4

    def value(*moves: tuple[int, int]) -> float:
        point = at.copy()
        for axis, sign in moves:
            point[axis] += sign * steps[axis]
        scale = math.exp(point[1]) if model == "lognormal" else point[1]
        return loglik(model, point[0], scale, seconds, failed)

    information = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            mixed = sum(a * b * value((i, a), (j, b)) for a in (1, -1) for b in (1, -1))
            information[i, j] = -mixed / (4 * steps[i] * steps[j])
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    columns = ("sigma_se", "mu_log_se") if model == "lognormal" else ("shape_se", "scale_se_s")
    assert tuple(fit[name] for name in columns) == pytest.approx(tuple(errors), rel=1e-3)


def test_lognormal_without_censoring_is_the_closed_form() -> None:
    logs = np.log(np.array([3, 40, 500, 6000, 7]))
    fit = fitted(np.array([3, 40, 500, 6000, 7]), np.ones(5, dtype=bool))["lognormal"]
    assert fit["mu_log_s"] == pytest.approx(logs.mean(), rel=1e-12)
    assert fit["sigma"] == pytest.approx(logs.std(), rel=1e-10)
    assert fit["mu_log_se"] == pytest.approx(logs.std() / math.sqrt(5), rel=1e-10)
    assert fit["sigma_se"] == pytest.approx(logs.std() / math.sqrt(10), rel=1e-10)


def test_gamma_without_censoring_has_the_mean_of_the_lives() -> None:
    seconds = np.array([3, 40, 500, 6000, 7])
    assert fitted(seconds, np.ones(5, dtype=bool))["gamma"]["mean_s"] == pytest.approx(seconds.mean(), rel=1e-10)


@pytest.mark.parametrize(
    ("seconds", "censored"),
    [
        ([0] * 50 + [1] * 50, []),
        ([0, 1], [10**9] * 3000),
        ([0, 10**9], []),
        ([10**9, 10**9 + 1], []),
        ([1000, 1001] * 300, [10**9]),
        ([10**9 - 1, 10**9], list(range(0, 10**6, 300))),
        (list(range(10_000, 10_100)), [3] * 1000),
        ([5, 6], list(range(0, 10**9, 10**6))),
    ],
)
def test_extreme_lives_stay_numbers(seconds: list, censored: list) -> None:
    every = np.array(seconds + censored)
    for fit in fitted(every, np.arange(every.size) < len(seconds)).values():
        numbers = [value for value in fit.values() if isinstance(value, float)]
        assert all(math.isfinite(value) for value in numbers)
        assert fit["converged"] or fit["reason"]
        assert fit["loglik"] is not None or fit["reason"]


@pytest.mark.parametrize("shape", [0.05, 0.9, 2.0, 150.0])
def test_condensed_lives_give_the_fit_of_all_their_times(shape: float, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, failed = simulated(5, 30_000, shape, 0.7)
    short = fitted(seconds, failed)
    monkeypatch.setattr(lifetime_sample, "FEW_TIMES", 10**9)
    for model, whole in fitted(seconds, failed).items():
        for name, value in whole.items():
            if isinstance(value, float):
                assert short[model][name] == pytest.approx(value, rel=1e-9), (model, name)


def test_condensed_sum_knows_its_error() -> None:
    log_times = np.linspace(-9, 5, 40_000)
    lives = np.random.default_rng(6).integers(1, 9, log_times.size).astype(float)
    for sharpness, exact in ((1, True), (300, False)):
        values = np.tanh(sharpness * log_times)
        points = condense(log_times, lives, 0.5)
        assert points.weights.size == 28 * 16
        at_points = np.tanh(sharpness * points.log_times)
        off = abs(float((points.weights * at_points).sum()) - float((lives * values).sum()))
        assert off <= points.error(at_points) + 1e-9
        assert (points.error(at_points) < 1e-6 * lives.sum()) == exact


@pytest.mark.parametrize("shape", [1, 2, 7, 40, 1000])
def test_log_survival_of_gamma_far_out(shape: int) -> None:
    # Of a whole shape the survival is that of a Poisson count: e^-x (1 + x + ... + x^(k-1) / (k-1)!).
    over_mean = np.log(np.array([1e-3, 0.5, 1.0, 1.5, 3, 20, 900, 1e6]))
    x = shape * np.exp(over_mean)
    counts = np.arange(shape)
    factorials = np.cumsum(np.log(np.maximum(counts, 1)))
    expected = [logsumexp(counts * math.log(value) - factorials) - value for value in x]
    assert gamma_log_survival(float(shape), over_mean) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("shape", [0.001, 0.5, 1e4, LARGEST_GAMMA_SHAPE])
def test_log_survival_of_gamma_falls_and_joins(shape: float) -> None:
    spread = 60 / math.sqrt(shape)
    over_mean = np.linspace(-spread, spread, 3001) if shape > 1 else np.linspace(-30, 20, 3001)
    survival = gamma_log_survival(shape, over_mean)
    assert np.isfinite(survival).all()
    assert (np.diff(survival) <= 1e-12).all()
    early = over_mean < 0
    assert np.exp(survival[early]) == pytest.approx(1 - gammainc(shape, shape * np.exp(over_mean[early])), abs=1e-12)
