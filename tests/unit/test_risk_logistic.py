"""Logistic regression: against statsmodels, a warm start against a fit on all, and what no data speak of."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from ttf.analyses.shared.risk import logistic
from ttf.analyses.shared.risk.encoder import BLOCK, Design
from ttf.analyses.shared.risk.logistic import PRECISION, Prior, clustered_covariance, fit


def drawn(n: int = 1500, seed: int = 1, users: int = 40):
    """(design of two numbers and a category of three levels, failed, user)."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, n)
    numbers = np.column_stack([rng.normal(size=n), rng.normal(size=users)[user]])
    level = rng.choice(3, n, p=[0.6, 0.3, 0.1]).astype(np.int32)
    eta = -1 + numbers @ [0.8, -0.5] + np.array([0, 0.7, -1.2])[level] + 0.6 * rng.normal(size=users)[user]
    return Design(numbers, ((level, 3),)), rng.random(n) < expit(eta), user


def flat(width: int) -> Prior:
    """A prior that says nothing at all."""
    return Prior(np.zeros(width), np.zeros((width, width)))


def stacked(one: Design, other: Design) -> Design:
    levels = zip(one.levels, other.levels, strict=True)
    joined = tuple((np.concatenate([a, b]), size) for (a, size), (b, _) in levels)
    return Design(np.concatenate([one.numbers, other.numbers]), joined)


# Against statsmodels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, BLOCK + 500])
def test_coefficients_and_information_are_those_of_statsmodels(n):
    design, failed, _ = drawn(n)
    rows = design.rows(slice(None))
    theirs = sm.GLM(failed.astype(float), rows, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=100)
    found = fit(design, failed, flat(design.width))
    assert found.converged
    assert found.coefficients == pytest.approx(theirs.params, rel=1e-8, abs=1e-8)
    logit = sm.Logit(failed.astype(float), rows)
    assert found.information == pytest.approx(-logit.hessian(found.coefficients), rel=1e-8)
    assert np.diag(np.linalg.inv(found.information)) == pytest.approx(theirs.bse**2, rel=1e-6)


@pytest.mark.parametrize("with_prior", [False, True])
def test_many_rows_are_fitted_as_few_are(monkeypatch, with_prior):
    """A part of them first, then all from there."""
    design, failed, _ = drawn(1_000)
    prior = Prior(np.full(design.width, 0.3), 5 * np.eye(design.width)) if with_prior else None
    once = fit(design, failed, prior)
    monkeypatch.setattr(logistic, "FIRST_ROWS", 70)
    in_two = fit(design, failed, prior)
    assert in_two.converged
    assert in_two.coefficients == pytest.approx(once.coefficients, abs=1e-6)
    assert in_two.information == pytest.approx(once.information, rel=1e-5)


def test_the_clustered_covariance_is_that_of_statsmodels():
    """Without their correction, which has the number of coefficients in it; ours is clusters over clusters less one."""
    design, failed, user = drawn(900, users=30)
    found = fit(design, failed, flat(design.width))
    groups = {"groups": user, "use_correction": False}
    theirs = sm.Logit(failed.astype(float), design.rows(slice(None))).fit(
        disp=0, tol=1e-12, cov_type="cluster", cov_kwds=groups
    )
    ours = clustered_covariance(design, failed, found, user)
    assert ours * 29 / 30 == pytest.approx(theirs.cov_params(), rel=1e-6)


def test_numbers_of_clusters_that_have_no_row_do_not_count():
    design, failed, user = drawn(600, users=12)
    found = fit(design, failed)
    apart = clustered_covariance(design, failed, found, 7 * user + 3)
    assert apart == pytest.approx(clustered_covariance(design, failed, found, user), rel=1e-12)


# The prior ---------------------------------------------------------------------------------------------------


def test_the_slope_of_the_posterior_density_is_0_where_the_fit_is():
    design, failed, _ = drawn(500)
    found = fit(design, failed)
    rows = design.rows(slice(None))
    slope = rows.T @ (failed - expit(rows @ found.coefficients))
    pull = PRECISION * np.concatenate([[0], found.coefficients[1:]])
    assert slope == pytest.approx(pull, abs=1e-5)


def test_a_vague_prior_moves_no_coefficient_by_more_than_half_a_standard_error():
    design, failed, _ = drawn(1500)
    bare, found = fit(design, failed, flat(design.width)), fit(design, failed)
    se = np.sqrt(np.diag(np.linalg.inv(bare.information)))
    assert (np.abs(found.coefficients - bare.coefficients) < 0.5 * se).all()
    # It draws to 0, but for the intercept, of which it says nothing.
    assert np.linalg.norm(found.coefficients[1:]) < np.linalg.norm(bare.coefficients[1:])
    assert (expit(design.dot(found.coefficients)).mean()) == pytest.approx(failed.mean(), abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_warm_start_is_a_fit_on_all(seed):
    """What A said goes on as the prior of B, curved as it was at A: within 2 % of a standard error of both at once."""
    before, failed_before, _ = drawn(20_000, seed)
    later, failed_later, _ = drawn(2_000, seed + 10)
    later = Design(later.numbers * 1.1, later.levels)
    of_before = fit(before, failed_before)
    warm = fit(later, failed_later, Prior(of_before.coefficients, of_before.information))
    whole = fit(stacked(before, later), np.concatenate([failed_before, failed_later]))
    se = np.sqrt(np.diag(np.linalg.inv(whole.information)))
    assert (np.abs(warm.coefficients - whole.coefficients) / se).max() < 0.02
    assert np.sqrt(np.diag(np.linalg.inv(warm.information))) == pytest.approx(se, rel=0.02)
    # A cold start on what came later alone is farther off.
    assert (np.abs(fit(later, failed_later).coefficients - whole.coefficients) / se).max() > 0.5


def test_a_prior_that_knows_all_is_left_as_it_is():
    design, failed, _ = drawn(200)
    mean = np.array([0.3, -0.2, 0.1, 1.0, -1.0])
    found = fit(design, failed, Prior(mean, np.eye(5) * 1e12))
    assert found.coefficients == pytest.approx(mean, abs=1e-8)


# What no data speak of ---------------------------------------------------------------------------------------


def test_what_is_separated_stays_finite():
    """A level that always fails, one that never does, and a number that tells all failures from the others."""
    n = 300
    failed = np.arange(n) < n // 3
    level = np.where(failed, 1, np.where(np.arange(n) % 2, 2, 0)).astype(np.int32)
    found = fit(Design(np.where(failed, 50.0, -50.0)[:, None], ((level, 3),)), failed)
    assert found.converged
    assert np.isfinite(found.coefficients).all()
    assert np.abs(found.coefficients[1:]).max() < 20
    assert np.isfinite(np.linalg.inv(found.information)).all()


def test_columns_that_say_the_same_share_the_coefficient():
    design, failed, _ = drawn(500)
    number = design.numbers[:, [0]]
    twice, once = fit(Design(np.hstack([number, number]), ()), failed), fit(Design(number, ()), failed)
    assert twice.converged
    assert twice.coefficients[1] == pytest.approx(twice.coefficients[2])
    assert 2 * twice.coefficients[1] == pytest.approx(once.coefficients[1], rel=0.02)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_jobs_of_one_outcome_end_at_a_finite_place(share):
    design, _, _ = drawn(200)
    found = fit(design, np.full(200, bool(share)))
    assert np.isfinite(found.coefficients).all()
    assert np.abs(expit(design.dot(found.coefficients)) - share).max() < 0.01


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(0, 3))
def test_any_jobs_have_a_fit_that_is_higher_than_its_neighbours(seed, n, columns):
    rng = np.random.default_rng(seed)
    design = Design(rng.normal(size=(n, columns)) * 10 ** rng.uniform(-3, 2, columns), ())
    failed = rng.random(n) < rng.random()
    found = fit(design, failed)
    assert np.isfinite(found.coefficients).all()
    assert found.information == pytest.approx(found.information.T)
    if 0 < failed.sum() < n:
        assert found.converged

        def density(point):
            eta = design.dot(point)
            return float((failed * eta - np.logaddexp(0, eta)).sum()) - 0.5 * PRECISION * float(point[1:] @ point[1:])

        there = density(found.coefficients)
        for _ in range(5):
            assert density(found.coefficients + 1e-3 * rng.normal(size=design.width)) <= there + 1e-9
