"""Lognormal and gamma fits of censored durations against SciPy, closed forms and uncondensed sums."""

import math
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import gammainc, logsumexp
from scipy.stats import CensoredData, gamma, lognorm, weibull_min
from ttf.analyses.time_to_failure.fit_mttf.compute import lifetime_models
from ttf.stats.lifetimes import lifetime_sample
from ttf.stats.lifetimes.lifetime_models import LARGEST_GAMMA_SHAPE, gamma_log_survival

DISTRIBUTIONS = {"weibull": weibull_min, "lognormal": lognorm, "gamma": gamma}


def make_durations(seconds: np.ndarray, failed: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"duration_s": seconds.astype(np.int64), "event": np.where(failed, "failure", "success")})


def fit_models(seconds: np.ndarray, failed: np.ndarray) -> dict[str, dict]:
    table = lifetime_models(make_durations(seconds, failed), "failure", ["all"])
    return {row["model"]: row for row in table.iter_rows(named=True)}


def parameters(fit: dict) -> tuple[float, float]:
    """Return shape and scale as SciPy defines them."""
    if fit["model"] == "lognormal":
        return fit["sigma"], math.exp(fit["mu_log_s"])
    return fit["shape"], fit["scale_s"]


def loglik(model: str, shape: float, scale: float, seconds: np.ndarray, failed: np.ndarray) -> float:
    time = np.where(seconds == 0, 0.5, seconds)
    distribution = DISTRIBUTIONS[model](shape, scale=scale)
    return distribution.logpdf(time[failed]).sum() + distribution.logsf(time[~failed]).sum()


def scipy_fit(model: str, seconds: np.ndarray, failed: np.ndarray) -> tuple[float, float]:
    time = np.where(seconds == 0, 0.5, seconds.astype(float))
    data = CensoredData(uncensored=time[failed], right=time[~failed])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape, _, scale = DISTRIBUTIONS[model].fit(data, floc=0)
    return shape, scale


def simulate(seed: int, n: int, shape: float, surviving_share: float) -> tuple[np.ndarray, np.ndarray]:
    """Simulate gamma durations with a mean of three years, observed at most until this share survives."""
    rng = np.random.default_rng(seed)
    times = 10**8 * rng.gamma(shape, 1 / shape, n)
    ends = np.quantile(times, 1 - surviving_share) * rng.uniform(0.2, 1, n)
    return np.minimum(times, ends).astype(np.int64), times <= ends


@pytest.mark.parametrize("model", DISTRIBUTIONS)
@settings(max_examples=12)
@given(st.lists(st.tuples(st.integers(0, 10**9) | st.integers(0, 50), st.booleans()), min_size=2, max_size=40))
def test_fits_are_never_less_likely_than_those_of_scipy(model, rows):
    seconds, failed = (np.array(column) for column in zip(*rows, strict=True))
    fit = fit_models(seconds, failed)[model]
    assume(fit["loglik"] is not None)
    shape, scale = parameters(fit)
    assert fit["converged"]
    assert fit["loglik"] == pytest.approx(loglik(model, shape, scale, seconds, failed), rel=1e-9)
    reference = scipy_fit(model, seconds, failed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference_loglik = loglik(model, *reference, seconds, failed)
    assert not reference_loglik > fit["loglik"] + 1e-9 * abs(fit["loglik"])
    assert (fit["aic"], fit["bic"]) == pytest.approx([k - 2 * fit["loglik"] for k in (4, 2 * math.log(len(rows)))])
    fitted = DISTRIBUTIONS[model](shape, scale=scale)
    for name, value in (("mean_s", fitted.mean()), ("median_s", fitted.median())):
        assert fit[name] is None or fit[name] == pytest.approx(value)
    # SciPy's search has converged if the log-likelihoods are this close.
    if fit["loglik"] - reference_loglik < 1e-10 * abs(fit["loglik"]):
        assert (shape, scale) == pytest.approx(reference, rel=1e-4)


@pytest.mark.parametrize(
    ("model", "names"),
    [("lognormal", ("sigma", "mu_log_s")), ("gamma", ("shape", "scale_s")), ("weibull", ("shape", "scale_s"))],
)
def test_standard_errors_match_the_observed_information(model, names):
    seconds, failed = simulate(7, 400, 0.7, 0.5)
    fit = fit_models(seconds, failed)[model]
    estimate = np.array([fit[name] for name in names])
    steps = estimate * 1e-4

    def loglik_moved(*moves: tuple[int, int]) -> float:
        point = estimate.copy()
        for axis, sign in moves:
            point[axis] += sign * steps[axis]
        scale = math.exp(point[1]) if model == "lognormal" else point[1]
        return loglik(model, point[0], scale, seconds, failed)

    information = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            mixed = sum(a * b * loglik_moved((i, a), (j, b)) for a in (1, -1) for b in (1, -1))
            information[i, j] = -mixed / (4 * steps[i] * steps[j])
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    columns = ("sigma_se", "mu_log_se") if model == "lognormal" else ("shape_se", "scale_se_s")
    assert tuple(fit[name] for name in columns) == pytest.approx(tuple(errors), rel=1e-3)


def test_lognormal_without_censoring_is_the_closed_form():
    logs = np.log(np.array([3, 40, 500, 6000, 7]))
    fit = fit_models(np.array([3, 40, 500, 6000, 7]), np.ones(5, dtype=bool))["lognormal"]
    assert fit["mu_log_s"] == pytest.approx(logs.mean(), rel=1e-12)
    assert fit["sigma"] == pytest.approx(logs.std(), rel=1e-10)
    assert fit["mu_log_se"] == pytest.approx(logs.std() / math.sqrt(5), rel=1e-10)
    assert fit["sigma_se"] == pytest.approx(logs.std() / math.sqrt(10), rel=1e-10)


@pytest.mark.parametrize(
    ("seconds", "censored"),
    [
        ([0] * 50 + [1] * 50, []),
        ([0, 1], [10**9] * 3000),
        ([0, 10**9], []),
        ([1000, 1001] * 300, [10**9]),
        ([10**9 - 1, 10**9], list(range(0, 10**6, 300))),
    ],
)
def test_fits_of_extreme_durations_are_finite(seconds, censored):
    times = np.array(seconds + censored)
    for fit in fit_models(times, np.arange(times.size) < len(seconds)).values():
        numbers = [value for value in fit.values() if isinstance(value, float)]
        assert all(math.isfinite(value) for value in numbers)
        assert fit["converged"] or fit["reason"]
        assert fit["loglik"] is not None or fit["reason"]


@pytest.mark.parametrize("shape", [0.05, 2.0, 150.0])
def test_condensed_durations_give_the_fit_of_all_times(shape, monkeypatch):
    seconds, failed = simulate(5, 30_000, shape, 0.7)
    condensed = fit_models(seconds, failed)
    monkeypatch.setattr(lifetime_sample, "FEW_TIMES", 10**9)
    for model, uncondensed in fit_models(seconds, failed).items():
        for name, value in uncondensed.items():
            if isinstance(value, float):
                assert condensed[model][name] == pytest.approx(value, rel=1e-9), (model, name)


@pytest.mark.parametrize("shape", [1, 2, 7, 40, 1000])
def test_log_survival_of_gamma_in_the_far_tail(shape):
    # For an integer shape k, survival is a Poisson tail: e^-x (1 + x + ... + x^(k-1) / (k-1)!).
    log_ratio = np.log(np.array([1e-3, 0.5, 1.0, 1.5, 3, 20, 900, 1e6]))
    x = shape * np.exp(log_ratio)
    counts = np.arange(shape)
    factorials = np.cumsum(np.log(np.maximum(counts, 1)))
    expected = [logsumexp(counts * math.log(value) - factorials) - value for value in x]
    assert gamma_log_survival(float(shape), log_ratio) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("shape", [0.001, 0.5, 1e4, LARGEST_GAMMA_SHAPE])
def test_log_survival_of_gamma_falls_and_matches_gammainc(shape):
    spread = 60 / math.sqrt(shape)
    log_ratio = np.linspace(-spread, spread, 3001) if shape > 1 else np.linspace(-30, 20, 3001)
    survival = gamma_log_survival(shape, log_ratio)
    assert (np.diff(survival) <= 1e-12).all()
    below = log_ratio < 0
    assert np.exp(survival[below]) == pytest.approx(1 - gammainc(shape, shape * np.exp(log_ratio[below])), abs=1e-12)
