"""Logistic regression: against statsmodels, warm starts against fits on all data, and coefficients without data."""

import made_risk
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from ttf.stats.regression import logistic
from ttf.stats.regression.design import BLOCK, Design
from ttf.stats.regression.logistic import PRECISION, Prior, clustered_covariance, fit


def draw_design(n: int = 1500, seed: int = 1, users: int = 40):
    """(design of two numbers and a category of three levels, failed, user)."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, n)
    numbers = np.column_stack([rng.normal(size=n), rng.normal(size=users)[user]])
    level = rng.choice(3, n, p=[0.6, 0.3, 0.1]).astype(np.int32)
    eta = -1 + numbers @ [0.8, -0.5] + np.array([0, 0.7, -1.2])[level] + 0.6 * rng.normal(size=users)[user]
    return Design(numbers, ((level, 3),)), rng.random(n) < expit(eta), user


def flat_prior(width: int) -> Prior:
    return Prior(np.zeros(width), np.zeros((width, width)))


def stack_designs(first: Design, other: Design) -> Design:
    levels = zip(first.levels, other.levels, strict=True)
    joined = tuple((np.concatenate([a, b]), size) for (a, size), (b, _) in levels)
    return Design(np.concatenate([first.numbers, other.numbers]), joined)


# Against statsmodels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, BLOCK + 500])
def test_coefficients_and_information_are_those_of_statsmodels(n):
    design, failed, _ = draw_design(n)
    rows = made_risk.dense(design)
    expected = sm.GLM(failed.astype(float), rows, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=100)
    result = fit(design, failed, flat_prior(design.width))
    assert result.converged
    assert result.coefficients == pytest.approx(expected.params, rel=1e-8, abs=1e-8)
    logit = sm.Logit(failed.astype(float), rows)
    assert result.information == pytest.approx(-logit.hessian(result.coefficients), rel=1e-8)
    assert np.diag(np.linalg.inv(result.information)) == pytest.approx(expected.bse**2, rel=1e-6)


@pytest.mark.parametrize("with_prior", [False, True])
def test_many_rows_are_fitted_in_two_steps(monkeypatch, with_prior):
    """A part of them first, then all from there."""
    design, failed, _ = draw_design(1_000)
    prior = Prior(np.full(design.width, 0.3), 5 * np.eye(design.width)) if with_prior else None
    expected = fit(design, failed, prior)
    monkeypatch.setattr(logistic, "FIRST_ROWS", 70)
    actual = fit(design, failed, prior)
    assert actual.converged
    assert actual.coefficients == pytest.approx(expected.coefficients, abs=1e-6)
    assert actual.information == pytest.approx(expected.information, rel=1e-5)


def test_the_clustered_covariance_is_that_of_statsmodels():
    """Statsmodels runs without its correction; ours is clusters over clusters less one."""
    design, failed, user = draw_design(900, users=30)
    result = fit(design, failed, flat_prior(design.width))
    groups = {"groups": user, "use_correction": False}
    expected = sm.Logit(failed.astype(float), made_risk.dense(design)).fit(
        disp=0, tol=1e-12, cov_type="cluster", cov_kwds=groups
    )
    covariance = clustered_covariance(design, failed, result, user)
    assert covariance * 29 / 30 == pytest.approx(expected.cov_params(), rel=1e-6)


# The prior ---------------------------------------------------------------------------------------------------


def test_a_vague_prior_moves_no_coefficient_by_more_than_half_a_standard_error():
    design, failed, _ = draw_design(1500)
    without_prior, result = fit(design, failed, flat_prior(design.width)), fit(design, failed)
    se = np.sqrt(np.diag(np.linalg.inv(without_prior.information)))
    assert (np.abs(result.coefficients - without_prior.coefficients) < 0.5 * se).all()
    # It draws to 0, but for the intercept, of which it says nothing.
    assert np.linalg.norm(result.coefficients[1:]) < np.linalg.norm(without_prior.coefficients[1:])
    assert (expit(design.dot(result.coefficients)).mean()) == pytest.approx(failed.mean(), abs=1e-9)


def test_a_warm_start_is_a_fit_on_all():
    """A's fit is the prior of B, with its curvature: within 2 % of a standard error of a fit on both."""
    early, early_failed, _ = draw_design(20_000)
    late, late_failed, _ = draw_design(2_000, 11)
    late = Design(late.numbers * 1.1, late.levels)
    early_fit = fit(early, early_failed)
    warm = fit(late, late_failed, Prior(early_fit.coefficients, early_fit.information))
    joint = fit(stack_designs(early, late), np.concatenate([early_failed, late_failed]))
    se = np.sqrt(np.diag(np.linalg.inv(joint.information)))
    assert (np.abs(warm.coefficients - joint.coefficients) / se).max() < 0.02
    assert np.sqrt(np.diag(np.linalg.inv(warm.information))) == pytest.approx(se, rel=0.02)
    # A cold start on what came later alone is farther off.
    assert (np.abs(fit(late, late_failed).coefficients - joint.coefficients) / se).max() > 0.5


# Coefficients without data ------------------------------------------------------------------------------------


def test_what_is_separated_stays_finite():
    """A level always fails, another never does, and a number separates failures from the others."""
    n = 300
    failed = np.arange(n) < n // 3
    level = np.where(failed, 1, np.where(np.arange(n) % 2, 2, 0)).astype(np.int32)
    result = fit(Design(np.where(failed, 50.0, -50.0)[:, None], ((level, 3),)), failed)
    assert result.converged
    assert np.isfinite(result.coefficients).all()
    assert np.abs(result.coefficients[1:]).max() < 20
    assert np.isfinite(np.linalg.inv(result.information)).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_jobs_of_one_outcome_have_finite_coefficients(share):
    design, _, _ = draw_design(200)
    result = fit(design, np.full(200, bool(share)))
    assert np.isfinite(result.coefficients).all()
    assert np.abs(expit(design.dot(result.coefficients)) - share).max() < 0.01


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(0, 3))
def test_any_jobs_have_a_fit_that_is_higher_than_its_neighbours(seed, n, columns):
    rng = np.random.default_rng(seed)
    design = Design(rng.normal(size=(n, columns)) * 10 ** rng.uniform(-3, 2, columns), ())
    failed = rng.random(n) < rng.random()
    result = fit(design, failed)
    assert np.isfinite(result.coefficients).all()
    assert result.information == pytest.approx(result.information.T)
    if 0 < failed.sum() < n:
        assert result.converged

        def density(point):
            eta = design.dot(point)
            return float((failed * eta - np.logaddexp(0, eta)).sum()) - 0.5 * PRECISION * float(point[1:] @ point[1:])

        best = density(result.coefficients)
        for _ in range(5):
            assert density(result.coefficients + 1e-3 * rng.normal(size=design.width)) <= best + 1e-9
