"""Hours until failure: derivatives, lifelines, closed forms, and a simulation of jobs still running."""

import warnings

import made_risk
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter, LogNormalAFTFitter
from scipy.integrate import quad
from scipy.stats import lognorm, norm
from ttf.stats.regression import censored_lognormal as module
from ttf.stats.regression.censored_lognormal import FEWEST_FAILURES, SHORTEST_H, Hours, censored_lognormal, fit_hours
from ttf.stats.regression.design import Design
from ttf.stats.regression.logistic import PRECISION

NO_OTHERS = np.empty(0)


def draw_hours(n: int = 800, seed: int = 1, censored_share: float = 0.3):
    """(design of a number and a level, log hours, censored)."""
    rng = np.random.default_rng(seed)
    design = Design(rng.normal(size=(n, 1)), ((rng.integers(0, 2, n).astype(np.int32), 2),))
    log_t = design.dot(np.array([0.5, 0.8, -0.4])) + 1.2 * rng.normal(size=n)
    if not censored_share:
        return design, log_t, np.zeros(n, bool)
    log_c = rng.normal(norm.ppf(1 - censored_share) * 1.8 + 0.5, 1.0, n)
    return design, np.minimum(log_t, log_c), log_t > log_c


def column_of_ones(n: int) -> Design:
    return Design(np.empty((n, 0)), ())


@pytest.fixture
def without_prior(monkeypatch):
    """Set no prior, as the libraries do."""
    monkeypatch.setattr(module, "PRECISION", 0.0)


def capture_likelihood(monkeypatch, design, log_h, censored, weights):
    """Return the likelihood that the optimiser receives."""
    likelihoods = []
    monkeypatch.setattr(module, "maximise", lambda likelihood, start: likelihoods.append(likelihood) or (start, True))
    censored_lognormal(design, log_h, censored, weights, np.zeros(design.width + 1))
    return likelihoods[0]


# The likelihood ----------------------------------------------------------------------------------------------


def test_gradient_and_curvature_are_the_derivatives(monkeypatch):
    rng = np.random.default_rng(1)
    design, log_h, censored = draw_hours(60, 1)
    likelihood = capture_likelihood(monkeypatch, design, log_h, censored, rng.random(60))
    point, small = rng.normal(size=4) * 0.5, 1e-5
    level, slope, compute_curvature = likelihood(point)
    curvature = compute_curvature()
    for index in range(4):
        step = small * np.eye(4)[index]
        up, down = likelihood(point + step), likelihood(point - step)
        assert slope[index] == pytest.approx((up[0] - down[0]) / (2 * small), rel=1e-6, abs=1e-5)
        assert curvature[index] == pytest.approx((up[1] - down[1]) / (2 * small), rel=1e-6, abs=1e-5)
    assert np.isfinite(level)


def test_the_likelihood_is_that_of_the_normal_distribution_and_the_prior(monkeypatch):
    design, log_h, censored = draw_hours(40)
    weights = np.random.default_rng(1).random(40)
    point = np.array([0.3, 0.7, -0.2, 0.4])
    mu, sigma = design.dot(point[:3]), np.exp(point[3])
    log_density = np.where(censored, norm.logsf(log_h, mu, sigma), norm.logpdf(log_h, mu, sigma))
    # Of the intercept and the spread the prior says nothing.
    expected = weights @ log_density - 0.5 * PRECISION * (0.7**2 + 0.2**2)
    assert capture_likelihood(monkeypatch, design, log_h, censored, weights)(point)[0] == pytest.approx(expected)


@pytest.mark.parametrize("log_h", [-60.0, 60.0, 1e4])
def test_far_out_the_derivatives_are_finite(monkeypatch, log_h):
    design = column_of_ones(2)
    likelihood = capture_likelihood(monkeypatch, design, np.array([log_h, log_h]), np.array([True, False]), np.ones(2))
    level, slope, compute_curvature = likelihood(np.array([0.0, 0.0]))
    assert all(np.isfinite(part).all() for part in (level, slope, compute_curvature()))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_regression_is_that_of_lifelines(without_prior, weighted):
    design, log_h, censored = draw_hours(600, 2)
    weights = np.random.default_rng(3).integers(1, 4, 600).astype(float) if weighted else np.ones(600)
    rows = made_risk.dense(design)
    frame = pd.DataFrame(rows[:, 1:], columns=["number", "level"]).assign(h=np.exp(log_h), failed=~censored, w=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected_params = LogNormalAFTFitter().fit(frame, "h", "failed", weights_col="w").params_
    point, converged = censored_lognormal(design, log_h, censored, weights, np.zeros(4))
    assert converged
    expected = [expected_params["mu_", "Intercept"], expected_params["mu_", "number"], expected_params["mu_", "level"]]
    assert point == pytest.approx([*expected, expected_params["sigma_", "Intercept"]], abs=2e-4)


# What is told of a job ---------------------------------------------------------------------------------------


@given(st.floats(-3, 4), st.floats(0.2, 3), st.floats(0.01, 500), st.floats(0.01, 500))
def test_expected_hours_are_the_integral_of_the_survival(mu, sigma, horizon, until_h):
    hours = Hours(np.array([mu]), sigma, horizon, 20, 0.0, True)
    job, distribution = column_of_ones(1), lognorm(sigma, scale=np.exp(mu))
    for limit, mean_h in ((horizon, hours.mean(job)), (until_h, hours.mean(job, until_h))):
        area, _ = quad(
            lambda u: np.exp(u) * distribution.sf(np.exp(u)),
            -40,
            np.log(limit),
            limit=200,
            points=[mu] if mu < np.log(limit) else None,
        )
        assert mean_h[0] == pytest.approx(area, rel=1e-6)
        assert 0 < mean_h[0] <= limit * (1 + 1e-12)
    assert hours.probability_within(job, until_h)[0] == pytest.approx(distribution.cdf(until_h), rel=1e-9, abs=1e-15)
    assert hours.median(job)[0] == pytest.approx(distribution.median())


def test_expected_hours_of_a_wide_distribution_are_finite():
    hours = Hours(np.array([0.0]), 60.0, 1_000.0, 20, 0.0, True)
    assert 0 < hours.mean(column_of_ones(1))[0] <= 1_000


# With jobs still running -------------------------------------------------------------------------------------


def test_without_jobs_that_run_it_is_the_regression_of_the_failures():
    design, log_h, _ = draw_hours(300, censored_share=0)
    failed = np.random.default_rng(1).random(300) < 0.6
    hours = fit_hours(design, np.exp(log_h), failed, np.zeros(300, bool), np.full(300, 0.5), np.exp(log_h[~failed]))
    point, _ = censored_lognormal(
        design.take(failed), log_h[failed], np.zeros(failed.sum(), bool), np.ones(failed.sum()), np.zeros(4)
    )
    assert hours.coefficients == pytest.approx(point[:3], abs=1e-6)
    assert hours.sigma == pytest.approx(np.exp(point[3]), rel=1e-6)
    assert hours.horizon_h == pytest.approx(np.exp(log_h[failed].max()))
    assert (hours.failures, hours.censored) == (failed.sum(), 0)


@pytest.mark.parametrize(("failures", "is_none"), [(FEWEST_FAILURES - 1, True), (FEWEST_FAILURES, False)])
def test_of_too_few_failures_there_is_no_regression(failures, is_none):
    n = 100
    hours = np.exp(np.random.default_rng(1).normal(size=n))
    failed = np.arange(n) < failures
    fit_result = fit_hours(column_of_ones(n), hours, failed, np.zeros(n, bool), np.full(n, 0.5), hours[~failed])
    assert (fit_result is None) == is_none


def test_failures_of_unknown_time_do_not_count():
    hours = np.exp(np.random.default_rng(1).normal(size=60))
    hours[19:40] = np.nan
    failed = np.arange(60) < 40
    assert fit_hours(column_of_ones(60), hours, failed, ~failed, np.full(60, 0.5), NO_OTHERS) is None


def test_runs_of_0_hours_and_equal_runs_have_a_finite_fit():
    design = column_of_ones(50)
    at_once = fit_hours(design, np.zeros(50), np.ones(50, bool), np.zeros(50, bool), np.ones(50), NO_OTHERS)
    assert at_once.horizon_h == pytest.approx(SHORTEST_H)
    assert np.isfinite(at_once.mean(design)).all()
    equal = fit_hours(design, np.full(50, 2.0), np.ones(50, bool), np.zeros(50, bool), np.ones(50), NO_OTHERS)
    assert equal.median(design)[0] == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_the_curve_of_those_that_end_otherwise_is_that_of_lifelines(weight):
    """With ties: just before an age, the jobs that end at it still run."""
    rng = np.random.default_rng(1)
    ended, running = np.ceil(4 * rng.exponential(size=60)), np.ceil(5 * rng.exponential(size=25))
    survival = module._survival(ended, running)(np.full(25, weight))
    weights = np.repeat([1.0, weight], [60, 25])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curve = KaplanMeierFitter().fit(np.concatenate([ended, running]), np.arange(85) < 60, weights=weights)
    assert survival == pytest.approx(curve.survival_function_at_times(running - 1e-9).to_numpy())
    assert (module._survival(NO_OTHERS, running)(weights[60:]) == 1).all()


MU, SIGMA, SHARE = 1.0, 1.0, 0.4


def censor_jobs(seed: int, n: int = 3_000, days: float = 1.0, share: float = SHARE):
    """Jobs sent over some days, looked at when these are over: (hours seen, failed, running).

    A job fails with a chance of `share`, after hours whose logarithm is normal (MU, SIGMA); if it does not it ends
    after hours that are lognormal too, and longer.
    """
    rng = np.random.default_rng(seed)
    will_fail = rng.random(n) < share
    lasts = np.exp(np.where(will_fail, MU, MU + 0.7) + SIGMA * rng.normal(size=n))
    age = 24 * days * rng.random(n)
    runs = lasts > age
    return np.where(runs, age, lasts), will_fail & ~runs, runs


def fit_censored(seed: int, **options) -> Hours:
    hours, failed, running = censor_jobs(seed, **options)
    n = len(hours)
    ended_hours = hours[~failed & ~running]
    return fit_hours(column_of_ones(n), hours, failed, running, np.full(n, options.get("share", SHARE)), ended_hours)


def test_with_jobs_that_still_run_the_estimate_holds_the_truth_and_without_them_it_is_low():
    """The mean over 25 draws is within 3 standard errors; jobs that fail late are those still running."""
    seeds = range(25)
    estimates = np.array([[hours.coefficients[0], np.log(hours.sigma)] for hours in map(fit_censored, seeds)])
    dropped = []
    for seed in seeds:
        hours, failed, _ = censor_jobs(seed)
        dropped.append(np.log(hours[failed]).mean())
    se = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - [MU, np.log(SIGMA)]) < 3 * se).all()
    assert np.mean(dropped) < MU - 0.1
    assert (np.array(dropped) < MU).all()


def test_where_all_fail_the_jobs_that_run_are_plainly_censored():
    hours, failed, running = censor_jobs(3, share=1.0)
    fit_ = fit_censored(3, share=1.0)
    point, _ = censored_lognormal(
        column_of_ones(len(hours)), np.log(hours), running, np.ones(len(hours)), np.array([0.0, 0.0])
    )
    assert failed.sum() + running.sum() == len(hours)
    assert fit_.coefficients[0] == pytest.approx(point[0], abs=1e-6)
    assert fit_.censored == pytest.approx(running.sum())
